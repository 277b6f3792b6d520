package app

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// diary keeps the order in which things happen.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func TestStagesStopLastToFirst(t *testing.T) {
	var d diary
	ctx, interrupt := context.WithCancel(t.Context())
	var started sync.WaitGroup
	started.Add(3)
	named := func(name string) stage {
		return func(ctx context.Context) error {
			started.Done()
			<-ctx.Done()
			d.note(name)
			return nil
		}
	}
	go func() {
		started.Wait()
		interrupt()
	}()
	if err := runStages(ctx, named("sandbox"), named("work"), named("api")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"api", "work", "sandbox"}, d.lines); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
}

func TestRunStages_OneFails_OthersStop(t *testing.T) {
	var d diary
	broken := errors.New("broken")
	wait := func(ctx context.Context) error {
		<-ctx.Done()
		d.note("the other stopped")
		return nil
	}
	err := runStages(t.Context(), beside(wait, wait), func(context.Context) error { return broken }, wait)
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if len(d.lines) != 3 {
		t.Errorf("%d others stopped, want 3", len(d.lines))
	}
}
