package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
)

// Recorder notes every statement that the databases it opens run.
type Recorder struct {
	mu         sync.Mutex
	statements map[string]bool
}

func (r *Recorder) note(statement string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.statements == nil {
		r.statements = map[string]bool{}
	}
	r.statements[oneLine(statement)] = true
}

// again has what this process keeps be asked for again.
func again() { madeSchemas.Clear() }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// OpenSQLite is [OpenSQLite], recorded.
func (r *Recorder) OpenSQLite(ctx context.Context, path string) (*DB, error) {
	again()
	return openSQLite(ctx, path, func(dsn string) (*sql.DB, error) { return sql.OpenDB(recordedSQLite{r, dsn}), nil })
}

// OpenPostgres is [OpenPostgres], recorded.
func (r *Recorder) OpenPostgres(ctx context.Context, url string) (*DB, error) {
	config, connections, err := postgresConfig(url)
	if err != nil {
		return nil, err
	}
	config.Tracer = pgxTracer{r}
	connected := config.AfterConnect // runs below what a tracer sees
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		r.note(durabilityOn)
		return connected(ctx, conn)
	}
	again()
	return openPostgres(ctx, config, connections)
}

// FailedToWrite has a SQLite database believe that its last write failed because of the disk, and reports whether
// it does.
func FailedToWrite(db *DB, pretend bool) bool {
	w, _ := db.writer.(*groupWriter)
	if pretend {
		w.note(errFull, false)
	}
	return w.trouble.Load() != nil
}

// recordedSQLite connects to the database at a DSN.
type recordedSQLite struct {
	recorder *Recorder
	dsn      string
}

func (c recordedSQLite) Driver() driver.Driver { return &sqlite.Driver{} }

func (c recordedSQLite) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return recordedConn{conn.(sqliteConn), c.recorder}, nil
}

// sqliteConn is what SQLite's connections can do, as database/sql asks for it.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type recordedConn struct {
	sqliteConn
	recorder *Recorder
}

func (c recordedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.recorder.note(query)
	return c.sqliteConn.PrepareContext(ctx, query)
}

func (c recordedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.recorder.note(query)
	return c.sqliteConn.ExecContext(ctx, query, args)
}

func (c recordedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.recorder.note(query)
	return c.sqliteConn.QueryContext(ctx, query, args)
}

// pgxTracer notes what pgx runs, in batches too.
type pgxTracer struct{ recorder *Recorder }

func (t pgxTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	t.recorder.note(data.SQL)
	return ctx
}

func (t pgxTracer) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if data.Err == nil {
		t.recorder.note(data.SQL)
	}
}

func (t pgxTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (t pgxTracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
func (t pgxTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// Check fails the test for each statement in this package's source that was not run. The files of
// another engine, which begin with its name, are left out; so is what migrates, which runs whenever a
// database is opened.
func (r *Recorder) Check(t *testing.T, otherEngine string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	statements := statementsOf(t, otherEngine)
	if len(statements) < 50 {
		t.Errorf("only %d statements were found in the source: the test looks in the wrong place", len(statements))
	}
	for at, pattern := range statements {
		if !r.ran(pattern) {
			t.Errorf("%s: the suite never runs this statement:\n%s", at, pattern)
		}
	}
}

func (r *Recorder) ran(pattern *regexp.Regexp) bool {
	for statement := range r.statements {
		if pattern.MatchString(statement) {
			return true
		}
	}
	return false
}

// statementsOf finds all SQL in this package, by its place: every text in raw quotes, with what is added
// to it. What is handed to a function and begins like a statement is one; the rest is part of one.
func statementsOf(t *testing.T, otherEngine string) map[string]*regexp.Regexp {
	t.Helper()
	positions := token.NewFileSet()
	files := sources(t, positions, otherEngine)
	constants := constantsOf(files)
	statements := map[string]*regexp.Regexp{}
	handed := map[ast.Expr]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && field.Tag != nil { // no SQL, though in the same quotes
				return false
			}
			if call, ok := n.(*ast.CallExpr); ok {
				for _, argument := range call.Args {
					handed[argument] = !isFormat(call.Fun)
				}
			}
			e, ok := n.(ast.Expr)
			if !ok || !isSQL(e) {
				return true
			}
			statements[positions.Position(e.Pos()).String()] = pattern(text(e, constants), handed[e])
			return false
		})
	}
	return statements
}

// sources parses the files of this package whose statements the engine runs.
func sources(t *testing.T, positions *token.FileSet, otherEngine string) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, otherEngine) || name == "migrate.go" {
			continue
		}
		file, err := parser.ParseFile(positions, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// isFormat says that a function makes a text of what it is handed.
func isFormat(fun ast.Expr) bool {
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := selector.X.(*ast.Ident)
	return ok && (from.Name == "fmt" || from.Name == "strings")
}

// hole stands for a part of a text that is made when it is run.
const hole = "\x00"

// pattern matches what a text becomes when it is run: by itself, if it begins like a statement and is
// whole, or else within a statement.
func pattern(text string, whole bool) *regexp.Regexp {
	text = oneLine(text)
	expression := strings.ReplaceAll(regexp.QuoteMeta(text), hole, ".*")
	if whole && begins.MatchString(text) {
		expression = "^" + expression + "$"
	}
	return regexp.MustCompile(expression)
}

var begins = regexp.MustCompile(`^(SELECT|WITH|INSERT|UPDATE|DELETE|PRAGMA|VACUUM) `)

// constantsOf lists the constants and variables with texts in raw quotes, by name. The package has no two of a name.
func constantsOf(files []*ast.File) map[string]ast.Expr {
	constants := map[string]ast.Expr{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if decl, ok := n.(*ast.GenDecl); ok && (decl.Tok == token.CONST || decl.Tok == token.VAR) {
				for _, spec := range decl.Specs {
					spec := spec.(*ast.ValueSpec)
					for i, value := range spec.Values {
						if isSQL(value) {
							constants[spec.Names[i].Name] = value
						}
					}
				}
			}
			return true
		})
	}
	return constants
}

// isSQL says that an expression is a text in raw quotes, or a sum with one.
func isSQL(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING && strings.HasPrefix(e.Value, "`")
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (isSQL(e.X) || isSQL(e.Y))
	default:
		return false
	}
}

var verb = regexp.MustCompile(`%[ds]`)

// text is what is known of an expression's text before it runs.
func text(e ast.Expr, constants map[string]ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if value, err := strconv.Unquote(e.Value); err == nil {
			return verb.ReplaceAllString(value, hole)
		}
	case *ast.BinaryExpr:
		return text(e.X, constants) + text(e.Y, constants)
	case *ast.Ident:
		if value, ok := constants[e.Name]; ok {
			return text(value, constants)
		}
	}
	return hole
}
