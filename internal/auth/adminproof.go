package auth

import (
	"context"
	"strings"

	"bursar/internal/decision"
	"bursar/internal/fault"
)

// ErrAdminFactor keeps an admin from everything but enrolling a second factor, where [Options.AdminFactor] is set.
var ErrAdminFactor = fault.New(fault.Forbidden, "admin_factor_required",
	"Admins need a second factor here. Add one with POST /api/auth/factors or on your profile page, then try again.")

const adminPrefix = "admin."

// AdminAction is what permits an admin's decision. It is bound to the id of what the decision is about.
func AdminAction(a decision.Action) Action { return adminPrefix + Action(a) }

// IsAdmins reports whether a proof permits an admin's decision.
func (a Action) IsAdmins() bool {
	name, admins := strings.CutPrefix(string(a), adminPrefix)
	return admins && decision.Action(name).Guarded()
}

// CheckAdmin fails with [ErrAdminFactor] if the user is an admin who needs a second factor and has none.
func (s *Service) CheckAdmin(ctx context.Context, p Principal) error {
	if !s.o.AdminFactor || p.Role != Admin {
		return nil
	}
	all, err := s.o.Store.FactorsOf(ctx, p.UserID)
	if err == nil && !hasFactor(all) {
		err = ErrAdminFactor
	}
	return err
}

// ProveDecision uses up the proof of an admin who has a second factor, before a decision is carried out: a decision that then
// fails needs another proof. It fails with [ErrStepUp], or with [ErrToken] if the session ended meanwhile.
func (s *Service) ProveDecision(ctx context.Context, p Principal, a decision.Action, subject string) error {
	return s.o.Store.InTx(ctx, func(tx Tx) error {
		if _, err := s.userOfSession(ctx, tx, p); err != nil {
			return err
		}
		return s.RequireProof(ctx, tx, p, AdminAction(a), subject)
	})
}
