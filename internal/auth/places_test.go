package auth

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"bursar/internal/fault"
)

// hall is places in which people wait.
type hall struct {
	t *testing.T
	*places
	served chan string // whose turn came, until then they wait
	leave  map[string]func()
}

func newHall(t *testing.T, n int) *hall {
	t.Helper()
	return &hall{t, newPlaces(n), make(chan string, 10_000), map[string]func(){}}
}

// come has somebody wait in the background for a place, and leave it at once when they have it.
func (h *hall) come(from source, name string) (outcome chan error) {
	outcome = make(chan error, 1)
	go func() {
		leave, err := h.enter(h.t.Context(), from)
		if err == nil {
			h.served <- name
			leave()
		}
		outcome <- err
	}()
	synctest.Wait()
	return outcome
}

// hold takes all places with attempts that last until the returned function is called.
func (h *hall) hold(n int) (end func()) {
	h.t.Helper()
	var leaves []func()
	for i := range n {
		leave, err := h.enter(h.t.Context(), source{name: fmt.Sprint("holder ", i)})
		if err != nil {
			h.t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	return func() {
		for _, leave := range leaves {
			leave()
		}
	}
}

func (h *hall) order(n int) (names []string) {
	for range n {
		names = append(names, <-h.served)
	}
	return names
}

func wantRefused(t *testing.T, err, want error) {
	t.Helper()
	if f := fault.From(err); !errors.Is(err, want) || f.RetryAfter <= 0 {
		t.Errorf("error %v, want %v with a time to wait", err, want)
	}
}

func TestPlaces_SourcesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 1)
		end := h.hold(1)
		for i := range 3 {
			h.come(source{name: "flood"}, fmt.Sprint("flood ", i))
		}
		h.come(source{name: "b"}, "b")
		h.come(source{known: true, name: "asha"}, "asha")
		h.come(source{known: true, name: "ravi"}, "ravi")
		end()
		want := "[asha flood 0 ravi b flood 1 flood 2]"
		if got := fmt.Sprint(h.order(6)); got != want {
			t.Errorf("served %s, want %s", got, want)
		}
	})
}

func TestPlaces_OneSourceNeverHasAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, placesPerSource+1)
		flood := source{name: "flood"}
		var leaves []func()
		for range placesPerSource {
			leave, err := h.enter(t.Context(), flood)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		waits := h.come(flood, "one more")
		leave, err := h.enter(t.Context(), source{name: "somebody else"})
		if err != nil {
			t.Fatal(err)
		}
		leave()
		synctest.Wait()
		if len(h.served) != 0 {
			t.Error("the place that was left went to the flood")
		}
		leaves[0]()
		if err := <-waits; err != nil {
			t.Error(err)
		}
	})
}

func TestPlaces_FullLineTakesFromTheLargestSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 1)
		end := h.hold(1)
		flood := make([]chan error, maxWaiting)
		for i := range flood {
			flood[i] = h.come(source{name: "flood"}, "flood")
		}
		wantRefused(t, <-h.come(source{name: "flood"}, "flood"), ErrThrottled)
		asha := h.come(source{name: "a"}, "asha")
		wantRefused(t, <-flood[maxWaiting-1], ErrThrottled)
		knows := h.come(source{known: true, name: "ravi"}, "ravi") // in a line of their own
		select {
		case err := <-flood[maxWaiting-2]:
			t.Errorf("a known device took the place of an unknown one: %v", err)
		default:
		}
		end()
		for _, outcome := range append(flood[:maxWaiting-1], asha, knows) {
			if err := <-outcome; err != nil {
				t.Error(err)
			}
		}
		if p := h.places; p.free != 1 || len(p.taken) != 0 || p.lines[0].waiting+p.lines[1].waiting+len(p.lines[0].turns)+len(p.lines[1].turns) != 0 {
			t.Errorf("left over: %+v", p)
		}
	})
}

func TestPlaces_FullLineOfManySources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 1)
		defer h.hold(1)()
		for i := range maxWaiting {
			h.come(source{name: fmt.Sprint(i)}, "one each")
		}
		wantRefused(t, <-h.come(source{name: "one more"}, "one more"), ErrBusy) // taking from another would only change who waits
	})
}

func TestPlaces_CallerLeavesWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 1)
		end := h.hold(1)
		ctx, cancel := context.WithCancel(t.Context())
		outcome := make(chan error, 1)
		go func() {
			_, err := h.enter(ctx, source{name: "a"})
			outcome <- err
		}()
		synctest.Wait()
		cancel()
		err := <-outcome
		wantRefused(t, err, ErrBusy)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v does not say that the caller left", err)
		}
		end()
		if h.places.free != 1 || len(h.places.lines[1].turns) != 0 {
			t.Errorf("left over: %+v", h.places)
		}
	})
}
