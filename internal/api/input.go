package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/limits"
	"bursar/internal/money"
)

// input is one request as an endpoint reads it. Each method takes one part and notes what is wrong
// with it; [input.problem] then reports everything at once. A part that could not be read is zero.
type input struct {
	api *api
	w   http.ResponseWriter
	r   *http.Request
	// missingIsInvalid makes a missing field break a rule, as the interface has it for register.
	missingIsInvalid bool

	// maxBody bounds the body, in bytes; zero is the limit of most routes.
	maxBody int64

	members map[string][]byte // of the body, once it was read
	query   url.Values        // once it was read

	refusal   error             // something is wrong with the request as a whole
	malformed map[string]string // fields that can't be read, or are missing
	invalid   map[string]string // fields that were read and break a rule
}

// problem is everything that is wrong, or nil. What can't be read comes first: the rules for it are moot.
func (in *input) problem() error {
	switch {
	case in.refusal != nil:
		return in.refusal
	case in.r.ContentLength > in.most():
		return tooLargeFor(in.most())
	default:
		return in.fieldProblem()
	}
}

// fieldProblem is everything that is wrong with the fields, or nil.
func (in *input) fieldProblem() error {
	switch {
	case in.refusal != nil:
		return in.refusal
	case len(in.malformed) > 0:
		return fault.Fields(fault.Malformed, in.malformed)
	case len(in.invalid) > 0:
		return fault.Fields(fault.Invalid, in.invalid)
	default:
		return nil
	}
}

// most bounds the body, in bytes.
func (in *input) most() int64 { return cmp.Or(in.maxBody, maxBody) }

func (in *input) refuse(err error) { in.refusal = cmp.Or(in.refusal, err) }

func (in *input) noteMalformed(field, message string) {
	if in.malformed == nil {
		in.malformed = map[string]string{}
	}
	in.malformed[field] = message
}

func (in *input) noteInvalid(field, message string) {
	if in.invalid == nil {
		in.invalid = map[string]string{}
	}
	in.invalid[field] = message
}

// noteRule notes what a check has to say, if anything.
func (in *input) noteRule(field, message string) {
	if message != "" {
		in.noteInvalid(field, message)
	}
}

// noteError takes over what a domain says about a field that it could not parse.
func (in *input) noteError(err error) {
	if f := fault.From(err); f != nil && f.Kind == fault.Invalid {
		for field, message := range f.Details {
			in.noteInvalid(field, message)
		}
		return
	}
	if err != nil {
		in.refuse(err)
	}
}

// member is the text of a body's field. Null is as good as absent, and absent is nil.
func (in *input) member(name string) []byte {
	if in.members == nil && in.refusal == nil {
		err := checkEncoding(in.r.Header)
		var body []byte
		if err == nil {
			body, err = readBody(in.w, in.r, in.most())
		}
		if err == nil {
			in.members, err = parseObject(body)
		}
		if err != nil {
			in.refuse(err)
		}
	}
	value := in.members[name]
	if string(value) == "null" {
		return nil
	}
	return value
}

// required is a field that must be there.
func (in *input) required(name string) []byte {
	value := in.member(name)
	if value != nil || in.refusal != nil {
		return value
	}
	const message = "is required"
	if in.missingIsInvalid {
		in.noteInvalid(name, message)
	} else {
		in.noteMalformed(name, message)
	}
	return nil
}

// misnamed refuses a field by a name that it does not have, where to ignore it would allow more than was asked for.
func (in *input) misnamed(wrong, right string) {
	if in.member(wrong) != nil {
		in.noteMalformed(wrong, "is no field of this; it is called "+right)
	}
}

// notNull refuses null where absent means all: a program writes it for a number that it has miscalculated.
func (in *input) notNull(name, message string) {
	if in.member(name) == nil && in.members[name] != nil {
		in.noteMalformed(name, message)
	}
}

// anything is the check of a text that has no rule.
func anything(string) string { return "" }

// text takes a required string and checks it; check returns what is wrong, or "".
func (in *input) text(name string, check func(string) string) string {
	return in.parseText(name, in.required(name), check)
}

// optionalText takes a string that may be absent; the check is for one that is there.
func (in *input) optionalText(name string, check func(string) string) string {
	return in.parseText(name, in.member(name), check)
}

func (in *input) parseText(name string, value []byte, check func(string) string) string {
	if value == nil {
		return ""
	}
	if value[0] != '"' {
		in.noteMalformed(name, "must be a string")
		return ""
	}
	s, err := unquote(value)
	if err != nil {
		in.refuse(err)
		return ""
	}
	in.noteRule(name, check(s))
	return s
}

// optionalTexts takes a list of strings, of which there may be so many; it may be absent, which is none.
func (in *input) optionalTexts(name string, most int) []string {
	value := in.member(name)
	if value == nil {
		return nil
	}
	texts := in.texts(name, value)
	if len(texts) > most {
		in.noteInvalid(name, fmt.Sprintf("must be at most %d", most))
		return nil
	}
	return texts
}

// texts reads a list of strings. It returns nil if the value is none.
func (in *input) texts(name string, value []byte) []string {
	var quoted []json.RawMessage
	if value[0] != '[' || json.Unmarshal(value, &quoted) != nil {
		in.noteMalformed(name, "must be a list of strings")
		return nil
	}
	texts := make([]string, 0, len(quoted))
	for _, q := range quoted {
		if q[0] != '"' {
			in.noteMalformed(name, "must be a list of strings")
			return nil
		}
		s, err := unquote(q)
		if err != nil {
			in.refuse(err)
			return nil
		}
		texts = append(texts, s)
	}
	return texts
}

// parsed takes a required string that a domain parses; what it says is wrong is noted.
func parsed[T any](in *input, name string, parse func(string) (T, error)) T {
	var value T
	in.text(name, func(s string) string {
		var err error
		value, err = parse(s)
		in.noteError(err)
		return ""
	})
	return value
}

// amount takes a required number of major units that is above zero.
func (in *input) amount(name string) money.Amount {
	return in.parseAmount(name, in.required(name))
}

// signedAmount takes a required number of major units that is above or below zero.
func (in *input) signedAmount(name string) money.Amount {
	value := in.required(name)
	if !in.isNumber(name, value) {
		return 0
	}
	m, err := in.parseMoney(name, value)
	most := in.api.o.Currency.Format(money.Max)
	switch {
	case errors.Is(err, money.ErrPrecision):
	case err != nil:
		in.noteInvalid(name, "must be from -"+most+" to "+most)
	case m == 0:
		in.noteInvalid(name, "must be above or below zero")
	}
	return m
}

// optionalAmount takes a number of major units that may be absent, which is zero.
func (in *input) optionalAmount(name string) money.Amount {
	return in.parseAmount(name, in.member(name))
}

func (in *input) parseAmount(name string, value []byte) money.Amount {
	if !in.isNumber(name, value) {
		return 0
	}
	m, err := in.parseMoney(name, value)
	switch {
	case errors.Is(err, money.ErrPrecision):
	case err != nil:
		in.noteInvalid(name, "must be above zero and at most "+in.api.o.Currency.Format(money.Max))
	case m <= 0:
		in.noteInvalid(name, "must be above zero")
	}
	return m
}

// parseMoney reads a number of major units, and notes one that is too precise.
func (in *input) parseMoney(name string, value []byte) (money.Amount, error) {
	currency := in.api.o.Currency
	m, err := currency.Parse(string(value))
	if errors.Is(err, money.ErrPrecision) {
		in.noteInvalid(name, fmt.Sprintf("must have at most %d decimal places, as %s has", currency.Exponent(), currency))
	}
	return m, err
}

// isNumber reports whether there is a value and it is a number, and notes one that is not.
func (in *input) isNumber(name string, value []byte) bool {
	if value == nil {
		return false
	}
	if c := value[0]; c != '-' && (c < '0' || c > '9') {
		in.noteMalformed(name, "must be a number")
		return false
	}
	return true
}

// maxCount is the largest whole number that every JSON reader holds exactly.
const maxCount = 1<<53 - 1

// count takes a required whole number that is not negative.
func (in *input) count(name string) int64 {
	value := in.required(name)
	if !in.isNumber(name, value) {
		return 0
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 || n > maxCount {
		in.noteInvalid(name, "must be a whole number, zero or more")
	}
	return n
}

// flag takes a required boolean.
func (in *input) flag(name string) bool {
	value := in.required(name)
	switch string(value) {
	case "true":
		return true
	case "false", "":
		return false
	default:
		in.noteMalformed(name, "must be true or false")
		return false
	}
}

// optionalInstant takes an RFC 3339 time that may be absent, which is the zero time.
func (in *input) optionalInstant(name string) time.Time {
	var at time.Time
	in.optionalText(name, func(s string) string {
		var err error
		at, err = time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return "must be an RFC 3339 time such as 2026-11-20T09:30:00Z"
		}
		at = at.UTC()
		return limits.Year(at)
	})
	return at
}

// parameter takes a query parameter, and reports whether it was given.
func (in *input) parameter(name string) (string, bool) {
	if in.query == nil {
		query, err := url.ParseQuery(in.r.URL.RawQuery)
		if err != nil {
			in.refuse(fault.New(fault.Malformed, "invalid_query", "The query string can't be read."))
		}
		in.query = query
	}
	values := in.query[name]
	if len(values) > 1 {
		in.noteInvalid(name, "may occur only once")
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// number takes a whole number from the query, between 1 and most.
func (in *input) number(name string, otherwise, most int) int {
	s, given := in.parameter(name)
	if !given {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most || s[0] == '+' {
		in.noteInvalid(name, fmt.Sprintf("must be a whole number from 1 to %d", most))
		return otherwise
	}
	return n
}

const idempotencyHeader = "Idempotency-Key"

// idempotencyKey takes the header that makes a request repeatable, if it is there.
func (in *input) idempotencyKey() string {
	values := in.r.Header.Values(idempotencyHeader)
	if len(values) == 0 {
		return ""
	}
	key := values[0]
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	if len(values) > 1 || key == "" || len(key) > 255 || strings.ContainsFunc(key, unprintable) {
		in.noteInvalid(idempotencyHeader, "must be one value of 1 to 255 printable ASCII characters")
	}
	return key
}

// checkProse returns a check for free text of several lines.
func checkProse(maxRunes int) func(string) string {
	return func(s string) string { return limits.Prose(s, maxRunes) }
}
