//go:build unix

package keyset

import (
	"os"
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
