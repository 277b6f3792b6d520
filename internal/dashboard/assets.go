package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assets are the files that pages load, by their address below /assets/. An address holds a hash of
// what is there, so a browser may keep it for ever.
type assets map[string]asset

type asset struct {
	contentType string
	hash        string
	text        []byte
}

func readAssets() (assets, error) {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("dashboard: read the assets: %w", err)
	}
	all := assets{}
	for _, entry := range entries {
		text, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("dashboard: read the assets: %w", err)
		}
		sum := sha256.Sum256(text)
		hash := hex.EncodeToString(sum[:6])
		extension := path.Ext(entry.Name())
		all[strings.TrimSuffix(entry.Name(), extension)+"."+hash+extension] = asset{mime.TypeByExtension(extension), hash, text}
	}
	return all, nil
}

// address is where a file such as "style.css" is found.
func (a assets) address(name string) (string, error) {
	extension := path.Ext(name)
	for hashed, file := range a {
		if hashed == strings.TrimSuffix(name, extension)+"."+file.hash+extension {
			return "/assets/" + hashed, nil
		}
	}
	return "", fmt.Errorf("there is no asset %s", name)
}

// serve sends a file. An address with another hash is of another version, and not here.
func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	file, ok := a[r.PathValue("file")]
	if !ok {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("ETag", `"`+file.hash+`"`)
	if r.Header.Get("If-None-Match") == `"`+file.hash+`"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", file.contentType)
	_, _ = w.Write(file.text) // a browser that is gone reads nothing
}
