package api_test

import (
	"log/slog"

	"bursar/internal/razorpayx"
)

func (h *house) openGateway(_ string, _ *slog.Logger) *razorpayx.Client {
	client, err := razorpayx.New(razorpayx.Options{
		BaseURL: "http://127.0.0.1:1/v1", KeyID: "rzp_test_key", KeySecret: "rzp_test_secret",
		AccountNumber: "7878780080316316", Currency: rupees(h.t), Now: h.clock.Now,
	})
	must(h.t, err)
	return client
}
