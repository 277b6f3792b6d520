package dashboard

import (
	"context"
	"errors"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/payout"
)

// stopView is the page on which an admin stops payouts or resumes them.
type stopView struct {
	stopAction
	// Of is the seller; empty where it is about all sellers.
	Of   *personRow
	Back string
	Form *form
}

// stopAction is one of the four decisions about whether payouts are sent.
type stopAction struct {
	Title, Submit string
	// Does says what it does, and DoesNot what it leaves alone.
	Does, DoesNot string
	done          notice
	decides       decision.Action
	// stale is what it fails with once it has been done by someone else.
	stale error
	do    func(Payouts, context.Context, decision.By, string) error
}

// Where payouts of all sellers are paused and resumed.
const (
	pausePath  = adminHome + "/pause"
	resumePath = adminHome + "/resume"
)

var (
	freezeAction = stopAction{
		Title: "Freeze payouts", Submit: "Freeze payouts", done: "payouts-frozen", decides: decision.FreezePayouts, stale: payout.ErrFrozen,
		Does:    "None of their payouts can be requested, and none that waits is sent, until you resume them. The seller reads that our team has frozen them.",
		DoesNot: "What was handed to the payment gateway before goes on. The seller can still sign in, sell, and cancel what waits.",
		do: func(p Payouts, ctx context.Context, by decision.By, seller string) error {
			return p.Freeze(ctx, by, seller)
		},
	}
	unfreezeAction = stopAction{
		Title: "Resume payouts", Submit: "Resume payouts", done: "payouts-unfrozen", decides: decision.UnfreezePayouts, stale: payout.ErrNotFrozen,
		Does:    "The payouts that wait are sent, and new ones can be requested.",
		DoesNot: "A hold after a change of the bank account or the sign-in stays until its end.",
		do: func(p Payouts, ctx context.Context, by decision.By, seller string) error {
			return p.Unfreeze(ctx, by, seller)
		},
	}
	pauseAction = stopAction{
		Title: "Pause all payouts", Submit: "Pause all payouts", done: "payouts-paused", decides: decision.PausePayouts, stale: payout.ErrPaused,
		Does:    "No payout of any seller can be requested, and none that waits is sent, on any instance, until you resume them.",
		DoesNot: "What was handed to the payment gateway before goes on. Sales, sign-in and everything else work as before.",
		do:      func(p Payouts, ctx context.Context, by decision.By, _ string) error { return p.Pause(ctx, by) },
	}
	resumeAction = stopAction{
		Title: "Resume all payouts", Submit: "Resume all payouts", done: "payouts-resumed", decides: decision.ResumePayouts, stale: payout.ErrNotPaused,
		Does:    "The payouts that wait are sent, and new ones can be requested.",
		DoesNot: "Sellers whose payouts are frozen stay so.",
		do:      func(p Payouts, ctx context.Context, by decision.By, _ string) error { return p.Resume(ctx, by) },
	}
)

// pausedView says on the home page that payouts are paused, and by which decision.
type pausedView struct {
	By         *decisionRow
	ResumePath string
}

// stopRoutes are the pages that stop payouts and resume them.
func (d *dashboard) stopRoutes() []route {
	seller := adminHome + "/sellers/{id}"
	return []route{
		{"GET", seller + "/freeze", admins, d.askToStop(freezeAction, d.sellerToStop)},
		{"POST", seller + "/freeze", admins, d.stop(freezeAction, d.sellerToStop)},
		{"GET", seller + "/unfreeze", admins, d.askToStop(unfreezeAction, d.sellerToStop)},
		{"POST", seller + "/unfreeze", admins, d.stop(unfreezeAction, d.sellerToStop)},
		{"GET", pausePath, admins, d.askToStop(pauseAction, d.allToStop)},
		{"POST", pausePath, admins, d.stop(pauseAction, d.allToStop)},
		{"GET", resumePath, admins, d.askToStop(resumeAction, d.allToStop)},
		{"POST", resumePath, admins, d.stop(resumeAction, d.allToStop)},
	}
}

// sellerToStop finds the seller that the address names.
func (d *dashboard) sellerToStop(ctx context.Context, v *pageRequest) (*stopView, error) {
	user, _, err := d.user(ctx, v)
	if err != nil {
		return nil, err
	}
	return &stopView{Of: &personRow{user}, Back: personAddress(user.ID)}, nil
}

func (d *dashboard) allToStop(context.Context, *pageRequest) (*stopView, error) {
	return &stopView{Back: adminHome}, nil
}

type findToStop func(context.Context, *pageRequest) (*stopView, error)

func (d *dashboard) showStop(ctx context.Context, v *pageRequest, s *stopView, a stopAction) (page, error) {
	s.stopAction = a
	s.Form = &form{Action: v.r.URL.Path, Submit: a.Submit, Fields: []field{noteField(false)}}
	return show("admin-stop", a.Title, s), d.askForCode(ctx, v, s.Form)
}

// askToStop asks for the decision.
func (d *dashboard) askToStop(a stopAction, find findToStop) handler {
	return func(ctx context.Context, v *pageRequest) (page, error) {
		s, err := find(ctx, v)
		if err != nil {
			return page{}, err
		}
		return d.showStop(ctx, v, s, a)
	}
}

// stop carries it out.
func (d *dashboard) stop(a stopAction, find findToStop) handler {
	return func(ctx context.Context, v *pageRequest) (page, error) {
		s, err := find(ctx, v)
		if err != nil {
			return page{}, err
		}
		owner, by := decision.Platform, byOf(v)
		if s.Of != nil {
			owner = s.Of.ID
		}
		if err = by.RequireNote(); err == nil {
			err = d.proveDecision(ctx, v, a.decides, owner)
		}
		if err == nil {
			err = a.do(d.o.Payouts, ctx, by, owner)
		}
		switch {
		case errors.Is(err, a.stale):
			return goTo(s.Back).saying("no-longer-fits"), nil
		case err != nil:
			p, showErr := d.showStop(ctx, v, s, a)
			if showErr != nil {
				return page{}, errors.Join(err, showErr)
			}
			return d.again(ctx, p, s.Form.fill(v.form), err)
		default:
			return goTo(s.Back).saying(a.done), nil
		}
	}
}

// paused is what the home page says while payouts are paused, else nil.
func (d *dashboard) paused(ctx context.Context) (*pausedView, error) {
	is, err := d.o.Payouts.Paused(ctx)
	if err != nil || !is {
		return nil, err
	}
	rows, err := d.decisionsAbout(ctx, decision.Platform)
	if err != nil {
		return nil, err
	}
	shown := &pausedView{ResumePath: resumePath}
	for i := range rows {
		if rows[i].Action == decision.PausePayouts {
			shown.By = &rows[i]
			break
		}
	}
	return shown, nil
}

// freezeWith freezes the payouts of a user who is being suspended. That they are frozen already is no failure.
func (d *dashboard) freezeWith(ctx context.Context, by decision.By, user auth.User) error {
	err := d.o.Payouts.Freeze(ctx, by, user.ID)
	if errors.Is(err, payout.ErrFrozen) {
		err = nil
	}
	return err
}
