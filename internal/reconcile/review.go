package reconcile

import (
	"context"
	"slices"

	"bursar/internal/payout"
)

// review looks again at differences that are open.
type review struct {
	s      *Service
	open   []Difference
	read   coverage
	looked map[string]bool

	found []Difference
	// stays are the ids of those that are still there, or could not be looked at.
	stays map[string]bool
}

// about lists what the open differences that fit are about.
func (r *review) about(fits func(Difference) bool) []string {
	var subjects []string
	for _, d := range r.open {
		if fits(d) {
			subjects = append(subjects, d.Subject)
		}
	}
	return unique(subjects)
}

func (r *review) keep(d Difference) {
	r.found = append(r.found, d)
	r.stays[idOf(d.Kind, r.s.at(), d.Subject)] = true
}

// payouts judges the payouts again.
func (r *review) payouts(ctx context.Context) error {
	var ids []payout.ID
	for _, subject := range r.about(func(d Difference) bool { return d.Payout != "" }) {
		ids = append(ids, payout.ID(subject))
	}
	all, err := r.s.caseFiles(ctx, ids, r.read)
	for _, d := range all {
		found, judged := d.judge()
		for _, f := range found {
			r.keep(f)
		}
		if !judged && !d.elsewhere() { // of another gateway's payout the lines alone say that nothing differs
			r.leave(string(d.p.ID))
		}
	}
	return err
}

// leave keeps what is said about a subject as it is.
func (r *review) leave(subject string) {
	for _, d := range r.open {
		if d.Subject == subject {
			r.stays[d.ID] = true
		}
	}
}

// unmatched looks whether the ledger knows the transfers by now.
func (r *review) unmatched(ctx context.Context) error {
	names := r.about(func(d Difference) bool { return d.Kind == LineWithoutPayout })
	all, err := r.s.unmatched(ctx, r.s.at(), names)
	for _, name := range names {
		if one, isOne := all[name]; isOne && !one.isExplained() {
			r.keep(one.Difference)
		}
	}
	return err
}

// lines checks whether the lines are unchanged and still there.
func (r *review) lines(ctx context.Context) error {
	ids := r.about(func(d Difference) bool { return d.isAboutLine() })
	lines, err := r.s.o.Store.LinesByID(ctx, ids)
	for _, d := range r.open {
		i := slices.IndexFunc(lines, func(l Line) bool { return l.ID == d.Subject && l.Gateway == d.Gateway })
		switch {
		case !d.isAboutLine() || i < 0:
		case d.Kind == LineChanged && (lines[i].Missing || lines[i].FirstReported != lines[i].LastReported):
			r.keep(lines[i].change())
		case d.Kind != LineChanged && !lines[i].Missing:
			r.stays[d.ID] = true
		}
	}
	return err
}

func (d Difference) isAboutLine() bool {
	return d.Kind == LineChanged || d.Kind == UnexplainedDebit || d.Kind == CurrencyDiffers && d.Payout == ""
}

// gone lists those that were looked for and not found. A gap stays until its day is followed again.
func (r *review) gone() []Difference {
	var gone []Difference
	for _, d := range r.open {
		switch {
		case r.stays[d.ID]:
		case d.Kind == StatementHasGap && !r.looked[d.Subject]:
		default:
			gone = append(gone, d)
		}
	}
	return gone
}
