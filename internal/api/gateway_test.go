package api_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"

	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
)

// openGateway starts the sandbox gateway, which settles as fast as it can, and makes a client of it.
func (h *fixture) openGateway(dir string, logger *slog.Logger) *razorpayx.Client {
	t := h.t
	t.Helper()
	box, err := sandbox.New(sandbox.Options{
		Path: filepath.Join(dir, "sandbox.db"), KeyID: "rzp_test_key", KeySecret: "rzp_test_secret",
		AccountNumber: "7878780080316316", Currency: rupees(t), Now: h.clock.Now, Logger: logger,
	})
	must(t, err)
	server := httptest.NewServer(box.Handler())
	h.gatewayURL = server.URL
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- box.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
		server.Close()
		must(t, box.Close())
	})
	client, err := razorpayx.New(razorpayx.Options{
		BaseURL: server.URL + "/v1", KeyID: "rzp_test_key", KeySecret: "rzp_test_secret",
		AccountNumber: "7878780080316316", Currency: rupees(t), Now: h.clock.Now,
	})
	must(t, err)
	return client
}
