package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bursar/internal/decision"
	"bursar/internal/payout"
)

type payoutsCmd struct {
	Pause  payoutsPauseCmd  `cmd:"" help:"Stop the payouts of all sellers."`
	Resume payoutsResumeCmd `cmd:"" help:"Send the payouts that wait, and allow new ones."`
}

type payoutsPauseCmd struct {
	Reason string `required:"" help:"Why, for the record of decisions."`
	JSON   bool   `help:"Print whether payouts are paused as JSON."`
}

func (payoutsPauseCmd) Help() string {
	return "Until they are resumed no payout can be requested, and none that waits is sent, on any instance. What was handed to the payment gateway before goes on. " +
		"It works beside a running server.\n\n" + examples(`bursar payouts pause --reason "The bank has trouble, ticket 4711"`)
}

// Run pauses the payouts of all sellers.
func (c payoutsPauseCmd) Run(ctx context.Context, e *env) error {
	return pauseOrResume(ctx, e, decision.PausePayouts, c.Reason, c.JSON, "All payouts are paused. Resume them with: bursar payouts resume --reason REASON")
}

type payoutsResumeCmd struct {
	Reason string `required:"" help:"Why, for the record of decisions."`
	JSON   bool   `help:"Print whether payouts are paused as JSON."`
}

func (payoutsResumeCmd) Help() string {
	return "The payouts that waited are sent, and new ones can be requested. Sellers whose payouts are frozen stay so.\n\n" +
		examples(`bursar payouts resume --reason "The bank is back, ticket 4711"`)
}

// Run resumes the payouts of all sellers.
func (c payoutsResumeCmd) Run(ctx context.Context, e *env) error {
	return pauseOrResume(ctx, e, decision.ResumePayouts, c.Reason, c.JSON, "Payouts are resumed. Those that waited are sent.")
}

func pauseOrResume(ctx context.Context, e *env, action decision.Action, reason string, asJSON bool, done string) error {
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	by := decision.By{Operator: operator(), Note: strings.TrimSpace(reason)}
	if err := payout.PauseOrResume(ctx, datastore.DB().Payouts(), by, action, time.Now()); err != nil {
		return err
	}
	if asJSON {
		return writeJSON(e.out, map[string]bool{"paused": action == decision.PausePayouts})
	}
	_, err = fmt.Fprintln(e.out, done)
	return err
}
