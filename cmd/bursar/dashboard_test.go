package main

import (
	"context"
	"testing"
)

func TestWhatRunsInTheBackgroundEndsWithTheService(t *testing.T) {
	begin, run := newBackground()
	began, ended := make(chan struct{}), make(chan error, 1)
	begin(func(ctx context.Context) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
	})
	<-began
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- run(ctx) }()
	stop()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	default:
		t.Error("the stage stopped before what it runs")
	}
	begin(func(ctx context.Context) { ended <- ctx.Err() }) // too late, and told so
	if err := <-ended; err == nil {
		t.Error("what begins after the end is not told to stop")
	}
}
