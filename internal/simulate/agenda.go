package simulate

import "time"

// scheduled is something that happens at a moment; of several at the same one, the first to be put down.
type scheduled struct {
	at     time.Duration // since the beginning
	number uint64
	do     func()
}

func (e scheduled) before(o scheduled) bool {
	return e.at < o.at || e.at == o.at && e.number < o.number
}

// agenda is what is yet to happen: a heap with the earliest event first.
type agenda []scheduled

func (a *agenda) add(e scheduled) {
	h := append(*a, e)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
	*a = h
}

// next takes the earliest event out.
func (a *agenda) next() scheduled {
	h := *a
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], scheduled{}
	h = h[:last]
	for i := 0; ; {
		least, left, right := i, 2*i+1, 2*i+2
		if left < last && h[left].before(h[least]) {
			least = left
		}
		if right < last && h[right].before(h[least]) {
			least = right
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*a = h
	return first
}
