//go:build unix

package keyset

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Root rotates the keys of a service that runs as a user of its own, which has to be able to read them afterwards.
func TestRotate_ByRoot_FileKeepsItsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := pathIn(t)
	s := open(t, path)
	const service = 65534
	if err := os.Chown(path, service, service); err != nil {
		t.Fatal(err)
	}
	if err := s.Rotate(t.Context(), time.Now(), 0); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if is, ok := info.Sys().(*syscall.Stat_t); !ok || is.Uid != service || is.Gid != service || info.Mode().Perm() != ownerOnly {
		t.Errorf("the file belongs to user %d and group %d with mode %#o; want %d and the owner alone", is.Uid, is.Gid, info.Mode().Perm(), service)
	}
}

// The service's user owns the key file, whose group is another one's. That user rotates the keys: the group may do nothing with the file.
func TestRotate_ByOwner_ForeignGroup(t *testing.T) {
	const asked, keys = "BURSAR_TEST_ROTATE", "keys.json"
	if os.Getenv(asked) != "" { // the process that is started below
		s, err := Open(t.Context(), File(keys))
		if err == nil {
			err = s.Rotate(t.Context(), time.Now(), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := t.TempDir()
	path, program := filepath.Join(dir, keys), filepath.Join(dir, "test")
	open(t, path)
	const service = 65534
	own, err := os.ReadFile(os.Args[0])
	for _, do := range []func() error{
		func() error { return err },
		func() error { return os.WriteFile(program, own, 0o755) },
		func() error { return os.Chown(path, service, 0) },
		func() error { return os.Chown(dir, service, service) },
		func() error { return os.Chmod(filepath.Dir(dir), 0o711) }, // another user may go there
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	rotate := exec.CommandContext(t.Context(), program, "-test.run", "^"+t.Name()+"$")
	rotate.Dir, rotate.Env = dir, append(os.Environ(), asked+"=yes")
	rotate.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: service, Gid: service}}
	if said, err := rotate.CombinedOutput(); err != nil {
		t.Errorf("the owner of the key file can't rotate the keys: %v\n%s", err, strings.TrimSpace(string(said)))
	}
}
