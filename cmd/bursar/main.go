// Command bursar is seller sign-in and payouts for a marketplace, in one program.
//
// "bursar serve" is the service. The other commands look after it, and work beside a running server
// on the same data. Results go to standard output; the log, progress and errors go to standard error.
// A command exits with 0 when it is done, 1 when it failed, and 2 when it was asked wrongly.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"bursar/internal/app"
	"bursar/internal/config"
	"bursar/internal/fault"
	"bursar/internal/ledger"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal asks to stop, a second one ends the program
	os.Exit(run(ctx, os.Args[1:], os.Environ(), stdio{os.Stdin, os.Stdout, os.Stderr}))
}

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// env is what every command is given beside its own flags.
type env struct {
	stdio
	settings *config.Settings
	sources  *config.Sources
}

// config is the checked configuration, or config.Problems.
func (e *env) config() (config.Config, error) { return e.settings.Parse(e.sources) }

// open opens the datastore that the command was pointed at, in one of the ways of package app.
func (e *env) open(ctx context.Context, how func(context.Context, config.Config) (*app.Datastore, error)) (config.Config, *app.Datastore, error) {
	cfg, err := e.config()
	if err != nil {
		return cfg, nil, err
	}
	datastore, err := how(ctx, cfg)
	return cfg, datastore, err
}

// openExisting opens the datastore that a command was pointed at, and makes none.
func openExisting(ctx context.Context, e *env) (config.Config, *app.Datastore, error) {
	return e.open(ctx, app.OpenExisting)
}

// run is the program: it ends when its command does, or ctx, and returns the exit code.
func run(ctx context.Context, args, environ []string, std stdio) int {
	if len(args) == 0 {
		run(ctx, []string{"--help"}, environ, stdio{std.in, std.err, std.err})
		return exitUsage
	}
	if args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	var cli commands
	e := &env{std, &cli.Settings, config.NewSources(environ)}
	helped := false
	parser, err := kong.New(&cli,
		kong.Name("bursar"),
		kong.Description("Seller sign-in and payouts for a marketplace."),
		kong.Writers(std.out, std.err),
		kong.Exit(func(int) { helped = true }),
		kong.Resolvers(e.sources),
		kong.Groups(config.Groups()),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
		kong.ValueFormatter(describe),
		kong.Help(help),
		kong.Vars{"version": versionLine()},
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(e),
	)
	if err != nil {
		return report(std.err, err)
	}
	command, err := parser.Parse(args)
	switch {
	case helped:
		return exitDone
	case isGroup(err, args):
		run(ctx, append(slices.Clone(args), "--help"), environ, stdio{std.in, std.err, std.err})
		return exitUsage
	case err != nil:
		return report(std.err, usageError{plainUsage(err)})
	default:
		return report(std.err, command.Run())
	}
}

// isGroup tells whether the arguments are no more than the name of commands, such as "user", and lack the command.
func isGroup(err error, args []string) bool {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return false
	}
	selected := parse.Context.Selected()
	return selected != nil && len(selected.Children) > 0 && len(args) == 1 && args[0] == selected.Name
}

// plainUsage says of a flag at the end without a value what the parser says in its own terms.
func plainUsage(err error) error {
	flag, isEnd := strings.CutSuffix(err.Error(), ` value but got "EOL" (<EOL>)`)
	if !isEnd {
		return err
	}
	flag, _, _ = strings.Cut(flag, ": expected ")
	return fmt.Errorf("%s needs a value", flag)
}

// usageError is an error in how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// unfinished is why there is no verdict, where 1 means a bad one.
type unfinished struct{ error }

func (u unfinished) Unwrap() error { return u.error }

// errReported is a failure that the command has told about already.
var errReported = errors.New("reported already")

// report writes an error for people and returns the exit code.
func report(w io.Writer, err error) int {
	var problems config.Problems
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &problems):
		fmt.Fprintf(w, "bursar: %v\nRun \"bursar help settings\" for what each one means.\n", problems)
		return exitUsage
	case errors.As(err, &unfinished{}):
		fmt.Fprintf(w, "bursar: %s\n", explain(err))
		return exitUsage
	case askedWrongly(err):
		fmt.Fprintf(w, "bursar: %s\nRun the command with --help for how it is used.\n", explain(err))
		return exitUsage
	default:
		fmt.Fprintf(w, "bursar: %s\n", explain(err))
		return exitFailed
	}
}

// askedWrongly tells whether another command line would have gone well.
func askedWrongly(err error) bool {
	if _, ok := errors.AsType[usageError](err); ok {
		return true
	}
	f := fault.From(err)
	return f != nil && (f.Kind == fault.Malformed || f.Kind == fault.Invalid)
}

// explain prefers the words of a fault, which are meant for people: those about the fields at fault,
// where it names some.
func explain(err error) string {
	f := fault.From(err)
	if f == nil {
		return err.Error()
	}
	text := f.Message
	if len(f.Details) > 0 {
		var details []string
		for _, field := range slices.Sorted(maps.Keys(f.Details)) {
			details = append(details, field+": "+f.Details[field])
		}
		text = strings.Join(details, "; ")
	}
	if cause := f.Unwrap(); cause != nil {
		text += fmt.Sprintf(" (%v)", cause)
	}
	if errors.Is(err, ledger.ErrTampered) { // what it says is for sellers
		text += ". \"bursar audit\" names what was changed, and \"bursar repair\" shows what it would rebuild; after that, run this again"
	}
	return text
}
