package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"bursar/internal/config"
)

// CopyDatabase fills a file that was just made with a consistent copy of the database.
func (b *Datastore) CopyDatabase(ctx context.Context, file *os.File) error {
	if b.cfg.Database.Postgres != "" {
		return errors.Join(dumpPostgres(ctx, b.cfg.Database, file), file.Sync())
	}
	return b.db.Backup(ctx, file.Name())
}

// dumpPostgres writes a copy of the database in the format of pg_dump, which knows best how. Where to
// connect to is in its environment: every user may read the arguments of a program.
func dumpPostgres(ctx context.Context, where config.Database, w io.Writer) error {
	program, err := exec.LookPath("pg_dump")
	if err != nil {
		return errors.New("pg_dump is not there; install PostgreSQL's client programs (often the package postgresql-client), of the server's version or newer")
	}
	var complaint bytes.Buffer
	dump := exec.CommandContext(ctx, program, "--format=custom", "--no-password") //nolint:gosec // it was found where programs are
	dump.Stdout, dump.Stderr = w, &complaint
	// A standby may be behind; what an address says of its own wins over that.
	dump.Env = append(os.Environ(), "LC_ALL=C", "PGTARGETSESSIONATTRS=read-write")
	dump.Env = append(dump.Env, where.Environ()...)
	err = dump.Run()
	if err == nil {
		return nil
	}
	_, versions, isOlder := strings.Cut(oneLine(complaint.String()), "server version mismatch pg_dump: detail: ")
	if isOlder {
		return fmt.Errorf("%s is older than the server; install PostgreSQL's client programs of the server's version (%s)", program, versions)
	}
	return fmt.Errorf("%s (%w)", oneLine(complaint.String()), err)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
