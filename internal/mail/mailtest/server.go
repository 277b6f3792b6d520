// Package mailtest is a mail server for tests: a real one, on a real port, that does what a test tells it to.
package mailtest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// User and Password are what the server admits.
const (
	User     = "payouts@example.com"
	Password = "p@ss/word"
)

// Stage is a moment of a delivery.
type Stage string

// The stages, in their order. At Taken the message was taken, and the client is not told yet.
const (
	Sender    Stage = "sender"
	Recipient Stage = "recipient"
	Taken     Stage = "taken"
)

// ErrCut has the server close the connection in place of an answer.
var ErrCut = errors.New("cut")

// Answer is an answer with a code.
func Answer(code int, enhanced [3]int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: text}
}

// Message is one that the server took.
type Message struct{ From, To, Raw string }

// Server is a mail server.
type Server struct {
	Host, Port string
	// Roots trust the server's certificate.
	Roots *x509.CertPool

	mu       sync.Mutex
	answer   func(Stage, string) error
	took     []Message
	signedIn int
}

// Setup is how a server differs from the usual one, which offers STARTTLS and asks for a password.
type Setup struct {
	TLS       bool // from the first byte
	Plain     bool // no TLS at all
	NoAuth    bool
	LoginOnly bool
}

// New starts a server that stops when the test ends.
func New(t testing.TB, setup Setup) *Server {
	t.Helper()
	certified := httptest.NewUnstartedServer(http.NotFoundHandler())
	certified.StartTLS()
	certificates := certified.TLS.Certificates
	s := &Server{Roots: x509.NewCertPool(), answer: func(Stage, string) error { return nil }}
	s.Roots.AddCert(certified.Certificate())
	certified.Close()

	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		plain := &session{server: s, conn: c.Conn()}
		if setup.NoAuth {
			return plain, nil
		}
		return &passwordSession{plain, setup}, nil
	}))
	server.Domain, server.AllowInsecureAuth = "mail.example.com", setup.Plain
	server.EnableSMTPUTF8 = true
	server.ErrorLog = discard{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Host, s.Port, _ = net.SplitHostPort(listener.Addr().String())
	config := &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12}
	switch {
	case setup.TLS:
		listener = tls.NewListener(listener, config)
	case !setup.Plain:
		server.TLSConfig = config
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		_ = listener.Close() // which the server does not know yet where the test ended before it served
		<-ended
	})
	return s
}

// Answer has the server answer so at each stage, about the address of that stage. It may be called at once by many.
func (s *Server) Answer(answer func(stage Stage, address string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Took lists the messages that the server took, those included that it did not say so of.
func (s *Server) Took() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.took)
}

// SignedIn counts the sign-ins.
func (s *Server) SignedIn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signedIn
}

func (s *Server) answerAt(stage Stage, address string) error {
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	return answer(stage, address)
}

// session is one connection.
type session struct {
	server  *Server
	conn    net.Conn
	message Message
}

func (s *session) at(stage Stage, address string) error {
	err := s.server.answerAt(stage, address)
	if errors.Is(err, ErrCut) {
		_ = s.conn.Close()
	}
	return err
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, o *smtp.MailOptions) error {
	if o.UTF8 {
		return Answer(550, [3]int{5, 6, 7}, "nobody behind this server knows SMTPUTF8")
	}
	s.message.From = from
	return s.at(Sender, from)
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.message.To = to
	return s.at(Recipient, to)
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.message.Raw = string(raw)
	s.server.mu.Lock()
	s.server.took = append(s.server.took, s.message)
	s.server.mu.Unlock()
	return s.at(Taken, s.message.To)
}

// passwordSession asks for a password first.
type passwordSession struct {
	*session
	setup Setup
}

func (s *passwordSession) AuthMechanisms() []string {
	if s.setup.LoginOnly {
		return []string{"LOGIN"}
	}
	return []string{"PLAIN"}
}

func (s *passwordSession) Auth(string) (sasl.Server, error) {
	check := func(user, password string) error {
		if user != User || password != Password {
			return Answer(535, [3]int{5, 7, 8}, "no such name and password: "+password)
		}
		s.server.mu.Lock()
		s.server.signedIn++
		s.server.mu.Unlock()
		return nil
	}
	if s.setup.LoginOnly {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
}

// loginServer is the server's side of LOGIN.
type loginServer struct {
	check func(user, password string) error
	asked int
	user  string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	l.asked++
	switch l.asked {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(response)
		return []byte("Password:"), false, nil
	default:
		return nil, true, l.check(l.user, string(response))
	}
}

// Hanging listens and never says a word, until the test ends.
func Hanging(t testing.TB) (host, port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	host, port, _ = net.SplitHostPort(listener.Addr().String())
	return host, port
}

// Eventually waits until a state holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		if t.Context().Err() != nil {
			t.Fatal(strings.TrimSpace("never: " + what))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}
