package app

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
)

// stage is a part of the service. It runs until its context ends, and returns once it has stopped.
type stage func(ctx context.Context) error

// runStages runs all stages until ctx ends or one of them does. Then it stops them last to first, each
// after the one before has stopped, so that a stage may rely on those above it to the end.
func runStages(ctx context.Context, stages ...stage) error {
	group, over := errgroup.WithContext(ctx)
	var stops []func()
	for _, run := range stages {
		// A signal ends ctx, and must not end all stages at once.
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		stopped := make(chan struct{})
		group.Go(func() error {
			defer close(stopped)
			return run(own)
		})
		stops = append(stops, func() {
			stop()
			<-stopped
		})
	}
	<-over.Done()
	for _, stop := range slices.Backward(stops) {
		stop()
	}
	return group.Wait()
}

// beside makes one stage of several that do not rely on each other.
func beside(stages ...stage) stage {
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, run := range stages {
			group.Go(func() error { return run(ctx) })
		}
		return group.Wait()
	}
}

// inTurn makes one stage of two: the second begins when the first is done.
func inTurn(first, second stage) stage {
	return func(ctx context.Context) error {
		if err := first(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		return second(ctx)
	}
}
