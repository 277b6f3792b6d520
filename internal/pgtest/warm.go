package pgtest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// warm keeps connections to a server open from one client to the next: a new one costs the server more than most tests do. It stands between
// them, and passes on what they say. A client finds its connection as a new one would be.
type warm struct {
	server, address string

	mu   sync.Mutex
	idle map[string][]*serverConn // by [settings.key]
	// busy are how many connections to a database clients have.
	busy map[string]int
}

// serverConn is a connection to the server.
type serverConn struct {
	net.Conn
	reads    *bufio.Reader
	key      string // of the settings of its clients
	database string
	pid      uint32
	greeting []byte // what the server said once it knew the client

	mu sync.Mutex
	// owed is how many answers the client has yet to get; asking, that it has said only a part of what is answered at once.
	owed   int
	asking bool
	status byte // 'I' while no transaction is open
}

var warmServers = struct {
	sync.Mutex
	of map[string]*warm
}{of: map[string]*warm{}}

// keepWarm returns the URL by which a database is reached through kept connections. It is the same URL, and nothing is kept, where the server
// is on another machine.
func keepWarm(database string) (string, *warm, error) {
	u, err := url.Parse(database)
	if err != nil {
		return "", nil, errors.New("not the URL of a database")
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() || u.Port() == "" {
		return database, nil, nil
	}
	warmServers.Lock()
	defer warmServers.Unlock()
	w := warmServers.of[u.Host]
	if w == nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		w = &warm{server: u.Host, address: listener.Addr().String(), idle: map[string][]*serverConn{}, busy: map[string]int{}}
		warmServers.of[u.Host] = w
		go w.serve(listener)
	}
	u.Host = w.address
	return u.String(), w, nil
}

func (w *warm) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			w.pass(client)
		}()
	}
}

// What a client says first, and how long a kept connection may take to forget its client.
const (
	protocol3     = 3 << 16
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104

	forgetTimeout = 5 * time.Second
)

// pass gives a client a connection, until one of the two ends it.
func (w *warm) pass(client net.Conn) {
	reads := bufio.NewReader(client)
	first, err := readFirst(reads, client)
	if err != nil {
		return
	}
	if binary.BigEndian.Uint32(first[4:]) == cancelRequest {
		if server, err := net.Dial("tcp", w.server); err == nil {
			_, _ = server.Write(first)
			_, _ = io.Copy(io.Discard, server) // until it has cancelled
			_ = server.Close()
		}
		return
	}
	settings := settingsOf(first)
	s := w.take(settings.key())
	if s != nil {
		_, err = client.Write(s.greeting)
	} else {
		s, err = w.connect(first, settings, reads, client)
	}
	if s == nil {
		return
	}
	w.count(s.database, 1)
	defer w.count(s.database, -1)
	if err == nil && s.relay(reads, client) && s.forget() {
		w.keep(s)
		return
	}
	_ = s.Close()
}

func (w *warm) count(database string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[database] += n; w.busy[database] == 0 {
		delete(w.busy, database)
	}
}

// readFirst reads what a client says first, once it knows that nothing is encrypted here.
func readFirst(reads *bufio.Reader, client io.Writer) ([]byte, error) {
	for {
		first := make([]byte, 8)
		if _, err := io.ReadFull(reads, first); err != nil {
			return nil, err
		}
		if code := binary.BigEndian.Uint32(first[4:]); code == sslRequest || code == gssRequest {
			if _, err := client.Write([]byte("N")); err != nil {
				return nil, err
			}
			continue
		}
		length := binary.BigEndian.Uint32(first)
		if length < 8 || length > 10_000 {
			return nil, errors.New("no client of PostgreSQL")
		}
		rest := make([]byte, length-8)
		_, err := io.ReadFull(reads, rest)
		return slices.Concat(first, rest), err
	}
}

// take returns a kept connection on which the server still is.
func (w *warm) take(key string) *serverConn {
	for {
		w.mu.Lock()
		kept := w.idle[key]
		if len(kept) == 0 {
			w.mu.Unlock()
			return nil
		}
		s := kept[len(kept)-1]
		w.idle[key] = kept[:len(kept)-1]
		w.mu.Unlock()
		_ = s.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := s.reads.Peek(1)
		if isTimeout(err) && s.SetReadDeadline(time.Time{}) == nil {
			return s
		}
		_ = s.Close() // the server has ended it, or has something to say
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

func (w *warm) keep(s *serverConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle[s.key] = append(w.idle[s.key], s)
}

// connect makes a new connection, and lets the client and the server come to know each other.
func (w *warm) connect(first []byte, of settings, client *bufio.Reader, toClient io.Writer) (*serverConn, error) {
	conn, err := net.Dial("tcp", w.server)
	if err != nil {
		return nil, err
	}
	s := &serverConn{Conn: conn, reads: bufio.NewReader(conn), key: of.key(), database: of["database"], status: 'I'}
	if _, err := s.Write(first); err != nil {
		return s, err
	}
	isKnown := false
	for {
		said, err := readMessage(s.reads)
		if err != nil {
			return s, err
		}
		asks := false
		switch said[0] {
		case 'R':
			switch binary.BigEndian.Uint32(said[5:]) {
			case 0: // the server knows the client
				isKnown = true
			case 3, 5, 10, 11: // it wants a password, or a part of the proof of one
				asks = true
			}
		case 'K':
			s.pid = binary.BigEndian.Uint32(said[5:])
		}
		if isKnown {
			s.greeting = append(s.greeting, said...)
		}
		if _, err := toClient.Write(said); err != nil {
			return s, err
		}
		if asks {
			answer, err := readMessage(client)
			if err != nil {
				return s, err
			}
			if _, err := s.Write(answer); err != nil {
				return s, err
			}
		}
		if said[0] == 'Z' {
			return s, nil
		}
	}
}

// settings are what a client says first: the database, the user, and how to talk.
type settings map[string]string

func settingsOf(first []byte) settings {
	of := settings{}
	for words := strings.Split(string(first[8:]), "\x00"); len(words) > 1; words = words[2:] {
		of[words[0]] = words[1]
	}
	return of
}

// key is the same for all who say the same, in whatever order.
func (s settings) key() string { return fmt.Sprint(map[string]string(s)) } // which sorts

// readMessage reads a message of either side, from its type on.
func readMessage(from *bufio.Reader) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length < 4 || length > 1<<30 {
		return nil, errors.New("no message of PostgreSQL")
	}
	message := slices.Concat(head, make([]byte, length-4))
	_, err := io.ReadFull(from, message[5:])
	return message, err
}

// relay passes on what client and server say. It reports whether the client has left, and was owed nothing.
func (s *serverConn) relay(client *bufio.Reader, toClient net.Conn) bool {
	ended := make(chan bool)
	go func() {
		for {
			said, err := readMessage(s.reads)
			if err != nil {
				_ = toClient.Close()
				ended <- isTimeout(err) && s.reads.Buffered() == 0
				return
			}
			if said[0] == 'Z' {
				s.mu.Lock()
				s.owed, s.status = s.owed-1, said[5]
				s.mu.Unlock()
			}
			_, _ = toClient.Write(said) // one who has left is noticed below
		}
	}()
	for {
		said, err := readMessage(client)
		if err != nil || said[0] == 'X' {
			break
		}
		s.mu.Lock()
		switch said[0] {
		case 'Q', 'S', 'F':
			s.owed, s.asking = s.owed+1, false
		default:
			s.asking = true
		}
		s.mu.Unlock()
		if _, err := s.Write(said); err != nil {
			break
		}
	}
	s.mu.Lock()
	isOwed := s.owed != 0 || s.asking || s.status != 'I'
	s.mu.Unlock()
	if isOwed {
		_ = s.Close()
	}
	_ = s.SetReadDeadline(time.Now())
	return <-ended && !isOwed
}

// forget makes the connection as a new one is, and reports whether it did.
func (s *serverConn) forget() bool {
	const discard = "DISCARD ALL\x00"
	if s.SetDeadline(time.Now().Add(forgetTimeout)) != nil {
		return false
	}
	message := append(binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(4+len(discard))), discard...)
	if _, err := s.Write(message); err != nil {
		return false
	}
	for {
		said, err := readMessage(s.reads)
		if err != nil || said[0] == 'E' {
			return false
		}
		if said[0] == 'Z' {
			return said[5] == 'I' && s.SetDeadline(time.Time{}) == nil
		}
	}
}

// kept are the server's processes that are kept for a database, once its last clients have left.
func (w *warm) kept(database string) []int32 {
	pids := []int32{}
	if w == nil {
		return pids
	}
	w.settle(database, 100)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kept := range w.idle {
		for _, s := range kept {
			if s.database == database {
				pids = append(pids, int32(s.pid))
			}
		}
	}
	return pids
}

// settle waits for the last clients of a database to leave, so many milliseconds at most.
func (w *warm) settle(database string, most int) {
	for range most {
		w.mu.Lock()
		isBusy := w.busy[database] > 0
		w.mu.Unlock()
		if !isBusy {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// drop closes what is kept for a database.
func (w *warm) drop(database string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, kept := range w.idle {
		if len(kept) > 0 && kept[0].database == database {
			for _, s := range kept {
				_ = s.Close()
			}
			delete(w.idle, key)
		}
	}
}
