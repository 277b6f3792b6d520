package keyset

import (
	"crypto/hmac"
	"crypto/sha256"
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
	return k.sealing, k.sealers[k.sealing].sum(message)
}

// CheckMAC reports whether the key of that id made the sum for the message. An unknown id is looked for at the source.
func (s *Set) CheckMAC(kid string, message, sum []byte) bool {
	sealer, known := s.keys.Load().sealers[kid]
	if !known {
		sealer, known = s.search(func(k *keys) bool { return k.sealers[kid].aead != nil }).sealers[kid]
	}
	return known && hmac.Equal(sum, sealer.sum(message))
}

func (s sealer) sum(message []byte) []byte {
	mac := hmac.New(sha256.New, s.macKey)
	mac.Write(message)
	return mac.Sum(nil)
}
