//go:build linux || darwin

package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"bursar/internal/porttest"
)

// superuser owns every server made here.
const superuser = "bursar"

// server is one PostgreSQL server on this machine, with its data below its owner's home.
type server struct {
	programs programs
	data     string
	password string
	port     int

	postmaster *os.Process
	exited     chan struct{} // closed once the postmaster does not run
}

// newServer makes the data of a server whose directory is to be data. Its databases sort as a
// language does where the programs can, so that a column which relies on another order shows.
func newServer(data string, settings map[string]string) (*server, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	s := &server{programs: programs, data: data, password: rand.Text()}
	password := data + ".password"
	if err := errors.Join(os.WriteFile(password, []byte(s.password), 0o600), giveAway(password)); err != nil {
		return nil, err
	}
	defer os.Remove(password)
	args := []string{
		"--pgdata=" + data, "--username=" + superuser, "--pwfile=" + password, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--no-sync",
	}
	if s.run("initdb", append(args, "--locale-provider=icu", "--icu-locale=en")...) != nil {
		if err := s.run("initdb", args...); err != nil {
			return nil, err
		}
	}
	return s, s.configure(settings)
}

// configure adds settings to those of every server.
func (s *server) configure(settings map[string]string) error {
	all := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": filepath.Dir(s.data),
		"max_connections":         "300",
		"logging_collector":       "off",
	}
	maps.Copy(all, settings)
	file, err := os.OpenFile(filepath.Join(s.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, err := fmt.Fprintf(file, "%s = '%s'\n", name, all[name]); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return file.Close()
}

// run runs one of the programs to its end.
func (s *server) run(program string, args ...string) error {
	cmd, err := s.programs.command(program, args...)
	if err != nil {
		return err
	}
	cmd.Env = append(cmd.Env, "PGPASSWORD="+s.password)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, output)
	}
	return nil
}

// startAnywhere starts the server on a port that is free, which another process may take meanwhile.
func (s *server) startAnywhere() error {
	var err error
	for range 5 {
		if s.port, err = porttest.Free(); err != nil {
			return err
		}
		if err = s.start(); err == nil {
			return nil
		}
	}
	return err
}

// start starts the server on its port, and returns once it takes connections.
func (s *server) start() error {
	log, err := os.OpenFile(s.data+".log", os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, err := s.programs.command("postgres", "-D", s.data, "-p", strconv.Itoa(s.port))
	if err != nil {
		return err
	}
	// Each connection is a process that begins with no memory. In a virtual machine, to get it in large pieces saves a tenth of the work.
	cmd.Env = append(cmd.Env, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1", "MALLOC_TOP_PAD_=8388608")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.postmaster, s.exited = cmd.Process, exited
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	for range 3000 { // a minute, for a server that has to recover first
		if err = s.answers(); err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("postgres did not start:\n%s", s.lastWords())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("postgres takes no connections: %w\n%s", err, s.lastWords())
}

// answers tries a connection to the server.
func (s *server) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres").String())
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// lastWords is the end of the server's log.
func (s *server) lastWords() string {
	text, err := os.ReadFile(s.data + ".log")
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

func (s *server) host() string { return porttest.Address(s.port) }

func (s *server) url(database string) *url.URL {
	return &url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, s.password), Host: s.host(), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
}

// end ends the server by a signal, if it runs, and waits for that. SIGKILL goes to all its processes.
func (s *server) end(signal syscall.Signal) {
	if !s.runs() {
		return
	}
	if signal == syscall.SIGKILL {
		s.signalAll(syscall.SIGKILL)
	} else {
		_ = s.postmaster.Signal(signal) // it may have ended by itself
		s.signalAll(syscall.SIGCONT)    // one that hangs would not heed it
	}
	<-s.exited
}

// signalAll sends a signal to the server and all its processes.
func (s *server) signalAll(signal syscall.Signal) {
	_ = s.postmaster.Signal(syscall.SIGSTOP) // so that no child is born unseen
	children := childrenOf(s.postmaster.Pid)
	for _, child := range children {
		_ = syscall.Kill(child, signal) // it may have ended by itself, as may the server
	}
	_ = s.postmaster.Signal(signal)
}

func (s *server) runs() bool {
	if s.postmaster == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}
