package work_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"bursar/internal/work"
)

func loop(take func(context.Context, int) ([]work.Step, error)) *work.Loop {
	return &work.Loop{
		Name: "test", Every: time.Second, Workers: 3, StepTimeout: time.Minute, Take: take,
		Done:   func(string, time.Duration, error) {},
		Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	}
}

func TestLoop_StepsFail_OthersDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		due := []int{1, 2, 3, 4, 5, 6, 7}
		done := map[int]int{}
		failed := 0
		l := loop(work.Each(
			func(_ context.Context, limit int) ([]int, error) {
				mu.Lock()
				defer mu.Unlock()
				n := min(limit, len(due))
				taken := due[:n]
				due = due[n:]
				return taken, nil
			},
			func(_ context.Context, id int) error {
				mu.Lock()
				done[id]++
				mu.Unlock()
				switch id {
				case 2:
					return errors.New("broken")
				case 3:
					panic("worse")
				}
				return nil
			}))
		l.Done = func(_ string, _ time.Duration, err error) {
			if err != nil {
				mu.Lock()
				failed++
				mu.Unlock()
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(5 * time.Second); cancel() }()
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		for id := 1; id <= 7; id++ {
			if done[id] != 1 {
				t.Errorf("step %d was done %d times, want once", id, done[id])
			}
		}
		if failed != 2 {
			t.Errorf("%d steps failed, want 2", failed)
		}
	})
}

func TestLoop_Stopped_WaitsForSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var finished atomic.Bool
		var once sync.Once
		l := loop(func(context.Context, int) (steps []work.Step, err error) {
			once.Do(func() {
				steps = []work.Step{func(context.Context) error {
					time.Sleep(time.Minute) // does not heed its context
					finished.Store(true)
					return nil
				}}
			})
			return steps, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if !finished.Load() {
			t.Error("Run returned while a step was under way")
		}
	})
}

func TestLoop_TakeFails_RetriesEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := 0
		l := loop(func(context.Context, int) ([]work.Step, error) {
			takes++
			return nil, errors.New("database away")
		})
		failures := 0
		l.Done = func(_ string, _ time.Duration, err error) {
			if err != nil {
				failures++
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if takes != 11 || failures != 11 {
			t.Errorf("took %d times in ten seconds and told of %d failures, want 11 each", takes, failures)
		}
	})
}

// A panic while due rows are looked for ends no process, and is one more failure.
func TestLoop_TakePanics_IsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes, failed := 0, 0
		l := loop(work.Batch(func(context.Context) (int, error) {
			if takes++; takes == 1 {
				panic("one bad row")
			}
			return 0, nil
		}))
		l.Done = func(_ string, _ time.Duration, err error) {
			if err != nil && strings.Contains(err.Error(), "one bad row") {
				failed++
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		if err := l.Run(ctx); err != nil || failed != 1 || takes != 3 {
			t.Errorf("%d failures of %d takes: %v", failed, takes, err)
		}
	})
}

func TestLoop_Outage_LogIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l := loop(func(context.Context, int) ([]work.Step, error) {
			if away := time.Since(began); away < 25*time.Second || away > 30*time.Second {
				return nil, errors.New("database away")
			}
			return nil, nil
		})
		l.Every = 100 * time.Millisecond
		var lines bytes.Buffer
		l.Logger = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Duration("at", time.Since(began))
				}
				return a
			},
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSpace(`
at=0s level=ERROR msg="due work not leased" loop=test failures=1 error="database away"
at=10s level=ERROR msg="due work not leased" loop=test failures=101 error="database away"
at=20s level=ERROR msg="due work not leased" loop=test failures=201 error="database away"
at=25s level=INFO msg="due work can be leased again" loop=test failures=250 after=25s
at=30.1s level=ERROR msg="due work not leased" loop=test failures=1 error="database away"`)
		if got := strings.TrimSpace(lines.String()); got != want {
			t.Errorf("the log is\n%s\nwant\n%s", got, want)
		}
	})
}

func TestLoop_LeaseNotRecorded_NoStepRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks, steps atomic.Int32
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		l := loop(func(context.Context, int) ([]work.Step, error) {
			if looks.Add(1) > 100 { // without rest, time stands still here
				cancel()
			}
			step := func(context.Context) error { steps.Add(1); return nil }
			return []work.Step{step, step, step}, errors.New("the disk is full")
		})
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if looks.Load() != 4 || steps.Load() != 0 {
			t.Errorf("looked %d times and did %d steps, want a look a second and no step", looks.Load(), steps.Load())
		}
	})
}

func TestLoop_StepsAllFail_LogIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := loop(func(context.Context, int) ([]work.Step, error) {
			fail := func(context.Context) error { return errors.New("the disk is full") }
			return []work.Step{fail, fail}, nil
		})
		l.Workers, l.Every, l.Logger = 1, 10*time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "step failed"); n != 30 || !strings.Contains(log.String(), "suppressed=19") {
			t.Errorf("%d failures were told of, want 10 each 10 seconds, and how many were not:\n%.2000s", n, log.String())
		}
	})
}

func TestBatch_RunsUntilNothingLeft(t *testing.T) {
	left := 5
	take := work.Batch(func(context.Context) (int, error) {
		if left == 0 {
			return 0, nil
		}
		left--
		return 1, nil
	})
	if steps, err := take(t.Context(), 1); err != nil || len(steps) != 0 || left != 0 {
		t.Errorf("steps %v, error %v, %d left; want all done", steps, err, left)
	}
}

func TestLoop_Incomplete_IsError(t *testing.T) {
	if err := (&work.Loop{Name: "half"}).Run(t.Context()); err == nil {
		t.Error("a half-built loop ran")
	}
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		errs := []error{nil, errors.New("the bank is closed\nstack of it"), nil, nil}
		l := loop(nil)
		l.Workers = 1
		l.Take = func(context.Context, int) ([]work.Step, error) {
			switch n := len(errs); n {
			case 0:
				return nil, errors.New("the database is gone")
			default:
				err := errs[0]
				errs = errs[1:]
				return []work.Step{func(context.Context) error { time.Sleep(time.Millisecond); return err }}, nil
			}
		}
		if got := l.Status(); got != (work.Status{}) {
			t.Errorf("before the start: %+v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = l.Run(ctx) })
		time.Sleep(2500 * time.Microsecond)
		synctest.Wait()
		want := work.Status{
			Steps: 2, Failures: 1, LastPollAt: began.Add(2 * time.Millisecond), LastStepAt: began.Add(2 * time.Millisecond),
			LastFailureAt: began.Add(2 * time.Millisecond), LastError: "the bank is closed",
		}
		got := l.Status()
		got.LastPollAt = want.LastPollAt // which runs ahead of the one worker
		if got != want {
			t.Errorf("after two steps %+v, want %+v", got, want)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		got = l.Status()
		if got.Steps != 4 || got.LastError != "the database is gone" || !got.LastFailureAt.After(got.LastStepAt) {
			t.Errorf("after all steps and looks that failed: %+v", got)
		}
		cancel()
		done.Wait()
	})
}

func TestStatus_TruncatesError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop(func(context.Context, int) ([]work.Step, error) {
			return nil, errors.New("x" + strings.Repeat("ü", 1000))
		})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = l.Run(ctx) })
		synctest.Wait()
		if got := l.Status().LastError; len(got) > 310 || !utf8.ValidString(got) || !strings.HasSuffix(got, "ü…") {
			t.Errorf("of a long error %d bytes are kept: %s", len(got), got)
		}
		cancel()
		done.Wait()
	})
}

// TestLoop_StepWaitsLong_IsLeft has a step wait for a worker until its lease is nearly over.
func TestLoop_StepWaitsLong_IsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int64
		var once sync.Once
		l := loop(func(context.Context, int) (steps []work.Step, err error) {
			once.Do(func() {
				for range 3 { // as many as there are workers
					steps = append(steps, func(context.Context) error { time.Sleep(40 * time.Second); return nil })
				}
				for range 2 {
					steps = append(steps, func(context.Context) error { late.Add(1); return nil })
				}
			})
			return steps, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n := late.Load(); n != 0 {
			t.Errorf("%d steps began 20 seconds before their leases may be over", n)
		}
	})
}

// TestLoop_StepWaits_EndsInTime bounds a step that waited by what its lease has left, and reports one that was left.
func TestLoop_StepWaits_EndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var ended time.Duration
		var left atomic.Int64
		var once sync.Once
		l := loop(func(context.Context, int) (steps []work.Step, err error) {
			once.Do(func() {
				wait := func(context.Context) error { time.Sleep(10 * time.Second); return nil }
				hang := func(ctx context.Context) error { <-ctx.Done(); ended = time.Since(began); return nil }
				busy := func(context.Context) error { time.Sleep(time.Minute); return nil }
				steps = []work.Step{wait, busy, busy, hang, wait}
			})
			return steps, nil
		})
		l.Done = func(_ string, _ time.Duration, err error) {
			if err != nil {
				left.Add(1)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if ended != time.Minute {
			t.Errorf("a step that waited ends %s after its lease, want a minute", ended)
		}
		if n := left.Load(); n != 1 {
			t.Errorf("%d steps are reported as left, want 1", n)
		}
	})
}
