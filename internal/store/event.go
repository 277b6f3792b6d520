package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"bursar/internal/event"
	"bursar/internal/ledger"
)

// queuedEventTable and eventTable hold the feed: events wait in the first until they are numbered into the second.
var (
	queuedEventTable = &table[event.Queued]{
		name: "queued_events", texts: &sync.Map{},
		columns: []column[event.Queued]{
			asText("owner", insertOnly, func(q *event.Queued) *string { return &q.Owner }),
			asNumber("entry", insertOnly, func(q *event.Queued) *int64 { return &q.Entry }),
			asText("type", insertOnly, func(q *event.Queued) *event.Type { return &q.Type }),
		},
	}
	eventTable = &table[event.Event]{
		name: "events", texts: &sync.Map{},
		columns: []column[event.Event]{
			asNumber("number", primaryKey, func(e *event.Event) *int64 { return &e.Number }),
			asText("id", insertOnly, func(e *event.Event) *string { return &e.ID }),
			asText("owner", insertOnly, func(e *event.Event) *string { return &e.Owner }),
			asNumber("entry", insertOnly, func(e *event.Event) *int64 { return &e.Entry }),
			asText("type", insertOnly, func(e *event.Event) *event.Type { return &e.Type }),
		},
	}
)

// eventsOf lists the events that entries are.
func eventsOf(entries []ledger.Entry) []event.Queued {
	var events []event.Queued
	for i := range entries {
		events = append(events, event.Of(entries[i])...)
	}
	return events
}

// queueEvents queues events to be numbered, once they are committed.
func (tx *Tx) queueEvents(ctx context.Context, events []event.Queued) error {
	_, err := tx.write(ctx, queuedEventTable.inserts(tx.dialect, events))
	return err
}

// maxEventNumber is more than there will ever be. Behind it numbers would turn negative.
const maxEventNumber = math.MaxInt64 / 2

var errEventNumber = errors.New("the number of the feed's last event was changed outside Bursar, so no event gets one; run \"bursar repair\"")

const selectLastEvent = `SELECT last FROM event_feed WHERE id = 1`

// NumberEvents numbers up to limit events that are queued, oldest first, and returns them. Those of one journal keep their
// order: its row is locked from its entry to the commit, so that a later entry's event is queued later. Deliveries of them to
// webhook endpoints are due now, and mailer is called with each that users are mailed about, unless it is nil.
func (db *DB) NumberEvents(ctx context.Context, limit int, now time.Time, newID func(prefix string) string, mailer event.Mailer) ([]event.Event, error) {
	var waiting int64
	if err := db.queryRow(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM queued_events LIMIT 1) AS q`).Scan(&waiting); err != nil || waiting == 0 {
		return nil, err
	}
	var events []event.Event
	err := db.Update(ctx, func(tx *Tx) (err error) {
		if events, err = tx.numberEvents(ctx, limit, now, newID); err != nil || mailer == nil {
			return err
		}
		for _, e := range events {
			if !e.Type.IsMailed() {
				continue
			}
			if e, err = tx.event(ctx, e.Number); err != nil {
				return err
			}
			if err := mailer(ctx, tx, e); err != nil {
				return fmt.Errorf("mail event %s: %w", e.ID, err)
			}
		}
		return nil
	})
	return events, err
}

func (tx *Tx) numberEvents(ctx context.Context, limit int, now time.Time, newID func(prefix string) string) ([]event.Event, error) {
	var last int64
	if counted, err := tx.one(ctx, selectLastEvent+tx.dialect.forUpdate("event_feed"), nil, &last); err != nil {
		return nil, err
	} else if !counted || last < 0 || last > maxEventNumber {
		return nil, errEventNumber
	}
	type queued struct {
		event.Queued
		place int64
	}
	var waiting []queued
	err := tx.each(ctx, `DELETE FROM queued_events WHERE place IN (SELECT place FROM queued_events ORDER BY place LIMIT $1 + 0)
		RETURNING place, owner, entry, type`, []any{limit}, func(r *row) {
		var q queued
		r.Scan(&q.place, &q.Owner, &q.Entry, &q.Type)
		waiting = append(waiting, q)
	})
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	slices.SortFunc(waiting, func(a, b queued) int { return cmp.Compare(a.place, b.place) })
	events := make([]event.Event, len(waiting))
	for i, q := range waiting {
		events[i] = event.Event{Queued: q.Queued, Number: last + int64(i) + 1, ID: newID(event.IDPrefix)}
	}
	if _, err := tx.write(ctx, eventTable.inserts(tx.dialect, events)); err != nil {
		return nil, err
	}
	if _, err := tx.exec(ctx, `UPDATE event_feed SET last = $1 WHERE id = 1`, last+int64(len(events))); err != nil {
		return nil, err
	}
	return events, tx.queueDeliveries(ctx, events, now, newID)
}

// selectEvents is the feed, each event with what its entry says of it.
const selectEvents = `SELECT e.number, e.id, e.owner, e.entry, e.type, COALESCE(j.at, u.created_at, 0), COALESCE(j.subject, e.owner)
	FROM events e LEFT JOIN entries j ON j.owner = e.owner AND j.number = e.entry LEFT JOIN users u ON e.entry = 0 AND u.id = e.owner`

func scanEvent(r *row) (e event.Event) {
	r.Scan(&e.Number, &e.ID, &e.Owner, &e.Entry, &e.Type, instant{&e.At}, &e.Subject)
	return e
}

// event is an event with what its entry says of it.
func (tx *Tx) event(ctx context.Context, number int64) (e event.Event, err error) {
	err = tx.each(ctx, selectEvents+` WHERE e.number = $1`, []any{number}, func(r *row) { e = scanEvent(r) })
	return e, err
}

// eventsAfter is a page of the feed.
const eventsAfter = selectEvents + ` WHERE e.number > $1 ORDER BY e.number LIMIT $2 + 0`

// Events lists events numbered above a number, in order, up to limit.
func (db *DB) Events(ctx context.Context, after int64, limit int) ([]event.Event, error) {
	var events []event.Event
	err := db.query(ctx, eventsAfter, []any{after, limit}, func(r *row) { events = append(events, scanEvent(r)) })
	return events, err
}

// LastEvent is the number of the newest event; 0 before the first.
func (db *DB) LastEvent(ctx context.Context) (last int64, err error) {
	err = db.queryRow(ctx, selectLastEvent).Scan(&last)
	return last, err
}

// Event finds an event by its id, if there is one.
func (db *DB) Event(ctx context.Context, id string) (event.Event, bool, error) {
	var e event.Event
	found := false
	err := db.query(ctx, selectEvents+` WHERE e.id = $1`, []any{id}, func(r *row) {
		found = true
		e = scanEvent(r)
	})
	return e, found, err
}

// wrongEvents finds where the feed and the journals differ. That the available balance fell below zero is in no column of an
// entry, so a missing event of that is not found.
var wrongEvents = func() string {
	var types, cases []string
	for _, t := range slices.Sorted(maps.Keys(event.EntryTypes())) {
		types = append(types, fmt.Sprintf("'%s'", t))
		cases = append(cases, fmt.Sprintf("WHEN '%s' THEN '%s'", t, event.EntryTypes()[t]))
	}
	const feed = `(SELECT owner, entry, type FROM events UNION ALL SELECT owner, entry, type FROM queued_events) AS f`
	expected := "CASE j.type " + strings.Join(cases, " ") + " END"
	return `SELECT j.owner, j.subject, 'entry ' || j.number || ', ' || j.type || ', is ' || COUNT(f.owner) || ' events' FROM entries j
		LEFT JOIN ` + feed + ` ON f.owner = j.owner AND f.entry = j.number AND f.type = ` + expected + `
		WHERE j.type IN (` + strings.Join(types, ", ") + `) GROUP BY j.owner, j.number, j.subject, j.type HAVING COUNT(f.owner) <> 1
	UNION ALL
	SELECT u.id, '', 'the registration is ' || COUNT(f.owner) || ' events' FROM users u
		LEFT JOIN ` + feed + ` ON f.owner = u.id AND f.entry = 0 AND f.type = 'seller.registered'
		WHERE u.role = 'seller' GROUP BY u.id HAVING COUNT(f.owner) < 1
	UNION ALL
	SELECT f.owner, '', 'there is an event ' || f.type || ' of entry ' || f.entry || ', which is not that' FROM ` + feed + `
		LEFT JOIN entries j ON j.owner = f.owner AND j.number = f.entry LEFT JOIN users u ON f.entry = 0 AND u.id = f.owner
		WHERE CASE WHEN f.entry = 0 THEN u.id IS NULL OR f.type <> 'seller.registered'
			WHEN f.type = 'balance.negative' THEN j.owner IS NULL OR j.available >= 0
			ELSE j.owner IS NULL OR COALESCE(` + expected + `, '') <> f.type END
	UNION ALL
	SELECT '', '', 'the feed has ' || COUNT(*) || ' events, numbered from ' || COALESCE(MIN(number), 1) || ' to ' || COALESCE(MAX(number), 0) || ', and should have '
			|| COALESCE((SELECT last FROM event_feed), -1)
		FROM events HAVING COUNT(*) <> COALESCE((SELECT last FROM event_feed), -1) OR COALESCE(MAX(number), 0) <> COUNT(*) OR COALESCE(MIN(number), 1) <> 1`
}()
