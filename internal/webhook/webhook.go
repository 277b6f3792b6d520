// Package webhook tells the marketplace's servers what happened: each event of the feed is delivered to every endpoint that
// asks for its type, as Standard Webhooks 1.0 has it.
//
// A delivery is a row, inserted in the transaction that numbers its event, so that none is lost. The worker leases an
// endpoint, never a delivery, and sends what is due there. So an endpoint that is slow or dead keeps one worker busy and
// delays no other. While an endpoint only fails, it is tried with one delivery at a time, and ever more seldom.
package webhook

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bursar/internal/event"
	"bursar/internal/fault"
	"bursar/internal/limits"
)

// Prefixes of identifiers.
const (
	EndpointPrefix = "whe_"
	DeliveryPrefix = "whd_"
	pingPrefix     = "ping_"
)

// Limits.
const (
	MaxEndpoints   = 20
	maxURL         = 2000
	maxDescription = 200
	// MaxRedelivered bounds how many events one call sends again.
	MaxRedelivered = 1000
)

// Status says whether events are delivered to an endpoint.
type Status string

// Statuses of endpoints.
const (
	Enabled  Status = "enabled"
	Disabled Status = "disabled"
)

// Why an endpoint is disabled.
const (
	ByHand  = "disabled"
	Gone    = "gone"    // it answered 410
	Failing = "failing" // nothing was delivered for days
)

// Endpoint is where events are delivered.
type Endpoint struct {
	ID, URL string
	// Types are those of the events that are delivered, sorted; none stands for all.
	Types       []event.Type
	Description string
	Status      Status
	// Reason is why it is disabled, or empty.
	Reason string
	// Secret signs deliveries, and so do OldSecrets until OldUntil, newest first. They are encrypted.
	Secret     string
	OldSecrets []string
	OldUntil   time.Time
	CreatedAt  time.Time
	Health
	// Tampered says that the service did not write the row; nothing is delivered then.
	Tampered bool
}

// Health is how deliveries to an endpoint go.
type Health struct {
	// Failures are those since anything was delivered, and FailingSince is when the first of them was; zero while all is well.
	Failures     int64
	FailingSince time.Time
	// RetryAt is when deliveries go on.
	RetryAt         time.Time
	LastDeliveredAt time.Time
}

// Wants reports whether events of a type are delivered.
func (e *Endpoint) Wants(t event.Type) bool {
	return len(e.Types) == 0 || slices.Contains(e.Types, t)
}

// NeedsAttention reports whether a person has to decide what becomes of the endpoint: the service disabled it, or did not
// write it.
func (e *Endpoint) NeedsAttention() bool {
	return e.Tampered || e.Status == Disabled && e.Reason != ByHand
}

// DeliveryStatus says how far a delivery is.
type DeliveryStatus string

// Statuses of deliveries.
const (
	Pending   DeliveryStatus = "pending"
	Delivered DeliveryStatus = "delivered"
	Failed    DeliveryStatus = "failed"
)

// IsValid reports whether s is one of them.
func (s DeliveryStatus) IsValid() bool { return s == Pending || s == Delivered || s == Failed }

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID, EventID, EndpointID string
	Status                  DeliveryStatus
	// Attempt counts the attempts.
	Attempt int64
	// ResponseStatus and Answer are those of the last attempt; 0 without an answer, and then Problem says why.
	ResponseStatus int
	Answer         string
	Problem        string
	CreatedAt      time.Time
	// At is when the last attempt ended, and DueAt when the next one is due; zero for none.
	At, DueAt time.Time
}

// Filter selects deliveries. Empty fields select all.
type Filter struct {
	Endpoint, Event string
	Status          DeliveryStatus
	// Before is the id of the last delivery of the page before, or empty.
	Before string
	Limit  int
}

// Message is what is sent to an endpoint.
type Message struct {
	URL       string
	ID        string
	At        time.Time
	Signature string
	Body      []byte
}

// Answer is what an endpoint answered.
type Answer struct {
	Status int
	// Body is the beginning of it.
	Body string
	// RetryAfter is how long the endpoint asks us to wait; 0 where it does not.
	RetryAfter time.Duration
}

// Succeeded reports whether the endpoint took the message. A redirect is none that is followed.
func (a Answer) Succeeded() bool { return a.Status >= 200 && a.Status < 300 }

// Failures that callers may see.
var (
	ErrNotFound      = fault.New(fault.NotFound, "endpoint_not_found", "No webhook endpoint has this id.")
	ErrEventNotFound = fault.New(fault.NotFound, "event_not_found", "No event has this id.")
	ErrTaken         = fault.New(fault.Conflict, "endpoint_exists", "An endpoint has this address already. Change that one.")
	ErrTooMany       = fault.New(fault.Conflict, "too_many_endpoints", "There are 20 endpoints, which is the most. Remove one first.")
	ErrDisabled      = fault.New(fault.Conflict, "endpoint_disabled", "The endpoint is disabled, so nothing is delivered. Enable it first.")
	ErrTampered      = fault.New(fault.Conflict, "endpoint_tampered", "The endpoint was changed outside Bursar, so nothing is delivered. Remove it and add it again.")
	ErrTestedOften   = fault.New(fault.TooMany, "too_many_attempts", "The endpoint was tested often just now. Try again in a minute.")
)

// Where is the endpoint's address without the query, which may hold a secret of the receiver's.
func (e *Endpoint) Where() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	u.RawQuery = ""
	return u.String()
}

// CheckURL returns what is wrong with the address of an endpoint, or "". Events tell what sellers earn, so it is https,
// except on this machine.
func CheckURL(address string) string {
	if len(address) > maxURL {
		return fmt.Sprintf("must be at most %d bytes", maxURL)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Hostname() == "", strings.ContainsFunc(address, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return "must be an address such as https://shop.example/webhooks"
	case u.User != nil:
		return "must not hold a name or password"
	case u.Fragment != "":
		return "must not have a part behind #"
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return ""
	default:
		return "must begin with https://; only an address on this machine may begin with http://"
	}
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// CheckDescription returns what is wrong with a description, or "".
func CheckDescription(text string) string {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxDescription || strings.ContainsFunc(text, limits.IsControl) {
		return fmt.Sprintf("must be at most %d characters, none of them control characters", maxDescription)
	}
	return ""
}

// ParseTypes reads types of events; a fault names the field.
func ParseTypes(names []string) ([]event.Type, error) {
	types := make([]event.Type, 0, len(names))
	for _, name := range names {
		if !slices.Contains(event.Types(), event.Type(name)) {
			return nil, fault.Field("types", "must be types of events such as payout.completed")
		}
		types = append(types, event.Type(name))
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

// pingBody is the message of a test.
func pingBody(endpoint string, at time.Time) ([]byte, error) {
	type data struct {
		EndpointID string `json:"endpointId"`
	}
	return json.Marshal(struct {
		Type      string `json:"type"`
		Timestamp string `json:"timestamp"`
		Data      data   `json:"data"`
	}{"ping", at.UTC().Format(time.RFC3339Nano), data{endpoint}})
}
