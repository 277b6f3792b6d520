package web_test

import (
	"testing"

	"bursar/internal/web"
)

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost:8080": true, "127.0.0.1": true, "127.9.9.9:80": true, "::1": true, "[::1]": true, "[::1]:8080": true,
		"::ffff:127.0.0.1": true,
		"":                 false, ":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "pay.example:8080": false, "10.0.0.1": false,
		"localhost.example": false, "localhost.": false, "127.0.0.1.example": false, "127.1": false, "2130706433": false, "sub.localhost": false,
	} {
		if web.IsLoopback(host) != want {
			t.Errorf("%q: %t, want %t", host, !want, want)
		}
	}
}
