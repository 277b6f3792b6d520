package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
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

const (
	sandboxSetting = "BURSAR_SANDBOX_ADDR (--sandbox-addr)"
	pinnedSandbox  = "sandbox"
)

// findSandbox finds the sandbox's home, and on SQLite takes its listener: there is one instance.
func findSandbox(ctx context.Context, cfg config.Config, b *Datastore, logger *slog.Logger) (sandboxHome, net.Listener, error) {
	file, err := filepath.Abs(filepath.Join(cfg.DataDir, "sandbox.db"))
	if err != nil {
		return sandboxHome{}, nil, err
	}
	own := sandboxHome{File: file}
	if cfg.Database.Postgres != "" {
		home, err := agreeOnSandbox(ctx, cfg.Sandbox, b, own, logger)
		return home, nil, err
	}
	listener, err := listen(ctx, cfg.Sandbox, sandboxSetting)
	if err != nil {
		return own, nil, err
	}
	own.Address = listener.Addr().String()
	return own, listener, nil
}

// agreeOnSandbox pins an own home for all instances, or takes the one that is pinned. An address that
// the operator gives wins over the pinned one: all instances are given the same.
func agreeOnSandbox(ctx context.Context, wanted config.Listen, b *Datastore, own sandboxHome, logger *slog.Logger) (home sandboxHome, err error) {
	host, port, _ := net.SplitHostPort(wanted.Addr) // it was checked
	isGiven := !wanted.OrFree && port != "0"
	own.Address = wanted.Addr
	if !isGiven {
		if own.Address, err = steadyAddress(ctx, host); err != nil {
			return own, err
		}
	}
	if own.Machine, err = os.Hostname(); err != nil {
		return own, err
	}
	if home, err = pinSandbox(ctx, b, own); err != nil {
		return own, err
	}
	if isGiven {
		home.Address = own.Address
	}
	if home.Machine != own.Machine {
		logger.WarnContext(ctx, `the built-in sandbox serves the instances of one machine, and its records were begun on another; run one "bursar sandbox" for all if instances still run there`,
			slog.String("machine", home.Machine))
	}
	return home, nil
}

// steadyAddress finds a port that is likely to be free whenever it is taken again: none that somebody
// would choose for a service, and none that systems give to outgoing connections.
func steadyAddress(ctx context.Context, host string) (string, error) {
	const first, ports, tries = 10_000, 20_000, 20
	var last error
	for range tries {
		address := net.JoinHostPort(host, strconv.Itoa(first+rand.IntN(ports)))
		listener, err := listen(ctx, config.Listen{Addr: address}, sandboxSetting)
		if err == nil {
			return address, listener.Close()
		}
		last = err
	}
	return "", last
}

func pinSandbox(ctx context.Context, b *Datastore, own sandboxHome) (home sandboxHome, err error) {
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

// join runs the sandbox here, or else makes sure that whoever has its address runs it.
func (s *builtInSandbox) join(ctx context.Context, address string) error {
	var err error
	for range joinTries {
		listener, listenErr := listen(ctx, config.Listen{Addr: address}, sandboxSetting)
		if listenErr == nil {
			return s.open(listener)
		}
		if err = s.probe(ctx); err == nil {
			return nil
		}
		if errors.Is(err, errOtherServer) {
			break
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
