package simulate

import (
	"time"

	"bursar/internal/money"
)

// tariff is a fee that was agreed: a flat amount, and a share in basis points, with tax on both.
type tariff struct {
	text        string
	flat, share money.Amount
}

// tariffs take turns. Instances have the present one from their next start on.
var tariffs = []tariff{{"5+0.5%+tax18%", 500, 50}, {"8+1.25%+tax18%", 800, 125}}

// of is the fee on a payout. The share and the tax of 18 percent are each rounded half up.
func (t tariff) of(amount money.Amount) money.Amount {
	charge := t.flat + (amount*t.share+5_000)/10_000
	return charge + (charge*1_800+5_000)/10_000
}

// changeFeeEvery spaces changes of the fee.
func (m *market) changeFeeEvery() time.Duration { return max(36*time.Hour, m.end()/30) }

// changeFee agrees on another fee, and has an instance started again. What was requested before keeps its fee.
func (m *market) changeFee() {
	m.feesChanged++
	m.note("", "", "the fee is "+m.tariff().text+" from now on")
	m.restart(one(m, m.machines), time.Minute)
}

func (m *market) tariff() tariff { return tariffs[m.feesChanged%len(tariffs)] }

// restart stops the instance on a machine within a time, and starts it again.
func (m *market) restart(mc *machine, within time.Duration) {
	m.after(m.between(0, within), func() {
		if mc.on == nil || m.closing {
			return
		}
		m.note("", "", mc.name+" is stopped, to be configured otherwise")
		m.shutDown(mc.on)
		m.after(m.between(time.Second, 20*time.Second), func() { m.startUp(mc) })
	})
}
