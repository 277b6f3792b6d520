//go:build linux || darwin

package pgtest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// programs are PostgreSQL's, in the one directory where an installation has all of them.
type programs struct{ dir string }

// findPrograms looks where the PATH leads, then where distributions put each version, newest first.
func findPrograms() (programs, error) {
	var dirs []string
	if postgres, err := exec.LookPath("postgres"); err == nil {
		if postgres, err = filepath.EvalSymlinks(postgres); err == nil { // what stands on the PATH may be some of them
			dirs = append(dirs, filepath.Dir(postgres))
		}
	}
	if dir, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(dir)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are good
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		if has(dir, "postgres") && has(dir, "initdb") {
			return programs{dir}, nil
		}
	}
	return programs{}, errMissing
}

func has(dir, program string) bool {
	info, err := os.Stat(filepath.Join(dir, program))
	return err == nil && info.Mode().IsRegular()
}

// version is the number in the name of the directory above bin.
func version(dir string) int {
	name := filepath.Base(filepath.Dir(dir))
	n, _ := strconv.Atoi(name[strings.LastIndexAny(name, "@-")+1:])
	return n
}

// command prepares a program to run apart from this process's terminal and PostgreSQL settings, as
// a user whom PostgreSQL accepts.
func (p programs) command(name string, args ...string) (*exec.Cmd, error) {
	who, err := unprivileged()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(p.dir, name), args...)
	cmd.Dir = "/" // where we stand may be closed to others
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "PG") && !strings.HasPrefix(setting, "LC_") {
			cmd.Env = append(cmd.Env, setting)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: who}
	return cmd, nil
}

// unprivileged is whom PostgreSQL's programs run as when we are root, whom they refuse; nil if we are not.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

// giveAway makes a file belong to whom PostgreSQL runs as.
func giveAway(file string) error {
	who, err := unprivileged()
	if err != nil || who == nil {
		return err
	}
	return os.Chown(file, int(who.Uid), int(who.Gid))
}
