package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"bursar/test/harness"
)

// A disk that fails can't be had for a test, but the system can be asked to say so: a program that is run by
// "on-a-bad-disk" has its file system calls answered by it. What fails is what the file that diskVariable names
// says at that moment.
const diskVariable = "BURSAR_TEST_DISK"

// Ways in which the disk fails; empty is well.
const (
	diskWell     = ""
	diskFull     = "full"
	diskReadOnly = "read-only"
	diskUnsynced = "unsynced" // what is written can't be made durable
)

// diskFaults are the errors of the calls that fail.
var diskFaults = map[string]map[int32]unix.Errno{
	diskFull: {unix.SYS_PWRITE64: unix.ENOSPC, unix.SYS_FALLOCATE: unix.ENOSPC},
	diskReadOnly: {
		unix.SYS_PWRITE64: unix.EROFS, unix.SYS_FALLOCATE: unix.EROFS, unix.SYS_FTRUNCATE: unix.EROFS, unix.SYS_OPENAT: unix.EROFS,
	},
	diskUnsynced: {unix.SYS_FSYNC: unix.EIO, unix.SYS_FDATASYNC: unix.EIO},
}

// onABadDisk runs the program that its arguments name, with whatever it is given, and ends as it does.
func onABadDisk() {
	runtime.LockOSThread() // the filter is this thread's, and its children's
	listener, err := filterFileCalls()
	if err != nil {
		fmt.Fprintf(os.Stderr, "on-a-bad-disk: %v\n", err)
		os.Exit(badDiskUnavailable)
	}
	go answerFileCalls(listener, os.Getenv(diskVariable))
	program := exec.Command(os.Args[1], os.Args[2:]...)
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, os.Stdout, os.Stderr
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := program.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "on-a-bad-disk: %v\n", err)
		os.Exit(badDiskUnavailable)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() { _ = program.Process.Signal(<-stop) }()
	if exited, failed := errors.AsType[*exec.ExitError](program.Wait()); failed {
		os.Exit(exited.ExitCode())
	}
}

// badDiskUnavailable is the exit code where the system does not let calls be answered.
const badDiskUnavailable = 77

// filterFileCalls has file system calls of this thread's children wait for whoever holds the descriptor.
func filterFileCalls() (listener uintptr, err error) {
	calls := []uint32{unix.SYS_OPENAT, unix.SYS_PWRITE64, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC}
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the call's number
	for i, call := range calls {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(calls) - i), K: call})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, fmt.Errorf("seccomp: %w", errno)
	}
	return fd, nil
}

// The kernel's structs of a call that waits and of its answer.
type (
	fileCall struct {
		id         uint64
		pid, flags uint32
		number     int32
		arch       uint32
		at         uint64
		args       [6]uint64
	}
	fileAnswer struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

func answerFileCalls(listener uintptr, control string) {
	for {
		var call fileCall
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&call))); errno != 0 {
			if errno == unix.EINTR || errno == unix.ENOENT { // whoever called is gone
				continue
			}
			return
		}
		answer := fileAnswer{id: call.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		mode, _ := os.ReadFile(control) // none is none
		errno, fails := diskFaults[strings.TrimSpace(string(mode))][call.number]
		if fails && call.number == unix.SYS_OPENAT && call.args[2]&(unix.O_WRONLY|unix.O_RDWR|unix.O_CREAT) == 0 {
			fails = false
		}
		if fails {
			answer = fileAnswer{id: call.id, errno: -int32(errno)}
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
	}
}

// onDisk makes an instance run on a disk whose ways the control file tells.
func onDisk(i *harness.Instance, control string) {
	i.Environ = append(i.Environ, diskVariable+"="+control)
	i.Through = "on-a-bad-disk"
}
