//go:build linux || darwin

package pgtest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A home is the directory of the servers that live and die with one process, their owner. It is named
// after the owner's number and when the owner began, because numbers are used again.

// watch waits for the end of the process $1, then stops the servers whose directories are in the home
// $2 and removes it. A server is known by its command line, and made to go on if it hangs. It would end
// by itself within a minute of its directory's end, so nothing is lost if this script is killed too.
const watch = `
while kill -0 "$1"; do sleep 1; done
for file in "$2"/*/postmaster.pid; do
	read -r pid <"$file" || continue
	{ cat "/proc/$pid/cmdline" || ps -o command= -p "$pid"; } | grep -qF "${file%/postmaster.pid}" || continue
	kill -QUIT "$pid"
	kill -CONT "$pid" $(pgrep -P "$pid")
done
for try in 1 2 3 4 5; do rm -rf "$2" && break; sleep 1; done
`

// locked runs fn with the directory of all homes below a directory, while no other process does.
func locked(below string, fn func(base string) error) error {
	base := filepath.Join(below, fmt.Sprintf("bursar-pg-%d", os.Geteuid()))
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(base)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s should be a directory of ours; remove it, or set TMPDIR", base)
	}
	if err := os.Chmod(base, 0o711); err != nil { // whom PostgreSQL runs as has to pass through
		return err
	}
	lock, err := os.OpenFile(filepath.Join(base, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return fn(base)
}

// tempDir is the directory for temporary files, or /tmp where that is closed to whom PostgreSQL runs as.
func tempDir() string {
	dir := filepath.Clean(os.TempDir())
	for at := dir; os.Geteuid() == 0 && at != "/" && at != "."; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err != nil || info.Mode().Perm()&0o001 == 0 {
			return "/tmp"
		}
	}
	return dir
}

// memory is a directory in memory with room for a run's databases, or tempDir where there is none: to
// make and drop hundreds of them is much work for a disk.
func memory() string {
	const dir, room = "/dev/shm", 2 << 30
	var space syscall.Statfs_t
	if syscall.Statfs(dir, &space) != nil || space.Bavail*uint64(space.Bsize) < room {
		return tempDir()
	}
	return dir
}

// home returns the owner's home below base, making it, and what watches over it, as needed.
func home(base string, owner process) (string, error) {
	if err := sweep(base); err != nil {
		return "", err
	}
	dir := filepath.Join(base, owner.name())
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return dir, nil
	} else if err != nil {
		return "", err
	}
	if err := errors.Join(os.Chmod(dir, 0o711), giveAway(dir)); err != nil {
		return "", err
	}
	watcher := exec.Command("/bin/sh", "-c", watch, "sh", strconv.Itoa(owner.pid), dir)
	watcher.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := watcher.Start(); err != nil {
		return "", err
	}
	return dir, watcher.Process.Release()
}

// sweep removes the homes of owners that are gone, which nobody watched over to the end.
func sweep(base string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(strings.SplitN(entry.Name(), "-", 2)[0])
		if err != nil {
			continue
		}
		if owner, err := lookUp(pid); err == nil && owner.name() == entry.Name() {
			continue
		}
		if err := os.RemoveAll(filepath.Join(base, entry.Name())); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return nil
}

// process is a running one.
type process struct {
	pid     int
	command string
	began   string // in the system's own terms
}

func (p process) name() string {
	h := fnv.New32a()
	h.Write([]byte(p.began))
	return fmt.Sprintf("%d-%08x", p.pid, h.Sum32())
}

// runOwner is the go command, if it runs this test binary, or else this process.
func runOwner() (process, error) {
	if parent, err := lookUp(os.Getppid()); err == nil && filepath.Base(parent.command) == "go" {
		return parent, nil
	}
	return lookUp(os.Getpid())
}

// lookUp asks /proc, or ps where there is none.
func lookUp(pid int) (process, error) {
	p := process{pid: pid}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil { // 12 (command) S 1 …, of which the twentieth after the command is the start
		text := string(stat)
		end := strings.LastIndex(text, ")")
		p.command = text[strings.Index(text, "(")+1 : end]
		p.began = strings.Fields(text[end+1:])[19]
		return p, nil
	}
	command, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return p, fmt.Errorf("look up process %d: %w", pid, err)
	}
	began, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return p, fmt.Errorf("look up process %d: %w", pid, err)
	}
	p.command, p.began = strings.TrimSpace(string(command)), strings.TrimSpace(string(began))
	return p, nil
}

// childrenOf lists the processes that a process has started and that still run.
func childrenOf(pid int) []int {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		list, _ = exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output() // it fails when there is none
	}
	var children []int
	for field := range strings.FieldsSeq(string(list)) {
		if child, err := strconv.Atoi(field); err == nil {
			children = append(children, child)
		}
	}
	return children
}
