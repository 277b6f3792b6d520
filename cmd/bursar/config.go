package main

import (
	"fmt"

	"github.com/alecthomas/kong"

	"bursar/internal/app"
	"bursar/internal/config"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"List everything that is wrong with the settings."`
	Print configPrintCmd `cmd:"" help:"Print all settings, as a file of settings; secrets are left out."`
}

type configCheckCmd struct{}

func (configCheckCmd) Help() string {
	return examples("bursar config check", "bursar config check --config /etc/bursar.env")
}

// Run reads the settings and opens nothing.
func (configCheckCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	if err := app.CheckSettings(cfg); err != nil {
		return err
	}
	for _, name := range e.sources.Unknown() {
		fmt.Fprintf(e.err, "%s is no setting; nothing reads it\n", name)
	}
	_, err = fmt.Fprintln(e.out, "The settings are right.")
	return err
}

type configPrintCmd struct{}

func (configPrintCmd) Help() string {
	return examples("bursar config print", "bursar config print >bursar.env && bursar serve --config bursar.env")
}

// Run prints the settings even where some are wrong: that is when they are looked at.
func (configPrintCmd) Run(e *env, parser *kong.Kong) error {
	return config.Print(e.out, parser.Model)
}
