package app

import (
	"os"
	"runtime/debug"
)

// CollectSeldom lets the process's heap grow to five times of what is in use before memory is collected, unless the
// operator has set GOGC. A few megabytes are in use, and each request allocates tens of kilobytes: collecting at twice
// of what is in use, Go's default, took a tenth of the processor.
func CollectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
