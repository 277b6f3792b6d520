package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"bursar/internal/config"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/web"
)

// Instances that share a database share one built-in sandbox, because a payout that one of them sent is
// looked up by another. It has one address and one file, which the first instance pins. Every instance
// tries to listen on that address: the one that can opens the file and serves it until it ends.

// sandboxPlace is where the built-in sandbox of a database is.
type sandboxPlace struct {
	Address string `json:"address"`
	File    string `json:"file"`
}

const (
	sandboxSetting = "BURSAR_SANDBOX_ADDR (--sandbox-addr)"
	pinnedSandbox  = "sandbox"
	// serveSandboxEvery is how often an instance tries to serve the sandbox that another one serves.
	serveSandboxEvery = 300 * time.Millisecond
)

func sandboxFile(cfg config.Config) (string, error) {
	return filepath.Abs(filepath.Join(cfg.DataDir, "sandbox.db"))
}

// placeSandbox returns the place for all instances. An address that the operator gives wins over the
// pinned one: all instances are given the same.
func placeSandbox(ctx context.Context, cfg config.Config, b *Datastore) (place sandboxPlace, err error) {
	own := sandboxPlace{Address: cfg.Sandbox.Addr}
	if own.File, err = sandboxFile(cfg); err != nil {
		return place, err
	}
	host, port, _ := net.SplitHostPort(cfg.Sandbox.Addr) // it was checked
	isGiven := !cfg.Sandbox.OrFree && port != "0"
	if !isGiven {
		if own.Address, err = steadyAddress(ctx, host); err != nil {
			return place, err
		}
	}
	text, err := json.Marshal(own)
	if err != nil {
		return place, err
	}
	pinned, err := b.db.Pin(ctx, pinnedSandbox, string(text))
	if err != nil {
		return place, err
	}
	if place, err = readPlace(pinned); err != nil {
		return place, err
	}
	if isGiven {
		place.Address = own.Address
	}
	return place.trusted(own)
}

// readPlace reads a place that an instance pinned.
func readPlace(pinned string) (place sandboxPlace, err error) {
	if json.Unmarshal([]byte(pinned), &place) != nil {
		err = errPlaceChanged
	}
	return place, err
}

var errPlaceChanged = fmt.Errorf("where the built-in sandbox is was changed in the database (the row %q of the table settings); delete that row, and an instance pins another place", pinnedSandbox)

// trusted fails if no instance pinned the place, by where this one would have it: who can write to the database may not have a port opened to
// the network, nor a file made anywhere. Where the folder is another machine's, the file is this instance's own.
func (p sandboxPlace) trusted(own sandboxPlace) (sandboxPlace, error) {
	host, _, err := net.SplitHostPort(p.Address)
	ownHost, _, err2 := net.SplitHostPort(own.Address)
	if err != nil || err2 != nil || host != ownHost && !web.IsLoopback(host) || filepath.Base(p.File) != filepath.Base(own.File) {
		return p, errPlaceChanged
	}
	if _, err := os.Stat(filepath.Dir(p.File)); err != nil {
		p.File = own.File
	}
	return p, nil
}

// steadyAddress finds a port that is likely to be free whenever it is taken again: none that a service
// usually has, and none that systems give to outgoing connections.
func steadyAddress(ctx context.Context, host string) (address string, err error) {
	const first, ports, tries = 10_000, 20_000, 20
	for range tries {
		address = net.JoinHostPort(host, strconv.Itoa(first+rand.IntN(ports)))
		var listener net.Listener
		if listener, err = listen(ctx, config.Listen{Addr: address}, sandboxSetting); err == nil {
			return address, listener.Close()
		}
	}
	return "", err
}

// reachSandbox serves the records of the built-in sandbox to a command beside the service, and points cfg
// at them. A running service may be at work on the same file; the command only reads.
func reachSandbox(ctx context.Context, cfg *config.Config, b *Datastore, logger *slog.Logger) (stop func() error, err error) {
	if cfg.Gateway != config.Sandbox {
		return func() error { return nil }, nil
	}
	var place sandboxPlace
	if place.File, err = sandboxFile(*cfg); err != nil {
		return nil, err
	}
	pinned, isPinned, err := b.db.Pinned(ctx, pinnedSandbox)
	if err == nil && isPinned {
		place, err = readPlace(pinned)
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(place.File); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf(`the built-in sandbox has no records at %s: run this on the machine where "bursar serve" runs the sandbox, after its first start, or set BURSAR_GATEWAY to the gateway that is used`,
			place.File)
	}
	listener, err := listen(ctx, config.Listen{Addr: "127.0.0.1:0"}, sandboxSetting)
	if err != nil {
		return nil, err
	}
	secret := builtInSecret(b)
	box, err := sandbox.New(sandboxOptions(*cfg, place.File, secret, logger))
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	pointAtSandbox(cfg, addressOf(listener), secret)
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- serveHTTP(listener, box.Handler(), logger, &drain{})(serving) }()
	return func() error {
		cancel()
		return errors.Join(<-ended, box.Close())
	}, nil
}

// wait waits for d, and reports whether it did before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
