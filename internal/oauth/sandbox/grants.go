package sandbox

import (
	"crypto/rand"
	"sync"
	"time"
)

// How long a code and an access token are good, and how many of each there are at most.
const (
	codeLife  = time.Minute
	tokenLife = 5 * time.Minute
	maxGrants = 1000
)

// person is a user of the sandbox provider.
type person struct {
	name     string
	email    string
	verified bool
}

// grant is what a person let the client know, and how it is to prove that it asked.
type grant struct {
	person
	request request
	at      time.Time
}

// grants remembers what codes and access tokens stand for.
type grants struct {
	now    func() time.Time
	mu     sync.Mutex
	codes  map[string]grant
	tokens map[string]grant
}

func newGrants(now func() time.Time) grants {
	return grants{now: now, codes: map[string]grant{}, tokens: map[string]grant{}}
}

// newCode makes a code for a grant. It fails where too many wait.
func (g *grants) newCode(given grant) (string, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.keep(g.codes, given, codeLife)
}

// useCode takes a code away and returns what it stood for. It is used, whatever comes of it.
func (g *grants) useCode(code string) (grant, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	given, known := g.codes[code]
	delete(g.codes, code)
	return given, known && g.now().Sub(given.at) < codeLife
}

func (g *grants) newToken(given grant) (string, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	given.at = g.now()
	return g.keep(g.tokens, given, tokenLife)
}

func (g *grants) byToken(token string) (grant, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	given, known := g.tokens[token]
	return given, known && g.now().Sub(given.at) < tokenLife
}

// keep puts a grant under a new name, once there is room.
func (g *grants) keep(all map[string]grant, given grant, life time.Duration) (string, bool) {
	if len(all) >= maxGrants {
		for name, old := range all {
			if g.now().Sub(old.at) >= life {
				delete(all, name)
			}
		}
	}
	if len(all) >= maxGrants {
		return "", false
	}
	name := rand.Text()
	all[name] = given
	return name, true
}
