package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"bursar/internal/config"
	"bursar/internal/razorpayx/sandbox"
)

// reachedSandbox is the built-in sandbox as a command beside the service sees it. Its zero value is none.
type reachedSandbox struct {
	box  *sandbox.Sandbox
	stop func() error
}

// reachSandbox finds the records of the built-in sandbox, and points cfg at them as if they were RazorpayX.
// A service may be at work on them: here they are only read, through a listener of the command's own, so that
// it makes no difference whether one runs, and where.
func reachSandbox(ctx context.Context, cfg *config.Config, b *Datastore, logger *slog.Logger) (*reachedSandbox, error) {
	if cfg.Gateway != config.Sandbox {
		return &reachedSandbox{stop: func() error { return nil }}, nil
	}
	file, err := sandboxFile(ctx, *cfg, b)
	if err != nil {
		return nil, err
	}
	listener, err := listen(ctx, config.Listen{Addr: "127.0.0.1:0"}, sandboxSetting)
	if err != nil {
		return nil, err
	}
	secret := builtInSecret(b)
	options := sandboxOptions(*cfg, file, secret, logger)
	box, err := sandbox.New(options)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	pointAtSandbox(cfg, "http://"+listener.Addr().String(), secret)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- serveHTTP(listener, box.Handler(), logger, &drain{})(serving) }()
	return &reachedSandbox{box: box, stop: func() error {
		stop()
		return errors.Join(<-ended, box.Close())
	}}, nil
}

func (r *reachedSandbox) close() error { return r.stop() }

// sandboxFile is where the sandbox of these books keeps its records.
func sandboxFile(ctx context.Context, cfg config.Config, b *Datastore) (string, error) {
	file, err := filepath.Abs(filepath.Join(cfg.DataDir, "sandbox.db"))
	if err != nil {
		return "", err
	}
	home := sandboxHome{File: file}
	pinned, isPinned, err := b.db.Pinned(ctx, pinnedSandbox)
	if err == nil && isPinned && cfg.Database.Postgres != "" {
		err = json.Unmarshal([]byte(pinned), &home)
	}
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(home.File); errors.Is(err, fs.ErrNotExist) {
		where := ""
		if home.Machine != "" {
			where = " on the machine " + home.Machine
		}
		return "", fmt.Errorf(`the built-in sandbox has no records at %s%s: run this where "bursar serve" runs the sandbox, after its first start, or set BURSAR_GATEWAY to the gateway that is used`,
			home.File, where)
	}
	return home.File, nil
}
