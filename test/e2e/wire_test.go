//go:build unix

package e2e

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// wire stands between the service and PostgreSQL, reads along, and cuts the connection where it is told to.
type wire struct {
	t      *testing.T
	server string
	url    string

	mu      sync.Mutex
	cut     *cut
	clients map[net.Conn]bool
}

// cut says where a connection breaks: at the next statement that begins so, in a transaction of which
// some part held the mark. What comes after is lost, and the statement itself too unless it is to be let
// through: then it is its answer that is lost, once the server has done all that was sent.
type cut struct {
	mark, statement string
	through         bool
	// done is closed when it has happened.
	done chan struct{}
}

// newWire makes a wire to the database at a URL.
func newWire(t *testing.T, database string) *wire {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, server: u.Host, clients: map[net.Conn]bool{}}
	u.Host = listener.Addr().String()
	w.url = u.String()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			all.Go(func() { w.carry(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return w
}

// arm makes the wire break as the cut says.
func (w *wire) arm(c *cut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = c
}

// reset breaks all connections as a machine does that was switched off and on again.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for client := range w.clients {
		_ = client.(*net.TCPConn).SetLinger(0)
		_ = client.Close()
	}
}

// connected keeps track of clients.
func (w *wire) connected(client net.Conn, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if is {
		w.clients[client] = true
	} else {
		delete(w.clients, client)
	}
}

// take returns the cut that is due at a statement of a transaction, if there is one, and disarms the wire.
func (w *wire) take(statement string, transaction []byte) *cut {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.cut
	if c == nil || !strings.HasPrefix(strings.ToUpper(statement), c.statement) || !bytes.Contains(transaction, []byte(c.mark)) {
		return nil
	}
	w.cut = nil
	return c
}

// carry carries one connection until either side ends it, or a cut.
func (w *wire) carry(client net.Conn) {
	w.connected(client, true)
	defer w.connected(client, false)
	defer client.Close()
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer server.Close()
	l := &line{wire: w, client: client, server: server, texts: map[string]string{}, muted: make(chan *cut, 1)}
	var back sync.WaitGroup
	back.Go(l.back)
	l.forth()
	_ = server.Close()
	back.Wait()
}

// line is one connection.
type line struct {
	*wire
	client, server net.Conn
	texts          map[string]string // of prepared statements, by name
	transaction    []byte            // what the client sent since the last COMMIT
	muted          chan *cut         // holds the cut after which answers are lost
}

// forth carries messages to the server. The first has no type; all have a length that counts itself.
func (l *line) forth() {
	header := 4
	for {
		message := make([]byte, header)
		if _, err := io.ReadFull(l.client, message); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(message[header-4:])-4)
		if _, err := io.ReadFull(l.client, body); err != nil {
			return
		}
		if c := l.watch(message[0], body); c != nil && !c.through {
			close(c.done)
			return
		}
		if _, err := l.server.Write(slices.Concat(message, body)); err != nil {
			return
		}
		header = 5
	}
}

// watch follows what is prepared and run, and returns the cut that a message meets.
func (l *line) watch(kind byte, body []byte) *cut {
	statement := ""
	switch kind {
	case 'Q': // a statement as text
		statement = text(body)
	case 'P': // a statement to prepare: its name and its text
		name := text(body)
		l.texts[name] = text(body[len(name)+1:])
	case 'B': // a prepared statement to run: the portal's name, the statement's, and the parameters
		statement = l.texts[text(body[len(text(body))+1:])]
	}
	l.transaction = append(l.transaction, body...)
	c := l.take(statement, l.transaction)
	if c != nil && c.through {
		l.muted <- c
	}
	if strings.EqualFold(statement, "commit") || strings.EqualFold(statement, "rollback") {
		l.transaction = nil
	}
	return c
}

// text is what stands before a zero byte.
func text(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return string(before)
}

// idle is how the server says that it has done all that it was sent, outside of any transaction.
var idle = []byte{'Z', 0, 0, 0, 5, 'I'}

// back carries answers to the client until they are to be lost. Then it waits for the last of them.
func (l *line) back() {
	defer l.client.Close()
	buffer := make([]byte, 64<<10)
	var lost *cut
	for {
		n, err := l.server.Read(buffer)
		select {
		case lost = <-l.muted:
		default:
		}
		if lost != nil && bytes.HasSuffix(buffer[:n], idle) {
			close(lost.done)
			return
		}
		if err != nil {
			return
		}
		if lost != nil {
			continue
		}
		if _, err := l.client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
