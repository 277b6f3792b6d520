package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bursar/internal/config"
)

// Instances that share a database share one built-in sandbox, because a payout that one of them sent is
// looked up by another. It has one address and one file. All try to listen on that address: whoever
// succeeds opens the file and answers, and when that instance ends, however it does, another succeeds.

// sandboxHome is where the sandbox of a database is. The first instance chooses it for all.
type sandboxHome struct {
	Address string `json:"address"`
	File    string `json:"file"`
	// Machine is where the file is.
	Machine string `json:"machine"`
}

// findSandbox finds the sandbox's home, and the listener there unless another instance has it.
func findSandbox(ctx context.Context, cfg config.Config, b *book, logger *slog.Logger) (sandboxHome, net.Listener, error) {
	file, err := filepath.Abs(filepath.Join(cfg.DataDir, "sandbox.db"))
	if err != nil {
		return sandboxHome{}, nil, err
	}
	machine, err := os.Hostname()
	if err != nil {
		return sandboxHome{}, nil, err
	}
	own := sandboxHome{File: file, Machine: machine}
	if cfg.Database.Postgres == "" {
		listener, err := listen(ctx, cfg.Sandbox, sandboxSetting)
		if err != nil {
			return own, nil, err
		}
		own.Address = listener.Addr().String()
		return own, listener, nil
	}
	home, listener, err := agreeOnSandbox(ctx, cfg.Sandbox, b, own)
	if err == nil && home.Machine != machine {
		logger.WarnContext(ctx, `the built-in sandbox serves the instances of one machine, and its records were begun on another; run one "bursar sandbox" for all if instances still run there`,
			slog.String("machine", home.Machine))
	}
	return home, listener, err
}

const (
	sandboxSetting = "BURSAR_SANDBOX_ADDR (--sandbox-addr)"
	pinnedSandbox  = "sandbox"
)

// agreeOnSandbox pins an own home for all instances, or takes the one that is pinned. An address that
// the operator gives wins over the pinned one: all instances are given the same.
func agreeOnSandbox(ctx context.Context, wanted config.Listen, b *book, own sandboxHome) (sandboxHome, net.Listener, error) {
	_, isPinned, err := b.db.Pinned(ctx, pinnedSandbox)
	if err != nil {
		return own, nil, err
	}
	_, port, _ := net.SplitHostPort(wanted.Addr) // it was checked
	isGiven := !wanted.OrFree && port != "0"
	own.Address = wanted.Addr
	var listener net.Listener
	if !isPinned && !isGiven {
		if listener, err = listen(ctx, wanted, sandboxSetting); err != nil {
			return own, nil, err
		}
		own.Address = listener.Addr().String()
	}
	home, err := pinSandbox(ctx, b, own)
	if listener != nil && (err != nil || home.Address != own.Address) {
		err = errors.Join(err, listener.Close()) // another instance was faster
		listener = nil
	}
	if isGiven {
		home.Address = own.Address
	}
	if err == nil && listener == nil {
		listener, _ = listen(ctx, config.Listen{Addr: home.Address}, sandboxSetting) // else it is another's
	}
	return home, listener, err
}

func pinSandbox(ctx context.Context, b *book, own sandboxHome) (home sandboxHome, err error) {
	text, err := json.Marshal(own)
	if err != nil {
		return home, err
	}
	pinned, err := b.db.Pin(ctx, pinnedSandbox, string(text))
	if err != nil {
		return home, err
	}
	if err := json.Unmarshal([]byte(pinned), &home); err != nil {
		return home, fmt.Errorf("the place of the sandbox that the database names can't be read: %w", err)
	}
	return home, nil
}

const (
	// takeOverEvery is how often an instance tries to run the sandbox that another one runs.
	takeOverEvery = 300 * time.Millisecond
	// joinTries is how often an instance that starts looks for the sandbox. Another instance may be about
	// to run it, or to end.
	joinTries     = 30
	probePatience = time.Second
)

// join makes sure that whoever has the sandbox's address runs the sandbox of these books, or else runs it here.
func (s *builtInSandbox) join(ctx context.Context, address string) error {
	var err error
	for range joinTries {
		if err = s.probe(ctx); err == nil {
			return nil
		}
		if errors.Is(err, errOtherServer) {
			break
		}
		listener, listenErr := listen(ctx, config.Listen{Addr: address}, sandboxSetting)
		if listenErr == nil {
			return s.open(listener)
		}
		if !wait(ctx, takeOverEvery) {
			return ctx.Err()
		}
	}
	return fmt.Errorf(`the instances of these books share a sandbox on %s, and it is not there: %w; stop what is there, or set %s to another address, the same for all instances; instances on several machines need one "bursar sandbox" that BURSAR_RAZORPAYX_BASE_URL names`,
		address, err, sandboxSetting)
}

var errOtherServer = errors.New("another server answers")

// probe asks who has the sandbox's address. An answer that is not the sandbox's is errOtherServer; any
// other error tells nothing.
func (s *builtInSandbox) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at+"/control/health", nil)
	if err != nil {
		return err
	}
	request.SetBasicAuth(s.options.KeyID, s.options.KeySecret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errOtherServer
	}
	return nil
}

// await waits until this instance can run the sandbox, and reports whether it came to that before ctx ended.
func (s *builtInSandbox) await(ctx context.Context) bool {
	pause := takeOverEvery
	for s.box == nil {
		if !wait(ctx, pause) {
			return false
		}
		var socket net.ListenConfig
		listener, err := socket.Listen(ctx, "tcp", strings.TrimPrefix(s.at, "http://"))
		if err != nil {
			continue
		}
		if err := s.open(listener); err != nil {
			s.logger.ErrorContext(ctx, "this instance can't run the sandbox", slog.Any("error", err))
			pause = 10 * takeOverEvery
			continue
		}
		s.logger.InfoContext(ctx, "this instance runs the sandbox from now on", slog.String("address", s.at))
	}
	return true
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
