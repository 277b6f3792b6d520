package keyset

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"sync"
)

// macPurpose keeps the keys of MACs apart from those that encrypt, from which they are derived. Messages of different
// kinds are kept apart by their first line.
const macPurpose = "bursar journal mac v1"

func macKeyOf(key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(macPurpose))
	return mac.Sum(nil)
}

// MAC authenticates a message with the newest key, and names that key.
func (s *Set) MAC(message []byte) (kid string, sum []byte) {
	k := s.fresh()
	return k.encryption, k.encrypters[k.encryption].macs.sum(message)
}

// CheckMAC reports whether the key of that id made the sum for the message. An unknown id is looked for at the source.
func (s *Set) CheckMAC(kid string, message, sum []byte) bool {
	encrypter, known := s.keys.Load().encrypters[kid]
	if !known {
		encrypter, known = s.search(func(k *keys) bool { return k.encrypters[kid].aead != nil }).encrypters[kid]
	}
	return known && hmac.Equal(sum, encrypter.macs.sum(message))
}

// macs makes MACs with one key. It keeps hashes that have taken in the key already, which is half the work of a MAC.
type macs struct{ keyed sync.Pool }

func newMACs(key []byte) *macs {
	return &macs{sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

func (m *macs) sum(message []byte) []byte {
	mac := m.keyed.Get().(hash.Hash)
	defer m.keyed.Put(mac)
	mac.Reset()
	mac.Write(message)
	return mac.Sum(nil)
}
