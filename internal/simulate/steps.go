package simulate

import (
	"context"
	"errors"

	port "bursar/internal/gateway"
	"bursar/internal/payout"
)

// stepName is what a worker is called who takes a payout's step.
func stepName(on *instance) string { return on.name + " " + loopNames[payouts] + " step" }

// takeDue leases what is due and begins its steps, each by a worker of its own, as a loop does.
func takeDue[ID ~string](m *market, on *instance, loop int,
	take func(context.Context, int) ([]ID, error), step func(context.Context, ID) error,
) {
	ids, err := take(m.ctx, workers)
	if err != nil {
		m.note("", "", "can't take what is due: "+firstLine(err))
		return
	}
	for _, id := range ids {
		m.work(on, 0, loopNames[loop]+" step", func() {
			m.current.about = payout.ID(id) // in the other loops there is no such payout
			err := step(m.ctx, id)
			m.guard(err)
			if err != nil && !errors.Is(err, port.ErrUnknownTransfer) {
				m.note(string(id), "", "step: "+firstLine(err))
			}
		})
	}
	if len(ids) == workers {
		m.look(on, loop)
	}
}
