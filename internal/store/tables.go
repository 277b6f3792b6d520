package store

import (
	"sync"

	"bursar/internal/ledger"
	"bursar/internal/sale"
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
			rare(asNumber("hold_until", set, func(m *journalMove) int64 { return m.HoldUntil })),
			rare(asNumber("frozen", set, func(m *journalMove) int64 { return int64(flag(m.Frozen)) })),
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
			rare(asNumber("pending", made, func(e *ledger.Entry) int64 { return int64(e.Moved.Pending) })),
			asNumber("available", made, func(e *ledger.Entry) int64 { return int64(e.Moved.Available) }),
			asNumber("in_transit", made, func(e *ledger.Entry) int64 { return int64(e.Moved.InTransit) }),
			rare(asNumber("sales", made, func(e *ledger.Entry) int64 { return int64(e.Moved.Sales) })),
			rare(asNumber("gateway", made, func(e *ledger.Entry) int64 { return int64(e.Moved.Gateway) })),
			rare(asNumber("fees", made, func(e *ledger.Entry) int64 { return int64(e.Moved.Fees) })),
			asText("after", made, func(e *ledger.Entry) string { return e.After.Text() }),
			asText("hash", made, func(e *ledger.Entry) string { return string(e.Hash) }),
			asText("mac", made, func(e *ledger.Entry) string { return e.MAC }),
		},
		conflict: " ON CONFLICT (owner, number) DO NOTHING",
	}

	keyTable = &table[idempotencyRow]{
		name: "idempotency_keys", texts: &sync.Map{},
		columns: []column[idempotencyRow]{
			asText("user_id", key, func(k *idempotencyRow) string { return k.user }),
			asText("key", key, func(k *idempotencyRow) string { return k.key }),
			asText("fingerprint", made, func(k *idempotencyRow) string { return k.Fingerprint }),
			asText("payout_id", made, func(k *idempotencyRow) string { return string(k.Payout) }),
			rare(asText("refusal", made, func(k *idempotencyRow) string { return k.Refusal })),
			asNumber("created_at", made, func(k *idempotencyRow) int64 { return micros(k.at) }),
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
			rare(orNull("sent_at", set, func(p *payoutMove) any { return nullMicros(p.SentAt) })),
			rare(orNull("processed_at", set, func(p *payoutMove) any { return nullMicros(p.ProcessedAt) })),
			rare(orNull("completed_at", set, func(p *payoutMove) any { return nullMicros(p.CompletedAt) })),
			rare(orNull("ended_at", set, func(p *payoutMove) any { return nullMicros(p.EndedAt) })),
			orNull("due_at", set, func(p *payoutMove) any { return nullMicros(p.DueAt) }),
			rare(asNumber("tries", set, func(p *payoutMove) int64 { return int64(p.Tries) })),
			rare(asText("order_body", set, func(p *payoutMove) string { return p.OrderBody })),
			rare(asText("gateway_id", set, func(p *payoutMove) string { return p.GatewayID })),
			rare(asText("progress", set, func(p *payoutMove) string { return string(p.Progress) })),
			rare(asText("utr", set, func(p *payoutMove) string { return p.UTR })),
			rare(asText("reason_code", set, func(p *payoutMove) string { return p.ReasonCode })),
			rare(asText("reason", set, func(p *payoutMove) string { return p.Reason })),
			rare(asText("source", made, func(p *payoutMove) string { return string(p.Source) })),
			rare(asText("discrepancy", set, func(p *payoutMove) string { return p.Discrepancy })),
		},
		conflict: " ON CONFLICT (id) DO NOTHING",
	}

	bankAccountTable = &table[storedAccount]{
		name: "bank_accounts", texts: &sync.Map{},
		columns: []column[storedAccount]{
			asText("id", key, func(a *storedAccount) string { return string(a.ID) }),
			asText("seller_id", made, func(a *storedAccount) string { return a.Seller }),
			asNumber("is_current", made, func(a *storedAccount) int64 { return int64(flag(a.Current)) }),
			asText("holder", made, func(a *storedAccount) string { return a.Holder }),
			asText("ifsc", made, func(a *storedAccount) string { return string(a.IFSC) }),
			asText("last4", made, func(a *storedAccount) string { return a.Last4 }),
			asText("encrypted_number", made, func(a *storedAccount) string { return a.EncryptedNumber }),
			asText("status", made, func(a *storedAccount) string { return string(a.Status) }),
			asText("reason", made, func(a *storedAccount) string { return a.Reason }),
			asText("registered_name", made, func(a *storedAccount) string { return a.RegisteredName }),
			asNumber("name_score", made, func(a *storedAccount) int64 { return int64(a.NameScore) }),
			asText("beneficiary", made, func(a *storedAccount) string { return a.Beneficiary }),
			asText("gateway", made, func(a *storedAccount) string { return string(a.Gateway) }),
			asText("verification_id", made, func(a *storedAccount) string { return a.VerificationID }),
			asNumber("tries", made, func(a *storedAccount) int64 { return int64(a.Tries) }),
			orNull("due_at", made, func(a *storedAccount) any { return nullMicros(a.DueAt) }),
			asNumber("created_at", made, func(a *storedAccount) int64 { return micros(a.CreatedAt) }),
			orNull("verified_at", made, func(a *storedAccount) any { return nullMicros(a.VerifiedAt) }),
			asText("mac", made, func(a *storedAccount) string { return a.mac }),
		},
		conflict: " ON CONFLICT (id) DO NOTHING",
	}

	saleTable = &table[sale.Sale]{
		name: "sales", texts: &sync.Map{},
		columns: []column[sale.Sale]{
			asText("id", key, func(s *sale.Sale) string { return s.ID }),
			asText("seller_id", made, func(s *sale.Sale) string { return s.Seller }),
			asNumber("amount", made, func(s *sale.Sale) int64 { return int64(s.Amount) }),
			asNumber("refunded", made, func(s *sale.Sale) int64 { return int64(s.Refunded) }),
			asText("month", made, func(s *sale.Sale) string { return s.Month }),
			asNumber("occurred_at", made, func(s *sale.Sale) int64 { return micros(s.OccurredAt) }),
			asNumber("available_at", made, func(s *sale.Sale) int64 { return micros(s.AvailableAt) }),
			orNull("released_at", made, func(s *sale.Sale) any { return nullMicros(s.ReleasedAt) }),
			asNumber("created_at", made, func(s *sale.Sale) int64 { return micros(s.CreatedAt) }),
			asText("fingerprint", made, func(s *sale.Sale) string { return s.Fingerprint }),
			orNull("due_at", made, func(s *sale.Sale) any {
				if s.Released() {
					return nil
				}
				return micros(s.AvailableAt)
			}),
		},
		conflict: " ON CONFLICT (id) DO NOTHING",
	}

	refundTable = &table[sale.Refund]{
		name: "sale_refunds", texts: &sync.Map{},
		columns: []column[sale.Refund]{
			asText("sale_id", key, func(r *sale.Refund) string { return r.Sale }),
			asText("id", key, func(r *sale.Refund) string { return r.ID }),
			asNumber("amount", made, func(r *sale.Refund) int64 { return int64(r.Amount) }),
			asNumber("at", made, func(r *sale.Refund) int64 { return micros(r.At) }),
			asText("fingerprint", made, func(r *sale.Refund) string { return r.Fingerprint }),
		},
	}
)
