package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bursar/internal/decision"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/limits"
	"bursar/internal/passwordhash"
)

// ImportTx is what an import and the operator ask of a store transaction.
type ImportTx interface {
	// UserForUpdate finds a user by id, and keeps them as they are until the transaction ends.
	UserForUpdate(ctx context.Context, id string) (User, bool, error)
	// ImportedUsers finds the users who have one of the external ids, or one of the keys of e-mail addresses. A user
	// may be among them twice.
	ImportedUsers(ctx context.Context, externalIDs, emailKeys []string) ([]Imported, error)
	// InsertImported adds a user, and reports whether nobody had the e-mail address or the external id before. It fails with
	// [ErrEmailReserved].
	InsertImported(ctx context.Context, i Imported) (bool, error)
	// CheckReserved fails with [ErrEmailReserved] while a mailed link can give an address back to a user other than userID.
	CheckReserved(ctx context.Context, userID, email string) error
	// PasswordDecoy is the hash that SetPasswordDecoy stored last; empty for none.
	PasswordDecoy(ctx context.Context) (string, error)
	// SetPasswordDecoy stores a hash that costs as much to check as the costliest that was imported.
	SetPasswordDecoy(ctx context.Context, decoy string) error
}

// Imported is a user with fingerprints of the fields that they were imported with; empty for one who registered.
type Imported struct {
	User        User
	Fingerprint string
}

// ImportLine is a user of another system.
type ImportLine struct {
	Number       int    // of the line in its file
	ExternalID   string // none: the e-mail address tells users apart
	Email        string
	Name         string
	Role         Role // none is buyer
	Verified     bool
	PasswordHash string // none: the user sets a password, or signs in through a provider
	CreatedAt    time.Time
	Profile      *Profile
	Suspended    bool
}

// ImportOutcome is what became of a line.
type ImportOutcome string

// The outcomes.
const (
	ImportCreated   ImportOutcome = "created"
	ImportUnchanged ImportOutcome = "unchanged"
	ImportFailed    ImportOutcome = "failed"
)

// ImportResult is what became of a line.
type ImportResult struct {
	Outcome ImportOutcome
	UserID  string // empty where there is no such user
	// Problems names the fields at fault, where the line failed.
	Problems map[string]string
}

// ImportOptions say how users are imported.
type ImportOptions struct {
	// DryRun checks every line, and changes nothing.
	DryRun bool
	// AllowAdmins lets a line make an admin.
	AllowAdmins bool
}

// Import takes over users of another system. Each line becomes a user, is found to be one already, or is refused; no
// line harms another. It is not safe for concurrent use.
type Import struct {
	s  *Service
	by decision.By
	o  ImportOptions
	// made is the lines that a dry run would have created, by a hash of what tells users apart.
	made map[uint64]madeLine
	seed maphash.Seed
}

// madeLine is a line that a dry run would have made a user of.
type madeLine struct {
	number      int
	fingerprint uint64
}

// maxMade bounds the memory of a dry run, at about a hundred bytes a line. Past it, only the import itself finds two
// lines of one file that contradict each other.
const maxMade = 2_000_000

// NewImport begins an import, which an operator decided on.
func (s *Service) NewImport(by decision.By, o ImportOptions) *Import {
	return &Import{s: s, by: by, o: o, made: map[uint64]madeLine{}, seed: maphash.MakeSeed()}
}

// Add imports lines in one transaction, and returns what became of each. When it fails, either all of them were
// imported or none; to add them again is safe.
func (i *Import) Add(ctx context.Context, lines []ImportLine) ([]ImportResult, error) {
	now := i.s.o.Now().UTC().Truncate(time.Microsecond) // as it will be read back
	checked := make([]checkedLine, len(lines))
	for n, line := range lines {
		checked[n] = i.check(line, now)
	}
	var results []ImportResult
	err := i.s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		results, err = i.add(ctx, tx, checked, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	if i.o.DryRun {
		for n := range results {
			i.dryRun(checked[n].ImportLine, &results[n])
		}
	}
	return results, nil
}

// add decides on lines in a transaction, and carries that out unless it is a dry run.
func (i *Import) add(ctx context.Context, tx Tx, lines []checkedLine, now time.Time) ([]ImportResult, error) {
	b := importBatch{tx: tx, now: now, dryRun: i.o.DryRun, byExternalID: map[string]Imported{}, byEmail: map[string]Imported{}}
	if err := b.load(ctx, lines); err != nil {
		return nil, err
	}
	results := make([]ImportResult, len(lines))
	created := 0
	var costliest passwordhash.Hash
	for n, line := range lines {
		r, err := b.take(ctx, line)
		if err != nil {
			return nil, err
		}
		results[n] = r
		if r.Outcome == ImportCreated {
			created++
			if line.hash.Work > costliest.Work {
				costliest = line.hash
			}
		}
	}
	if created == 0 || i.o.DryRun {
		return results, nil
	}
	if err := keepDecoy(ctx, tx, costliest); err != nil {
		return nil, err
	}
	by := i.by
	by.Note = strings.TrimSpace(fmt.Sprintf("Imported %d users of lines %d to %d. %s", created, lines[0].Number, lines[len(lines)-1].Number, by.Note))
	return results, ledger.RecordDecision(ctx, tx, decision.New(by, decision.ImportUsers, decision.Platform, decision.Platform, now))
}

// keepDecoy makes refused sign-ins take as long as a check of the costliest hash that was ever imported.
func keepDecoy(ctx context.Context, tx Tx, costliest passwordhash.Hash) error {
	if costliest.Decoy == "" {
		return nil
	}
	stored, err := tx.PasswordDecoy(ctx)
	if err != nil {
		return err
	}
	if kept, err := passwordhash.Parse(stored); err == nil && kept.Work >= costliest.Work {
		return nil
	}
	return tx.SetPasswordDecoy(ctx, costliest.Decoy)
}

// dryRun corrects what a dry run says of a line, if an earlier line of the file would have made its user.
func (i *Import) dryRun(line ImportLine, r *ImportResult) {
	if r.Outcome != ImportCreated {
		return
	}
	keys := []uint64{maphash.String(i.seed, "email "+EmailKey(line.Email))}
	if line.ExternalID != "" {
		keys = append(keys, maphash.String(i.seed, "id "+line.ExternalID))
	}
	fingerprint := maphash.String(i.seed, fingerprint(line))
	for n, field := range []string{"email", "externalId"}[:len(keys)] {
		earlier, exists := i.made[keys[n]]
		switch {
		case !exists:
		case earlier.fingerprint == fingerprint:
			*r = ImportResult{Outcome: ImportUnchanged}
			return
		default:
			*r = ImportResult{Outcome: ImportFailed, Problems: map[string]string{
				field: fmt.Sprintf("is also that of line %d, which differs", earlier.number),
			}}
			return
		}
	}
	if len(i.made) < maxMade {
		for _, key := range keys {
			i.made[key] = madeLine{line.Number, fingerprint}
		}
	}
}

// checkedLine is a line with what is wrong with it by itself.
type checkedLine struct {
	ImportLine
	problems map[string]string
	// hash is the password's, where another system made it.
	hash passwordhash.Hash
}

const maxExternalIDBytes = 200

// CheckExternalID returns what is wrong with an external id, or "".
func CheckExternalID(externalID string) string {
	hidden := func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) || limits.IsControl(c) }
	if externalID == "" || len(externalID) > maxExternalIDBytes || !utf8.ValidString(externalID) || strings.ContainsFunc(externalID, hidden) {
		return "must be 1 to 200 bytes of visible characters, without spaces"
	}
	return ""
}

// check finds what is wrong with a line by itself.
func (i *Import) check(line ImportLine, now time.Time) checkedLine {
	if line.Role == "" {
		line.Role = Buyer
	}
	line.CreatedAt = line.CreatedAt.UTC().Truncate(time.Microsecond)
	c := checkedLine{ImportLine: line, problems: map[string]string{}}
	note := func(field, problem string) {
		if problem != "" {
			c.problems[field] = problem
		}
	}
	if line.ExternalID != "" {
		note("externalId", CheckExternalID(line.ExternalID))
	}
	note("email", CheckEmail(line.Email))
	note("name", CheckName(line.Name))
	note("role", i.checkRole(line.Role))
	if !line.CreatedAt.IsZero() && (line.CreatedAt.Before(time.Unix(0, 0)) || line.CreatedAt.After(now)) {
		note("createdAt", "must be between 1970 and now")
	}
	if p := line.Profile; p != nil {
		note("profile", checkProfile(*p))
	}
	own, err := parsePasswordHash(line.PasswordHash)
	if line.PasswordHash != "" && (err != nil || own.cost != i.s.passwords.cost) {
		if c.hash, err = passwordhash.Parse(line.PasswordHash); err != nil {
			note("passwordHash", err.Error())
		}
	}
	return c
}

func (i *Import) checkRole(role Role) string {
	switch {
	case role == Buyer || role == Seller || role == Admin && i.o.AllowAdmins:
		return ""
	case role == Admin:
		return "must be buyer or seller; an admin is imported only where that was allowed"
	default:
		return "must be buyer or seller"
	}
}

// checkProfile returns what is wrong with a profile, or "".
func checkProfile(p Profile) string {
	var problems []string
	for _, field := range []struct{ name, problem string }{
		{"avatar", checkAddress(p.Avatar, "https")},
		{"bio", checkBio(p.Bio)},
		{"website", checkAddress(p.Website, "http", "https")},
	} {
		if field.problem != "" {
			problems = append(problems, field.name+" "+field.problem)
		}
	}
	return strings.Join(problems, "; ")
}

// importBatch is the lines of one transaction beside the users that are there.
type importBatch struct {
	tx           Tx
	now          time.Time
	dryRun       bool
	byExternalID map[string]Imported
	byEmail      map[string]Imported
}

// load finds the users that lines may be about.
func (b *importBatch) load(ctx context.Context, lines []checkedLine) error {
	var externalIDs, emailKeys []string
	for _, line := range lines {
		if len(line.problems) > 0 {
			continue
		}
		if line.ExternalID != "" {
			externalIDs = append(externalIDs, line.ExternalID)
		}
		emailKeys = append(emailKeys, EmailKey(line.Email))
	}
	found, err := b.tx.ImportedUsers(ctx, externalIDs, emailKeys)
	for _, i := range found {
		b.add(i)
	}
	return err
}

func (b *importBatch) add(i Imported) {
	if i.User.ExternalID != "" {
		b.byExternalID[i.User.ExternalID] = i
	}
	b.byEmail[EmailKey(i.User.Email)] = i
}

// take decides on a line and carries that out.
func (b *importBatch) take(ctx context.Context, line checkedLine) (ImportResult, error) {
	if len(line.problems) > 0 {
		return ImportResult{Outcome: ImportFailed, Problems: line.problems}, nil
	}
	if r, exists := b.compare(line.ImportLine); exists {
		return r, nil
	}
	i, inserted := imported(line.ImportLine, b.now), false
	var err error
	if b.dryRun {
		err = b.tx.CheckReserved(ctx, "", line.Email)
	} else {
		inserted, err = b.tx.InsertImported(ctx, i)
	}
	if errors.Is(err, ErrEmailReserved) {
		return ImportResult{Outcome: ImportFailed, Problems: map[string]string{"email": "was another account's a few days ago, which can get it back: import this user a week later"}}, nil
	}
	if err != nil {
		return ImportResult{}, err
	}
	if b.dryRun {
		return ImportResult{Outcome: ImportCreated}, nil
	}
	if inserted {
		b.add(i)
		return ImportResult{Outcome: ImportCreated, UserID: i.User.ID}, nil
	}
	// Another transaction made the user after the batch was loaded.
	if err := b.load(ctx, []checkedLine{line}); err != nil {
		return ImportResult{}, err
	}
	r, exists := b.compare(line.ImportLine)
	if !exists {
		return ImportResult{}, fmt.Errorf("line %d: the user is there, and is not found", line.Number)
	}
	return r, nil
}

// imported is the user that a line makes.
func imported(line ImportLine, now time.Time) Imported {
	u := User{
		ID: id.New(UserIDPrefix, now), Name: line.Name, Email: line.Email, Role: line.Role, Verified: line.Verified, Suspended: line.Suspended,
		PasswordHash: line.PasswordHash, CreatedAt: line.CreatedAt, ExternalID: line.ExternalID,
	}
	if u.CreatedAt.IsZero() {
		u.CreatedAt = now
	}
	if line.Profile != nil {
		u.Profile = *line.Profile
	}
	return Imported{u, fingerprint(line)}
}

// compare holds a line against the user that it is about, if there is one.
func (b *importBatch) compare(line ImportLine) (ImportResult, bool) {
	failed := func(user, field, problem string) (ImportResult, bool) {
		return ImportResult{Outcome: ImportFailed, UserID: user, Problems: map[string]string{field: problem}}, true
	}
	same, byID := b.byExternalID[line.ExternalID]
	holder, byEmail := b.byEmail[EmailKey(line.Email)]
	switch {
	case byID && byEmail && holder.User.ID != same.User.ID:
		return failed(same.User.ID, "email", "is that of another user, "+holder.User.ID)
	case byID:
	case !byEmail:
		return ImportResult{}, false
	case line.ExternalID != "" && holder.User.ExternalID == "":
		return failed(holder.User.ID, "externalId", "is new, and the user "+holder.User.ID+" has this e-mail address already, without an externalId")
	case line.ExternalID != "":
		return failed(holder.User.ID, "externalId", "is new, and the user "+holder.User.ID+" has this e-mail address already, with another externalId")
	default:
		same = holder
	}
	problems := differences(line, same)
	if len(problems) > 0 {
		return ImportResult{Outcome: ImportFailed, UserID: same.User.ID, Problems: problems}, true
	}
	return ImportResult{Outcome: ImportUnchanged, UserID: same.User.ID}, true
}

// field is one field of a line, as text that can be compared.
type field struct {
	name, text string
	// claims nothing where the line has no such field.
	isAbsent bool
}

// fields lists what a line says, in an order that never changes.
func fields(line ImportLine) []field {
	profile, createdAt := "", ""
	if p := line.Profile; p != nil {
		profile = strings.Join([]string{p.Avatar, p.Bio, p.Website}, "\x00")
	}
	if !line.CreatedAt.IsZero() {
		createdAt = strconv.FormatInt(line.CreatedAt.UnixMicro(), 10)
	}
	return []field{
		{"externalId", line.ExternalID, line.ExternalID == ""},
		{"email", EmailKey(line.Email), false},
		{"name", line.Name, false},
		{"role", string(line.Role), false},
		{"emailVerified", strconv.FormatBool(line.Verified), false},
		{"passwordHash", line.PasswordHash, line.PasswordHash == ""},
		{"createdAt", createdAt, createdAt == ""},
		{"profile", profile, line.Profile == nil},
		{"suspended", strconv.FormatBool(line.Suspended), false},
	}
}

// sumDigits is the length of one field's fingerprint.
const sumDigits = 8

// sum is short: it only has to tell what an operator gives from what they gave before.
func (f field) sum() string {
	sum := sha256.Sum256([]byte(f.name + "\x00" + f.text))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:sumDigits]
}

// fingerprint is the sums of all fields of a line.
func fingerprint(line ImportLine) string {
	var b strings.Builder
	for _, f := range fields(line) {
		b.WriteString(f.sum())
	}
	return b.String()
}

// differences names the fields of a line that are neither what the user was imported with nor what they are now. A
// user who was imported may have changed since: their hash was replaced when they signed in, and they may have
// another name.
func differences(line ImportLine, i Imported) map[string]string {
	u := i.User
	now := fields(ImportLine{
		ExternalID: u.ExternalID, Email: u.Email, Name: u.Name, Role: u.Role, Verified: u.Verified,
		PasswordHash: u.PasswordHash, CreatedAt: u.CreatedAt, Profile: &u.Profile, Suspended: u.Suspended,
	})
	problems := map[string]string{}
	for n, f := range fields(line) {
		was := ""
		if from := n * sumDigits; len(i.Fingerprint) >= from+sumDigits {
			was = i.Fingerprint[from : from+sumDigits]
		}
		if !f.isAbsent && f.sum() != was && f.text != now[n].text {
			problems[f.name] = "differs from the user " + u.ID
		}
	}
	return problems
}
