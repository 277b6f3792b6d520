package api_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"

	"bursar/internal/razorpayx"
	"bursar/internal/razorpayx/sandbox"
)

// openGateway starts the sandbox gateway, which settles as fast as it can, and makes a client of it.
func (h *house) openGateway(dir string, logger *slog.Logger) *razorpayx.Client {
	t := h.t
	t.Helper()
	gateway, err := sandbox.New(sandbox.Options{
		Path: filepath.Join(dir, "sandbox.db"), KeyID: "rzp_test_key", KeySecret: "rzp_test_secret",
		AccountNumber: "7878780080316316", Currency: rupees(t), Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
	server := httptest.NewServer(gateway.Handler())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gateway.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
		server.Close()
		must(t, gateway.Close())
	})
	client, err := razorpayx.New(razorpayx.Options{
		BaseURL: server.URL + "/v1", KeyID: "rzp_test_key", KeySecret: "rzp_test_secret",
		AccountNumber: "7878780080316316", Currency: rupees(t), Now: h.clock.Now,
	})
	must(t, err)
	return client
}
