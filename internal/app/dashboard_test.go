package app

import (
	"context"
	"testing"
)

func TestBackground_StopsWithService(t *testing.T) {
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
	if len(ended) != 1 {
		t.Fatal("the stage stopped before what it runs")
	}
	if err := <-ended; err == nil {
		t.Error("what runs was not told to stop")
	}
	begin(func(ctx context.Context) { ended <- ctx.Err() }) // too late, and told so
	if err := <-ended; err == nil {
		t.Error("what begins after the end is not told to stop")
	}
}
