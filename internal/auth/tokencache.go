package auth

import (
	"crypto/sha256"
	"sync"
)

// verifiedToken is what remains of a token whose signature was checked.
type verifiedToken struct {
	session, user, kid   string
	notBefore, expiresAt int64 // seconds since 1970
}

// tokenHash stands for a token, so that none is kept in memory.
type tokenHash = [sha256.Size]byte

// maxGeneration bounds each of the cache's two generations: some 12 MiB in all.
const maxGeneration = 32768

// tokenCache remembers tokens whose signature was checked, because checking costs more than all else
// that a simple request does. It holds what never changes of a token; the caller checks what
// changes: the time, the key, the session. When the young generation is full it becomes the old one,
// and what was not used since is forgotten.
type tokenCache struct {
	mu         sync.RWMutex
	young, old map[tokenHash]verifiedToken
}

func newTokenCache() *tokenCache {
	return &tokenCache{young: map[tokenHash]verifiedToken{}}
}

func (c *tokenCache) get(hash tokenHash) (verifiedToken, bool) {
	c.mu.RLock()
	v, young := c.young[hash]
	var old bool
	if !young {
		v, old = c.old[hash]
	}
	c.mu.RUnlock()
	if old {
		c.put(hash, v)
	}
	return v, young || old
}

func (c *tokenCache) put(hash tokenHash, v verifiedToken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= maxGeneration {
		c.old, c.young = c.young, make(map[tokenHash]verifiedToken, maxGeneration)
	}
	c.young[hash] = v
}
