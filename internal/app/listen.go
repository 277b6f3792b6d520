package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"bursar/internal/config"
)

// listen takes an address, or a free port of the same host where that will do. It returns nil where
// nothing is to be listened on.
func listen(ctx context.Context, l config.Listen, variable string) (net.Listener, error) {
	if l.Addr == "" {
		return nil, nil //nolint:nilnil // nothing is asked for, and nothing is wrong
	}
	var socket net.ListenConfig
	listener, err := socket.Listen(ctx, "tcp", l.Addr)
	if err != nil && l.OrFree {
		host, _, _ := net.SplitHostPort(l.Addr)
		listener, err = socket.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("can't listen on %s (%w); if another server is running there, stop it or set %s to another address",
			l.Addr, cause(err), variable)
	}
	return listener, nil
}

// cause drops what net says beside the reason: the address is in the message already.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// ignoreClosed forgives closing a listener that its server has closed.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Limits of a connection. Bodies are small, and no answer takes long.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	// shutDownTimeout is how long requests under way may take when the service stops.
	shutDownTimeout = 20 * time.Second
)

// drain is how a listener stops: from when it has begun, each answer asks its client to reconnect,
// and for a while connections are still taken, so that the load balancer can notice.
type drain struct {
	delay time.Duration
	begun atomic.Bool
}

// handler closes connections after their answer once d has begun.
func (d *drain) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.begun.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// serveHTTP is a stage that answers on a listener. When it is stopped it drains, then takes no new
// connections and waits for the requests under way.
func serveHTTP(listener net.Listener, handler http.Handler, logger *slog.Logger, d *drain) stage {
	server := &http.Server{
		Handler:           d.handler(handler),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // broken clients, mostly
	}
	return func(ctx context.Context) error {
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		stopping := ctx.Done()
		var drained <-chan time.Time
		for {
			select {
			case err := <-served:
				return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
			case <-stopping:
				d.begun.Store(true)
				stopping, drained = nil, time.After(d.delay)
			case <-drained:
				return shutDown(context.WithoutCancel(ctx), server)
			}
		}
	}
}

// shutDown waits for the requests under way.
func shutDown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, shutDownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("requests did not end within %s: %w", shutDownTimeout, err), server.Close())
	}
	return nil
}
