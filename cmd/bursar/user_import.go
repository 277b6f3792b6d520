package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"bursar/internal/auth"
)

type userImportCmd struct {
	importFlags
	AllowAdmins bool `help:"Let lines make admins."`
}

func (userImportCmd) Help() string {
	return "A line is an object with email, name and, where there is one, externalId, role, emailVerified, passwordHash, createdAt, profile and suspended. " +
		"docs/users.md shows each, and every kind of hash. Users sign in with the password that they have." + afterImport +
		examples(
			"bursar user import users.ndjson --dry-run",
			`bursar user import users.ndjson --json | jq 'select(.outcome == "failed")'`,
		)
}

// Limits of an import: bytes of one line, and lines of one transaction.
const (
	maxImportLine  = 64 << 10
	importedAtOnce = 250
)

// Run imports the file.
func (c userImportCmd) Run(ctx context.Context, e *env) error {
	return c.users(ctx, e, c.AllowAdmins, readImportLine)
}

// openImport opens a file of lines, and says how large it is; 0 where that is not known.
func openImport(path string, in io.Reader) (io.ReadCloser, int64, error) {
	if path == "-" {
		return io.NopCloser(in), 0, nil
	}
	file, err := os.Open(path) //nolint:gosec // an operator names it
	if err != nil {
		return nil, 0, usageError{err}
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", path)
	}
	if err != nil {
		return nil, 0, usageError{errors.Join(err, file.Close())}
	}
	return file, info.Size(), nil
}

// addLines imports some lines, and says what became of each, in their order.
type addLines func(ctx context.Context, lines []textLine) ([]reported, error)

// textLine is a line of the file.
type textLine struct {
	number int
	text   []byte
}

// importRun is one run over a file.
type importRun struct {
	ctx      context.Context //nolint:containedctx // it lasts as long as the command
	lines    *lineReader
	addLines addLines
	report   func(reported) error
	progress func(format string, args ...any)
	size     int64

	line  int // the last one that was reported
	count map[auth.ImportOutcome]int
}

// reported is what is said of a line.
type reported struct {
	Line       int                `json:"line"`
	Outcome    auth.ImportOutcome `json:"outcome"`
	SaleID     string             `json:"saleId,omitempty"`
	SellerID   string             `json:"sellerId,omitempty"`
	ExternalID string             `json:"externalId,omitempty"`
	Email      string             `json:"email,omitempty"`
	ID         string             `json:"id,omitempty"`
	Problems   map[string]string  `json:"problems,omitempty"`
}

// as says whether what the line is about is new.
func (r reported) as(created bool) reported {
	r.Outcome = auth.ImportUnchanged
	if created {
		r.Outcome = auth.ImportCreated
	}
	return r
}

// all imports the file, some lines at a time.
func (r *importRun) all() error {
	r.count = make(map[auth.ImportOutcome]int)
	for more := true; more; {
		var lines []textLine
		var report []reported
		for len(report) < importedAtOnce {
			text, number, err := r.lines.next()
			if errors.Is(err, io.EOF) {
				more = false
				break
			}
			var bad badLine
			switch {
			case errors.As(err, &bad):
				report = append(report, reported{Line: number, Outcome: auth.ImportFailed, Problems: map[string]string{bad.field: bad.problem}})
			case err != nil:
				return err
			default:
				lines = append(lines, textLine{number, bytes.Clone(text)})
				report = append(report, reported{Line: number})
			}
		}
		if err := r.add(lines, report); err != nil {
			return err
		}
	}
	return nil
}

// add imports lines, and completes and writes the report of them.
func (r *importRun) add(lines []textLine, report []reported) error {
	var results []reported
	if len(lines) > 0 {
		var err error
		if results, err = r.addLines(r.ctx, lines); err != nil {
			return err
		}
	}
	for _, said := range report {
		if said.Outcome == "" {
			results[0].Line = said.Line
			said, results = results[0], results[1:]
		}
		r.line = said.Line
		r.count[said.Outcome]++
		if err := r.report(said); err != nil {
			return err
		}
	}
	part := ""
	if r.size > 0 {
		part = fmt.Sprintf(" (%d %%)", min(r.lines.read*100/r.size, 100))
	}
	r.progress("Lines: %d%s, failed: %d", r.line, part, r.count[auth.ImportFailed])
	return r.ctx.Err()
}

// reportLines writes what is said of lines: all of them for programs, and on a terminal those that failed.
func reportLines(w io.Writer, asJSON, onTerminal bool) func(reported) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		return func(r reported) error { return encoder.Encode(r) }
	}
	return func(r reported) error {
		if onTerminal && r.Outcome != auth.ImportFailed {
			return nil
		}
		var problems []string
		for _, field := range slices.Sorted(maps.Keys(r.Problems)) {
			problems = append(problems, field+" "+r.Problems[field])
		}
		cells := []string{strconv.Itoa(r.Line), string(r.Outcome)}
		switch {
		case r.SaleID != "":
			cells = append(cells, r.SaleID, r.SellerID)
		case r.SellerID != "":
			cells = append(cells, r.SellerID)
		default:
			cells = append(cells, r.ExternalID, r.Email, r.ID)
		}
		cells = append(cells, strings.Join(problems, "; "))
		for i := range cells {
			cells[i] = printable(cells[i])
		}
		_, err := fmt.Fprintln(w, strings.Join(cells, "\t"))
		return err
	}
}

// badLine is a line that is no user.
type badLine struct{ field, problem string }

func (b badLine) Error() string { return b.field + " " + b.problem }

// wholeLine stands for the field where no field can be named.
const wholeLine = "line"

// lineReader reads lines of a bounded length.
type lineReader struct {
	r      *bufio.Reader
	number int
	read   int64
}

// next returns the next line that is not blank, and its number. A line that is too long is skipped, and is a [badLine].
func (l *lineReader) next() ([]byte, int, error) {
	for {
		text, err := l.r.ReadSlice('\n')
		l.read += int64(len(text))
		if len(text) == 0 && err != nil {
			return nil, 0, err
		}
		l.number++
		if errors.Is(err, bufio.ErrBufferFull) {
			for errors.Is(err, bufio.ErrBufferFull) {
				text, err = l.r.ReadSlice('\n')
				l.read += int64(len(text))
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, 0, err
			}
			return nil, l.number, badLine{wholeLine, fmt.Sprintf("is longer than %d bytes", maxImportLine)}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if l.number == 1 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return text, l.number, nil
		}
	}
}

// importJSON is a line of a file of users, as it is imported and exported.
type importJSON struct {
	ExternalID    string       `json:"externalId,omitempty"`
	Email         string       `json:"email"`
	Name          string       `json:"name"`
	Role          auth.Role    `json:"role,omitempty"`
	EmailVerified bool         `json:"emailVerified"`
	PasswordHash  string       `json:"passwordHash,omitempty"`
	CreatedAt     string       `json:"createdAt,omitempty"`
	Profile       *profileJSON `json:"profile,omitempty"`
	Suspended     bool         `json:"suspended,omitempty"`
}

type profileJSON struct {
	Avatar  string `json:"avatar"`
	Bio     string `json:"bio"`
	Website string `json:"website"`
}

// readImportLine reads a line. A field that it does not know is refused: a hash under a name that is spelled wrong
// would make a user who can't sign in. Of a line that is refused it returns what could be read.
func readImportLine(text []byte) (auth.ImportLine, error) {
	var in importJSON
	err := decodeLine(text, &in, "a user")
	line := auth.ImportLine{
		ExternalID: in.ExternalID, Email: in.Email, Name: in.Name, Role: in.Role, Verified: in.EmailVerified,
		PasswordHash: in.PasswordHash, Suspended: in.Suspended,
	}
	if p := in.Profile; p != nil {
		line.Profile = &auth.Profile{Avatar: p.Avatar, Bio: p.Bio, Website: p.Website}
	}
	if err != nil {
		return line, err
	}
	if in.CreatedAt != "" {
		line.CreatedAt, err = time.Parse(time.RFC3339, in.CreatedAt)
		if err != nil {
			return line, badLine{"createdAt", "must be a time such as 2024-05-01T10:00:00Z"}
		}
		if line.CreatedAt.IsZero() { // which stands for none
			return line, badLine{"createdAt", "must be between 1970 and now"}
		}
	}
	return line, nil
}

// importProblem says what is wrong with the JSON of a line.
func importProblem(err error, what string) badLine {
	var wrongType *json.UnmarshalTypeError
	const unknown = "json: unknown field "
	switch {
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return badLine{wrongType.Field, "must not be a JSON " + wrongType.Value}
	case errors.As(err, &wrongType):
		return badLine{wholeLine, "must be a JSON object"}
	case strings.HasPrefix(err.Error(), unknown):
		return badLine{strings.Trim(strings.TrimPrefix(err.Error(), unknown), `"`), "is no field of " + what}
	default:
		return badLine{wholeLine, "is not JSON: " + err.Error()}
	}
}

type userExportCmd struct {
	WithPasswordHashes bool `help:"Write the hashes of passwords too. Keep the file as you keep the database."`
}

func (userExportCmd) Help() string {
	return "Each line is a user, as \"bursar user import\" reads it. Ids, sessions, second factors and ways to sign in through a provider are not among it.\n\n" +
		examples("bursar user export >users.ndjson", "(umask 077; bursar user export --with-password-hashes >users.ndjson)")
}

// Run writes the users as they are read.
func (c userExportCmd) Run(ctx context.Context, e *env) error {
	datastore, users, err := openUsers(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	out := bufio.NewWriter(e.out)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	progress := progressOn(e.err)
	written, refused := 0, 0
	err = users.EachUser(ctx, auth.UserFilter{}, func(u auth.ListedUser) error {
		if u.Deleted() {
			return nil
		}
		if u.Tampered {
			refused++
			_, err := fmt.Fprintf(e.err, "%s was changed in the database, and is left out. Run \"bursar user reset\" first.\n", u.ID)
			return err
		}
		line := importJSON{
			ExternalID: u.ExternalID, Email: u.Email, Name: u.Name, Role: u.Role, EmailVerified: u.Verified,
			CreatedAt: u.CreatedAt.UTC().Format(time.RFC3339Nano), Suspended: u.Suspended,
			Profile: &profileJSON{u.Profile.Avatar, u.Profile.Bio, u.Profile.Website},
		}
		if c.WithPasswordHashes {
			line.PasswordHash = u.PasswordHash
		}
		written++
		if written%1000 == 0 {
			progress("Users: %d", written)
		}
		return encoder.Encode(line)
	})
	progress("")
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	if refused > 0 {
		return errReported
	}
	return nil
}
