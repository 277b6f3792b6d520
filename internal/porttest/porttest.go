// Package porttest gives tests ports that are still free a while later.
package porttest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
)

// Ports are handed out from below those that Linux and others give to a process that asks for any port: each of those
// may become an outgoing connection's before the test listens on it. The built-in sandbox chooses below first.
const first, ports = 30_000, 2_768

// next counts on from anywhere, so that programs that test at once seldom ask for the same.
var next = sync.OnceValue(func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32N(ports))
	return n
})

// Free finds a port of 127.0.0.1 that nobody listens on, and that this program was not given yet.
func Free() (int, error) {
	var failures error
	for range 100 {
		port := first + int(next().Add(1)%ports)
		listener, err := net.Listen("tcp", Address(port))
		if err == nil {
			return port, listener.Close()
		}
		failures = errors.Join(failures, err)
	}
	return 0, failures
}

// Address is where a port of 127.0.0.1 is reached.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
