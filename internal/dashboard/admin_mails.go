package dashboard

import (
	"context"

	"bursar/internal/mail"
)

const (
	mailsPath = adminHome + "/mails"
	// mailsShown is how many of the newest mails are listed.
	mailsShown = 100
)

// mailsView is what became of the newest mails.
type mailsView struct {
	Mails []mailRow
	// Bodies says that the mails can be read.
	Bodies bool
}

// mailRow is a mail as admins see it: to whom, as far as that may be told, and how its sending went.
type mailRow struct{ mail.Row }

// Label says how far the mail is.
func (m mailRow) Label() label {
	switch {
	case m.State == mail.Sent:
		return label{"Sent", good}
	case m.State == mail.Failed:
		return label{"Given up", bad}
	case m.LastError != "":
		return label{"Trying again", busy}
	default:
		return label{"Queued", neutral}
	}
}

// Path is the page of the mail itself.
func (m mailRow) Path() string { return mailsPath + "/" + m.ID }

// adminMails lists the newest mails.
func (d *dashboard) adminMails(ctx context.Context, _ *pageRequest) (page, error) {
	rows, err := d.o.Mails.Latest(ctx, mailsShown)
	if err != nil {
		return page{}, err
	}
	shown := mailsView{Bodies: d.o.Mails.ShowsBodies()}
	for _, row := range rows {
		shown.Mails = append(shown.Mails, mailRow{row})
	}
	return show("admin-mails", "Mails", shown), nil
}

// mailView is a mail as it was written to a file.
type mailView struct{ Body string }

// adminMail shows a mail of the development outbox.
func (d *dashboard) adminMail(_ context.Context, v *pageRequest) (page, error) {
	body, found, err := d.o.Mails.Body(v.r.PathValue("id"))
	if err != nil {
		return page{}, err
	}
	if !found {
		return page{}, errNoPage
	}
	return show("admin-mail", "Mail", mailView{body}), nil
}
