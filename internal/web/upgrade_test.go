package web_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"bursar/internal/web"
)

// The server switches protocols and then says nothing. Without the guard the body would be read for ever.
func TestNoUpgrades_Switched_ConnectionClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	closed := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			closed <- err
			return
		}
		defer conn.Close()
		reader := bufio.NewReader(conn)
		r, err := http.ReadRequest(reader)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err != nil {
			closed <- err
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		_, err = reader.ReadByte() // ends when the client closes the connection
		closed <- err
	}()
	client := &http.Client{Transport: web.NoUpgrades{Next: &http.Transport{}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listener.Addr().String(), strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
		t.Fatalf("the answer is %s", response.Status)
	}
	if !strings.Contains(err.Error(), "101") {
		t.Error(err)
	}
	if err := <-closed; !errors.Is(err, io.EOF) {
		t.Errorf("the connection ended with %v", err)
	}
}
