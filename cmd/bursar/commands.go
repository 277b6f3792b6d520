package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"bursar/internal/config"
)

// commands is the command line.
type commands struct {
	config.Settings
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Serve   serveCmd   `cmd:"" help:"Run the service."`
	Demo    demoCmd    `cmd:"" help:"Run the service on throw-away data, filled with a small marketplace."`
	Sandbox sandboxCmd `cmd:"" help:"Run the payment gateway's sandbox alone."`

	SettingsTopic settingsTopic `cmd:"" name:"settings" hidden:"" help:"All settings."`
	FaultsTopic   faultsTopic   `cmd:"" name:"faults" hidden:"" help:"The simulator's faults."`

	User    userCmd    `cmd:"" help:"Look after users."`
	Apikey  apikeyCmd  `cmd:"" help:"Look after the marketplace's service keys."`
	Webhook webhookCmd `cmd:"" help:"Look after the servers that events are delivered to."`
	Keys    keysCmd    `cmd:"" help:"Look after the key set."`
	Import  importCmd  `cmd:"" help:"Take over sellers, balances and sales of another system."`

	Seller  sellerCmd  `cmd:"" help:"Look at a seller's money."`
	Payout  payoutCmd  `cmd:"" help:"Look at payouts."`
	Payouts payoutsCmd `cmd:"" help:"Stop and resume the payouts of all sellers."`

	Simulate simulateCmd `cmd:"" help:"Try to break the payouts, in virtual time and with everything that can go wrong."`

	Audit      auditCmd      `cmd:"" help:"Check every balance and every invariant of the ledger."`
	Reconcile  reconcileCmd  `cmd:"" help:"Compare the gateway's statement with the ledger, line by line."`
	Repair     repairCmd     `cmd:"" help:"Rebuild rows from the journal that were changed in the database."`
	Statement  statementCmd  `cmd:"" help:"Write a seller's statement, with the proof that it is true."`
	Verify     verifyCmd     `cmd:"" help:"Check a statement, with nothing but the public key."`
	Checkpoint checkpointCmd `cmd:"" help:"Sign a checkpoint of all journals now; serve does so by itself."`
	Backup     backupCmd     `cmd:"" help:"Copy the database while the service runs."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the database up to date; serve does so by itself."`
	Health     healthCmd     `cmd:"" help:"Ask a running service whether it is well."`

	ConfigCmd  configCmd     `cmd:"" name:"config" help:"Look at the settings."`
	Completion completionCmd `cmd:"" help:"Print a script that completes commands in a shell."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

// describe writes a flag's help with the environment variable that stands for it.
func describe(value *kong.Value) string {
	if value.Flag == nil || value.Flag.Group == nil {
		return value.Help
	}
	variable := config.Variable(value.Name)
	if value.Tag.Has("secret") && variable != "BURSAR_KEYS" {
		variable += "[_FILE]"
	}
	if value.Tag.Has("secret") && !config.IsAddress(value.Name) { // a flag would show it to every user of the machine
		return fmt.Sprintf("%s (only as %s)", value.Help, variable)
	}
	return fmt.Sprintf("%s (%s)", value.Help, variable)
}

// Settings that the help of a command lists. Every command understands all of them, which "bursar help settings" lists.
var (
	shownSettings = []string{"data-dir", "database-url"}
	serveSettings = []string{"config", "addr", "base-url", "gateway"}
	// dataless are the commands that open no datastore.
	dataless = []string{"verify", "version", "health", "simulate", "sandbox", "completion"}
)

// help keeps the help of a command to one screen.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	selected, isTopic := ctx.Selected(), false
	if selected != nil {
		_, isTopic = reflect.TypeAssert[topic](selected.Target)
	}
	for _, flag := range ctx.Model.Flags {
		isSetting := flag.Group != nil
		switch {
		case isTopic:
			flag.Hidden = !isSetting || selected.Name != "settings"
		case selected == nil || selected.Type != kong.CommandNode || slices.Contains(dataless, selected.Name) || len(selected.Children) > 0:
			flag.Hidden = isSetting
		default:
			isServe := selected.Name == "serve" || selected.Name == "demo"
			flag.Hidden = isSetting && !slices.Contains(shownSettings, flag.Name) && !(isServe && slices.Contains(serveSettings, flag.Name))
		}
	}
	out := ctx.Stdout
	if isTopic {
		var text bytes.Buffer
		ctx.Stdout = &text
		if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
			return err
		}
		_, about, _ := strings.Cut(text.String(), "\n\n") // how a command is used, which a topic is not
		_, err := io.WriteString(out, about)
		return err
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nRun \"bursar help settings\" for all settings.")
	return err
}

// topic is text that "bursar help" shows, and no command.
type topic interface{ isTopic() }

// settingsTopic is "bursar help settings".
type settingsTopic struct{}

func (settingsTopic) isTopic() {}

func (settingsTopic) Help() string {
	return "Each setting is a flag of every command (--cancel-window), an environment variable (BURSAR_CANCEL_WINDOW) and a line of the " +
		"file that BURSAR_CONFIG names; the first of them counts. Secrets are variables alone: a flag shows in the list of processes."
}

// Run points to the list.
func (settingsTopic) Run() error {
	return usageError{errors.New("run \"bursar help settings\" for all settings, and \"bursar config print\" for what they are now")}
}

// examples lays out lines of examples for help.
func examples(lines ...string) string {
	return "Examples:\n\n    " + strings.Join(lines, "\n    ")
}

type versionCmd struct{}

func (versionCmd) Help() string { return examples("bursar version") }

// version is set by the linker in releases.
var version = ""

// Run prints the version, and what the program was built with and for.
func (versionCmd) Run(e *env) error {
	_, err := fmt.Fprintln(e.out, versionLine())
	return err
}

func versionLine() string {
	return fmt.Sprintf("bursar %s (%s, %s/%s)", versionName(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
