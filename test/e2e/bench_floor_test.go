//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/id"
)

// floor is the least that the same answers could cost: a bare net/http handler over a database of its own, with the
// service's driver and durability, and nothing of its code. It authenticates nobody, checks nothing but the
// balance, and has constant answers.
//
//   - POST /request reads the JSON body and the Idempotency-Key, and answers once its rows are durable. The bearer
//     token is the seller's id. See sqliteFloor and postgresFloor for the rows.
//   - GET /me, /balance and /history take the bearer token for a session id, read that session by its key, and then
//     what the path asks for with one more statement by key: the user's row, the balance's row, the latest ten payouts.
type floor struct {
	url     string
	client  *http.Client
	sellers int
	next    atomic.Int64
	// answers are the bodies by path. They are as long as the service's.
	answers map[string][]byte
}

// floorStore is the database of a floor. Its rows are made by its engine.
type floorStore interface {
	// request returns once the payout is durable.
	request(r *floorRequest) error
	// session returns the session's seller.
	session(ctx context.Context, id string) (seller string, err error)
	user(ctx context.Context, seller string) error
	balance(ctx context.Context, seller string) error
	history(ctx context.Context, seller string) error
}

// floorRequest is a payout that is to be made.
type floorRequest struct {
	seller, key, payout, notes string
	amount                     int64
	at                         int64
	answer                     chan error
}

const (
	floorEarned  = int64(earned)
	floorHistory = 10 // payouts of each seller that are there
	maxInGroup   = 256
)

var errFloorInsufficient = errors.New("the balance is insufficient")

func floorSeller(i int) string  { return fmt.Sprintf("usr_%024d", i) }
func floorSession(i int) string { return fmt.Sprintf("ses_%024d", i) }
func floorPayout(seller, i int) string {
	return fmt.Sprintf("pyt_0000%015d%05d", i, seller)
}

// newFloor starts the floor of an engine.
func newFloor(b *testing.B, on engine, sellers int) *floor {
	b.Helper()
	database := on.database(b)
	var s floorStore
	if path, isSQLite := strings.CutPrefix(database, "sqlite:"); isSQLite {
		s = newSQLiteFloor(b, path, sellers)
	} else {
		s = newPostgresFloor(b, database, sellers)
	}
	f := &floor{client: newClient(b), sellers: sellers, answers: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /request", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Amount int64
			Notes  string
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		if err == nil {
			now := time.Now()
			err = s.request(&floorRequest{
				seller: bearer(r), key: r.Header.Get("Idempotency-Key"), payout: id.New("pyt_", now), notes: body.Notes,
				amount: body.Amount * 100, at: now.UnixMicro(), answer: make(chan error, 1),
			})
		}
		f.reply(w, r, http.StatusCreated, err)
	})
	for path, read := range map[string]func(context.Context, string) error{"/me": s.user, "/balance": s.balance, "/history": s.history} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			ctx := context.WithoutCancel(r.Context()) // a context that can end costs database/sql a goroutine per statement
			seller, err := s.session(ctx, bearer(r))
			if err == nil {
				err = read(ctx, seller)
			}
			f.reply(w, r, http.StatusOK, err)
		})
	}
	server := httptest.NewServer(mux)
	f.url = server.URL
	b.Cleanup(func() {
		f.client.CloseIdleConnections()
		server.Close()
	})
	return f
}

func bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (f *floor) reply(w http.ResponseWriter, r *http.Request, status int, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(f.answers[r.URL.Path])
}

// requests returns a side that requests payouts, of as many sellers as are given, under a key each.
func (f *floor) requests(sellers int) side {
	return side{"floor", func(ctx context.Context) error {
		_, err := ask(ctx, f.client, http.MethodPost, f.url+"/request", floorSeller(int(f.next.Add(1))%sellers), payoutBody, "Idempotency-Key", id.Random(20))
		return err
	}}
}

// reads returns a side that reads a path, as one seller after another.
func (f *floor) reads(path string) side {
	return side{"floor", func(ctx context.Context) error {
		_, err := ask(ctx, f.client, http.MethodGet, f.url+path, floorSession(int(f.next.Add(1))%f.sellers), "")
		return err
	}}
}

// takeGroup waits for a request and adds those that wait behind it. It returns none when the queue is closed.
func takeGroup(queue <-chan *floorRequest) []*floorRequest {
	var group []*floorRequest
	for r := range queue {
		group = append(group, r)
		if len(queue) == 0 || len(group) == maxInGroup {
			break
		}
	}
	return group
}
