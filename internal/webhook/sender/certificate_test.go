package sender_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"bursar/internal/webhook"
	"bursar/internal/webhook/sender"
)

// TestSend_CleansErrors meets a certificate whose name has control characters, which the database and a terminal must not get.
func TestSend_CleansErrors(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"a\x00b\x1b[31m.example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = nil
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: private}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	s := newSender(t, sender.Options{Loopback: true})
	_, err = s.Send(t.Context(), webhook.Message{URL: strings.Replace(server.URL, "127.0.0.1", "localhost", 1), ID: "evt_1", At: time.Now()})
	if err == nil || !strings.Contains(err.Error(), "certificate is valid for ab") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("the error is %q", err)
	}
}
