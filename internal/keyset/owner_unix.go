//go:build unix

package keyset

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// giveTo gives a file to the owner of another one: root may rotate the keys of a service that runs as a user of its own.
func giveTo(file *os.File, owner fs.FileInfo) error {
	want, known := owner.Sys().(*syscall.Stat_t)
	info, err := file.Stat()
	if err != nil || !known {
		return err
	}
	if is, known := info.Sys().(*syscall.Stat_t); known && is.Uid == want.Uid {
		return nil
	}
	if err := file.Chown(int(want.Uid), int(want.Gid)); err != nil {
		return fmt.Errorf("it belongs to the user with number %d; run this as that user or as root: %w", want.Uid, err)
	}
	return nil
}
