//go:build !unix

package keyset

import (
	"io/fs"
	"os"
)

// giveTo does nothing where a directory's access list says who may read a file.
func giveTo(*os.File, fs.FileInfo) error { return nil }
