// Package sender sends webhooks over HTTP.
package sender

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"bursar/internal/dialguard"
	"bursar/internal/web"
	"bursar/internal/webhook"
)

const (
	// maxAnswer is how much of an answer is read, so that the connection can be used again, and maxKept how much is kept.
	maxAnswer = 64 << 10
	maxKept   = 2 << 10
)

// Options say where endpoints may be.
type Options struct {
	// Loopback lets them be on this machine, and Private in private networks.
	Loopback, Private bool
	Now               func() time.Time
}

// Sender posts messages to endpoints.
type Sender struct {
	client *http.Client
	guard  *dialguard.Guard
	now    func() time.Time
}

// New makes a sender.
func New(o Options) (*Sender, error) {
	if o.Now == nil {
		return nil, errors.New("sender: a clock is needed")
	}
	guard := &dialguard.Guard{
		Allows: func(_ string, at dialguard.Reach) bool {
			return at == dialguard.Loopback && o.Loopback || at == dialguard.Private && o.Private
		},
		Timeout: webhook.SendTimeout,
	}
	return &Sender{
		guard: guard, now: o.Now,
		client: &http.Client{
			Timeout:       webhook.SendTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: web.NoUpgrades{Next: &http.Transport{
				Proxy:                  guard.Proxy,
				DialContext:            guard.Dial,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
				ForceAttemptHTTP2:      true,
				TLSHandshakeTimeout:    webhook.SendTimeout,
				MaxResponseHeaderBytes: maxAnswer,
				MaxIdleConnsPerHost:    webhook.MaxInFlight,
				IdleConnTimeout:        time.Minute,
			}},
		},
	}, nil
}

// Send posts a message once, and follows no redirect. An error means that there was no whole answer; it does not hold the
// endpoint's address, which may hold a secret of the receiver's.
func (s *Sender) Send(ctx context.Context, m webhook.Message) (webhook.Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return webhook.Answer{}, errors.New("the address can't be read")
	}
	request.Header = http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {"Bursar"},
		"Webhook-Id":        {m.ID},
		"Webhook-Timestamp": {strconv.FormatInt(m.At.Unix(), 10)},
		"Webhook-Signature": {m.Signature},
	}
	if err := s.guard.CheckURL(request.URL); err != nil {
		return webhook.Answer{}, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return webhook.Answer{}, withoutAddress(err)
	}
	defer response.Body.Close()
	answer := webhook.Answer{Status: response.StatusCode, RetryAfter: s.retryAfter(response.Header.Get("Retry-After"))}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // the status alone decides, also where the body breaks off
	answer.Body = kept(body)
	return answer, nil
}

// withoutAddress drops the address that the client puts before what went wrong.
func withoutAddress(err error) error {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return errors.New(kept([]byte(err.Error())))
	}
	if failed.Timeout() {
		return fmt.Errorf("no answer within %d seconds", int(webhook.SendTimeout/time.Second))
	}
	return errors.New(kept([]byte(failed.Err.Error()))) // a certificate can put any bytes into it
}

// retryAfter is how long the receiver asks us to wait; 0 where it does not say. It is a number of seconds or a date.
func (s *Sender) retryAfter(header string) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		return max(time.Duration(seconds)*time.Second, 0)
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(s.now()), 0)
	}
	return 0
}

// secrets are what receivers send back when they show what they got.
var secrets = regexp.MustCompile(`(whsec_|v1,)[A-Za-z0-9+/=]+`)

// kept is the beginning of an answer, as a text that can be stored and shown.
func kept(body []byte) string {
	body = secrets.ReplaceAll(body, []byte("${1}…"))
	text := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			return -1
		}
		return c
	}, strings.ToValidUTF8(string(body), "�"))
	if len(text) > maxKept {
		text = strings.ToValidUTF8(text[:maxKept], "")
	}
	return text
}
