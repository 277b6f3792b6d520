package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/inbox"
	"bursar/internal/ledger"
	"bursar/internal/limits"
	"bursar/internal/payout"
	"bursar/internal/proof"
)

type inboxRequest struct{ kind inbox.Kind }

func (req *inboxRequest) read(in *input) {
	s, given := in.parameter("kind")
	if req.kind = inbox.Kind(s); given && !slices.Contains(inbox.Kinds(), req.kind) {
		in.noteInvalid("kind", "must be a kind of task, such as manual_review")
	}
}

type inboxJSON struct {
	Counts   map[inbox.Kind]int `json:"counts"`
	Tasks    []taskJSON         `json:"tasks"`
	Complete bool               `json:"complete"`
}

type taskJSON struct {
	Kind       inbox.Kind   `json:"kind"`
	Subject    string       `json:"subject"`
	Since      string       `json:"since"`
	Amount     *json.Number `json:"amount"`
	SellerID   orNull       `json:"sellerId"`
	SellerName orNull       `json:"sellerName"`
	Claim      *claimJSON   `json:"claim"`
}

type claimJSON struct {
	AdminID   string `json:"adminId"`
	AdminName string `json:"adminName"`
	At        string `json:"at"`
	Until     string `json:"until"`
}

func claimOf(c inbox.Claim) *claimJSON {
	if c.Admin == "" {
		return nil
	}
	return &claimJSON{c.Admin, c.AdminName, stamp(c.At), stamp(c.Until())}
}

func (a *api) inbox(ctx context.Context, _ caller, req inboxRequest) (reply[inboxJSON], error) {
	all, cut, err := a.o.Inbox.Tasks(ctx)
	if err != nil {
		return reply[inboxJSON]{}, err
	}
	counts := make(map[inbox.Kind]int)
	data := inboxJSON{counts, []taskJSON{}, !cut}
	for _, k := range inbox.Kinds() {
		data.Counts[k] = 0
	}
	for _, t := range all {
		data.Counts[t.Kind]++
		if req.kind != "" && t.Kind != req.kind {
			continue
		}
		data.Tasks = append(data.Tasks, taskJSON{t.Kind, t.Subject, stamp(t.Since), a.amountOrNull(t.Amount), orNull(t.Seller), orNull(t.SellerName), claimOf(t.Claim)})
	}
	return reply[inboxJSON]{data: data}, nil
}

type claimRequest struct{ subject string }

func (req *claimRequest) read(in *input) {
	req.subject = in.r.PathValue("subject")
	if limits.Reference(req.subject) != "" {
		in.refuse(inbox.ErrNoTask)
	}
}

type claimedJSON struct {
	Subject string     `json:"subject"`
	Claim   *claimJSON `json:"claim"`
}

func (a *api) claimTask(ctx context.Context, who caller, req claimRequest) (reply[claimedJSON], error) {
	claim, err := a.o.Inbox.Claim(ctx, who.UserID, req.subject)
	if err != nil {
		return reply[claimedJSON]{}, err
	}
	names, err := a.o.Decisions.UserNames(ctx, []string{claim.Admin})
	claim.AdminName = names[claim.Admin]
	return reply[claimedJSON]{message: "You are on it for an hour. Other admins see that.", data: claimedJSON{req.subject, claimOf(claim)}}, err
}

func (a *api) releaseTask(ctx context.Context, who caller, req claimRequest) (reply[claimedJSON], error) {
	err := a.o.Inbox.Release(ctx, who.UserID, req.subject)
	return reply[claimedJSON]{message: "Released. Other admins can take it on.", data: claimedJSON{req.subject, nil}}, err
}

type askRequest struct {
	payouts []string
	note    string
}

func (req *askRequest) read(in *input) {
	if value := in.required("payoutIds"); value != nil {
		req.payouts = in.texts("payoutIds", value)
		if n := len(req.payouts); req.payouts != nil && (n == 0 || n > inbox.MaxAsked) {
			in.noteInvalid("payoutIds", fmt.Sprintf("must be 1 to %d", inbox.MaxAsked))
		}
	}
	req.note = in.text("note", checkReason)
}

type askedJSON struct {
	Results []askResultJSON `json:"results"`
}

type askResultJSON struct {
	PayoutID string       `json:"payoutId"`
	Success  bool         `json:"success"`
	State    payout.State `json:"state,omitempty"`
	Code     string       `json:"code,omitempty"`
	Error    string       `json:"error,omitempty"`
}

// askGateway asks about each payout by a decision of its own, so that one failure keeps none of the others from being asked.
func (a *api) askGateway(ctx context.Context, who caller, req askRequest) (reply[askedJSON], error) {
	data := askedJSON{[]askResultJSON{}}
	for _, given := range req.payouts {
		result := askResultJSON{PayoutID: given}
		id, err := payout.ParseID(given)
		var p payout.Payout
		if err == nil {
			p, err = a.o.Payouts.AskGateway(ctx, decision.By{Admin: who.UserID, Note: req.note}, id)
		}
		f := fault.From(err)
		switch {
		case err == nil:
			result.Success, result.State = true, p.State
		case f != nil:
			result.Code, result.Error = f.Code, f.Message
		case ctx.Err() != nil:
			result.Code, result.Error = errTimeout.Code, errTimeout.Message
		default:
			a.o.Logger.ErrorContext(ctx, "gateway not asked", slog.String("payout_id", given), slog.Any("error", err))
			result.Code, result.Error = errInternal.Code, errInternal.Message
		}
		data.Results = append(data.Results, result)
	}
	return reply[askedJSON]{data: data}, nil
}

type decisionsRequest struct {
	subject string
	limit   int
	format  proof.Format
}

// exportedDecisions bounds a file of decisions.
const exportedDecisions = 50_000

func (req *decisionsRequest) read(in *input) {
	if s, given := in.parameter("subject"); given {
		req.subject = s
		in.noteRule("subject", limits.Reference(s))
	}
	req.limit, req.format = in.number("limit", defaultSelected, maxSelected), in.format()
}

type decisionsJSON struct {
	Decisions []decisionJSON `json:"decisions"`
}

type decisionJSON struct {
	ID       string          `json:"id"`
	At       string          `json:"at"`
	Action   decision.Action `json:"action"`
	By       string          `json:"by"`
	ByName   orNull          `json:"byName"`
	SellerID orNull          `json:"sellerId"`
	Subject  string          `json:"subject"`
	Note     string          `json:"note"`
}

func (a *api) decisions(ctx context.Context, _ caller, req decisionsRequest) (reply[decisionsJSON], error) {
	list, err := a.decisionsOf(ctx, req.subject, req.limit)
	return answer(decisionsJSON{list}, err)
}

func (a *api) decisionsOf(ctx context.Context, subject string, limit int) ([]decisionJSON, error) {
	list, err := a.o.Decisions.Decisions(ctx, subject, limit)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, d := range list {
		if id := d.Admin + d.User; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	names, err := a.o.Decisions.UserNames(ctx, ids)
	return mapped(list, func(d decision.Decision) decisionJSON {
		seller := orNull(d.Owner)
		if d.Owner == decision.Platform {
			seller = ""
		}
		return decisionJSON{d.ID, stamp(d.At), d.Action, ledger.DecidedBy(d), orNull(names[d.Admin+d.User]), seller, d.Subject, d.Note}
	}), err
}

// adminDecisions answers with the newest decisions, or with a file of them.
func (a *api) adminDecisions() http.HandlerFunc {
	page := handle(a, a.admin, a.decisions)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") == string(proof.CSV) {
			a.exportDecisions(w, r)
			return
		}
		page(w, r)
	}
}

func (a *api) exportDecisions(w http.ResponseWriter, r *http.Request) {
	who, err := a.admin(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	req, in := decisionsRequest{}, input{api: a, w: w, r: r}
	req.read(&in)
	if err := in.problem(); err != nil {
		a.fail(w, r, err)
		return
	}
	list, err := a.decisionsOf(r.Context(), req.subject, exportedDecisions)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	heading := []string{"id", "at", "action", "by", "by_name", "seller_id", "subject", "note"}
	isSent := a.writeCSV(w, r, "decisions-"+a.o.Now().UTC().Format(time.DateOnly), heading, func(write func(...string) error) error {
		for _, d := range list {
			if err := write(d.ID, d.At, string(d.Action), d.By, string(d.ByName), string(d.SellerID), d.Subject, d.Note); err != nil {
				return err
			}
		}
		return nil
	})
	if isSent {
		a.o.Logger.InfoContext(r.Context(), "decisions exported", slog.String("admin_id", who.UserID), slog.Int("rows", len(list)))
	}
}
