package dashboard

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/web"
)

// form is what a visitor fills in, and what is wrong with what they filled in. The names of its fields
// are those that the services give in their faults.
type form struct {
	Action string
	Submit string
	Fields []field
	Hidden []hidden
	// Username is whose password the form is about, where it does not ask.
	Username string
	// Problem is about the form as a whole.
	Problem string
}

// field is one question of a form.
type field struct {
	Name, Label, Hint string
	// Type is an input's, or "textarea", "select" or "choice".
	Type         string
	Autocomplete string
	InputMode    string
	// Prefix stands before the input, such as a currency's sign.
	Prefix string
	Value  string
	// Secret says that what was typed is never sent back.
	Secret   bool
	Optional bool
	Max      int
	Choices  []choice // of a field of type "choice" or "select"
	// Passkey is what the button says by which a passkey takes the place of what is typed; empty for none.
	Passkey string
	// Suffix tells the field from one of the same name in another form of the page.
	Suffix string
	// Ask is an address that answers with a fragment about what is typed, appended to it.
	Ask   string
	Error string
}

// choice is one of the answers to a field of type "choice".
type choice struct{ Value, Label, Hint string }

// hidden is what a form carries along.
type hidden struct{ Name, Value string }

// ID is the id of the field's input, which no other element of a page has.
func (f field) ID() string { return "field-" + f.Name + f.Suffix }

// Describes lists the elements that say more about the field.
func (f field) Describes() string {
	var ids []string
	if f.Error != "" {
		ids = append(ids, f.ID()+"-error")
	}
	if f.Hint != "" {
		ids = append(ids, f.ID()+"-hint")
	}
	if f.Ask != "" {
		ids = append(ids, f.AnswerID())
	}
	return strings.Join(ids, " ")
}

// AnswerID is the id of the element that the answer to Ask is put into.
func (f field) AnswerID() string { return f.ID() + "-answer" }

// Problem is what is wrong, as a sentence of its own. An error that begins with a capital letter is one.
func (f field) Problem() string {
	if first, _ := utf8.DecodeRuneInString(f.Error); unicode.IsUpper(first) {
		return f.Error
	}
	return f.Label + " " + strings.TrimSuffix(f.Error, ".") + "."
}

// Field finds a field by its name.
func (f *form) Field(name string) *field {
	if i := slices.IndexFunc(f.Fields, func(x field) bool { return x.Name == name }); i >= 0 {
		return &f.Fields[i]
	}
	return nil
}

// Wrong lists the fields that have a problem.
func (f *form) Wrong() []field {
	return slices.DeleteFunc(slices.Clone(f.Fields), func(x field) bool { return x.Error == "" })
}

// fill puts into the form what was typed, all but secrets.
func (f *form) fill(typed url.Values) *form {
	for i := range f.Fields {
		if !f.Fields[i].Secret && typed.Has(f.Fields[i].Name) {
			f.Fields[i].Value = typed.Get(f.Fields[i].Name)
		}
	}
	return f
}

// fieldOf names the field that a refusal without details is about.
var fieldOf = map[string]string{
	auth.ErrEmailTaken.Code:     "email",
	auth.ErrEmailReserved.Code:  "email",
	auth.ErrCode.Code:           "code",
	ledger.ErrInsufficient.Code: "amount",
}

// note puts a failure beside the fields that it names, and what is about none of them above the form.
func (f *form) note(failure *fault.Error) {
	if about := f.Field(fieldOf[failure.Code]); about != nil {
		about.Error = say(failure)
		return
	}
	if len(failure.Details) == 0 || failure.Kind == fault.Conflict { // whose details are for programs
		f.Problem = say(failure)
		return
	}
	for name, message := range failure.Details {
		if about := f.Field(name); about != nil {
			about.Error = message
		} else {
			f.Problem = strings.TrimSpace(f.Problem + " " + name + " " + message + ".")
		}
	}
}

// again shows a form once more, with what is wrong with it. What no correction of a form can mend has a
// page of its own.
func (d *dashboard) again(ctx context.Context, p page, f *form, err error) (page, error) {
	failure := fault.From(err)
	if failure == nil || failure.Kind == fault.NotFound || failure.Kind == fault.Forbidden {
		return page{}, err
	}
	d.countTampered(err)
	if cause := errors.Unwrap(failure); cause != nil {
		d.o.Logger.WarnContext(ctx, "form refused", "code", failure.Code, "cause", cause)
	}
	f.note(failure)
	p.title = "Error: " + p.title
	p.status, p.retryAfter = web.StatusOf(failure.Kind), failure.RetryAfter
	return p, nil
}
