package store

import (
	"sync"

	"bursar/internal/ledger"
)

// The tables that money is written to.
var (
	journalTable = &table[journalMove]{
		name: "journals", texts: &sync.Map{},
		columns: []column[journalMove]{
			asText("owner", key, func(m *journalMove) string { return m.Owner }),
			asNumber("number", seen, func(m *journalMove) int64 { return m.from }),
			asNumber("number", set, func(m *journalMove) int64 { return m.Number }),
			asText("hash", set, func(m *journalMove) string { return string(m.Hash) }),
			asText("mac", set, func(m *journalMove) string { return m.MAC }),
			asNumber("pending", set, func(m *journalMove) int64 { return int64(m.Pending) }),
			asNumber("available", set, func(m *journalMove) int64 { return int64(m.Available) }),
			asNumber("in_transit", set, func(m *journalMove) int64 { return int64(m.InTransit) }),
			asNumber("earned", set, func(m *journalMove) int64 { return int64(m.Earned) }),
			asNumber("withdrawn", set, func(m *journalMove) int64 { return int64(m.Withdrawn) }),
			asNumber("sales", set, func(m *journalMove) int64 { return m.Counts.Sales }),
			asNumber("processing", set, func(m *journalMove) int64 { return m.Counts.Processing }),
			asNumber("completed", set, func(m *journalMove) int64 { return m.Counts.Completed }),
			asNumber("failed", set, func(m *journalMove) int64 { return m.Counts.Failed }),
			asNumber("cancelled", set, func(m *journalMove) int64 { return m.Counts.Cancelled }),
		},
		conflict: " ON CONFLICT (owner) DO NOTHING",
	}

	entryTable = &table[ledger.Entry]{
		name: "entries", texts: &sync.Map{},
		columns: []column[ledger.Entry]{
			asText("owner", key, func(e *ledger.Entry) string { return e.Owner }),
			asNumber("number", key, func(e *ledger.Entry) int64 { return e.Number }),
			asNumber("at", made, func(e *ledger.Entry) int64 { return micros(e.At) }),
			asText("type", made, func(e *ledger.Entry) string { return string(e.Type) }),
			asText("subject", made, func(e *ledger.Entry) string { return e.Subject }),
			asText("actor", made, func(e *ledger.Entry) string { return e.Actor }),
			asText("data", made, func(e *ledger.Entry) string { return e.Data }),
			asNumber("pending", made, func(e *ledger.Entry) int64 { return int64(e.Moved.Pending) }),
			asNumber("available", made, func(e *ledger.Entry) int64 { return int64(e.Moved.Available) }),
			asNumber("in_transit", made, func(e *ledger.Entry) int64 { return int64(e.Moved.InTransit) }),
			asNumber("sales", made, func(e *ledger.Entry) int64 { return int64(e.Moved.Sales) }),
			asNumber("gateway", made, func(e *ledger.Entry) int64 { return int64(e.Moved.Gateway) }),
			asNumber("fees", made, func(e *ledger.Entry) int64 { return int64(e.Moved.Fees) }),
			asText("after", made, func(e *ledger.Entry) string { return e.After.Text() }),
			asText("hash", made, func(e *ledger.Entry) string { return string(e.Hash) }),
			asText("mac", made, func(e *ledger.Entry) string { return e.MAC }),
		},
		conflict: " ON CONFLICT (owner, number) DO NOTHING",
	}

	keyTable = &table[rememberedKey]{
		name: "idempotency_keys", texts: &sync.Map{},
		columns: []column[rememberedKey]{
			asText("user_id", key, func(k *rememberedKey) string { return k.user }),
			asText("key", key, func(k *rememberedKey) string { return k.key }),
			asText("fingerprint", made, func(k *rememberedKey) string { return k.Fingerprint }),
			asText("payout_id", made, func(k *rememberedKey) string { return string(k.Payout) }),
			asText("refusal", made, func(k *rememberedKey) string { return k.Refusal }),
			asNumber("created_at", made, func(k *rememberedKey) int64 { return micros(k.at) }),
		},
		conflict: " ON CONFLICT (user_id, key) DO NOTHING",
	}

	payoutTable = &table[payoutMove]{
		name: "payouts", texts: &sync.Map{},
		columns: []column[payoutMove]{
			asText("id", key, func(p *payoutMove) string { return string(p.ID) }),
			asText("state", seen, func(p *payoutMove) string { return string(p.from) }),
			asText("seller_id", made, func(p *payoutMove) string { return p.Seller }),
			asText("bank_account_id", made, func(p *payoutMove) string { return string(p.BankAccountID) }),
			asNumber("amount", made, func(p *payoutMove) int64 { return int64(p.Amount) }),
			asNumber("fee", made, func(p *payoutMove) int64 { return int64(p.Fee) }),
			asText("notes", made, func(p *payoutMove) string { return p.Notes }),
			asText("mode", made, func(p *payoutMove) string { return string(p.Mode) }),
			asText("gateway", made, func(p *payoutMove) string { return string(p.Gateway) }),
			asNumber("requested_at", made, func(p *payoutMove) int64 { return micros(p.RequestedAt) }),
			asNumber("arrive_at", made, func(p *payoutMove) int64 { return micros(p.ArriveAt) }),
			asText("state", set, func(p *payoutMove) string { return string(p.State) }),
			asText("status", set, func(p *payoutMove) string { return string(p.Status()) }),
			orNull("sent_at", set, func(p *payoutMove) any { return nullMicros(p.SentAt) }),
			orNull("processed_at", set, func(p *payoutMove) any { return nullMicros(p.ProcessedAt) }),
			orNull("completed_at", set, func(p *payoutMove) any { return nullMicros(p.CompletedAt) }),
			orNull("ended_at", set, func(p *payoutMove) any { return nullMicros(p.EndedAt) }),
			orNull("due_at", set, func(p *payoutMove) any { return nullMicros(p.DueAt) }),
			asNumber("tries", set, func(p *payoutMove) int64 { return int64(p.Tries) }),
			asText("order_body", set, func(p *payoutMove) string { return p.OrderBody }),
			asText("gateway_id", set, func(p *payoutMove) string { return p.GatewayID }),
			asText("progress", set, func(p *payoutMove) string { return string(p.Progress) }),
			asText("utr", set, func(p *payoutMove) string { return p.UTR }),
			asText("reason_code", set, func(p *payoutMove) string { return p.ReasonCode }),
			asText("reason", set, func(p *payoutMove) string { return p.Reason }),
			asText("contradiction", set, func(p *payoutMove) string { return p.Contradiction }),
		},
		conflict: " ON CONFLICT (id) DO NOTHING",
	}
)
