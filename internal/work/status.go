package work

import (
	"strings"
	"sync"
	"time"
)

// Status is how a loop has done since its start.
type Status struct {
	// Steps counts steps that ended, Failures those of them that failed and looks that failed.
	Steps, Failures int64
	// LastPollAt is when the loop last learnt what is due, LastStepAt when a step last ended, LastFailureAt
	// when anything last failed; each is zero for never. A [Batch] is done while looking.
	LastPollAt, LastStepAt, LastFailureAt time.Time
	// LastError is the first line of the last failure's text.
	LastError string
}

// Status is how the loop has done so far. It may be asked at any time.
func (l *Loop) Status() Status {
	l.tally.Lock()
	defer l.tally.Unlock()
	return l.tally.status
}

// tally keeps a loop's status.
type tally struct {
	sync.Mutex
	status Status
}

// polled counts a poll for what is due.
func (t *tally) polled(now time.Time, err error) {
	t.Lock()
	defer t.Unlock()
	if err != nil {
		t.failed(now, err)
		return
	}
	t.status.LastPollAt = now
}

// stepped counts a step.
func (t *tally) stepped(now time.Time, err error) {
	t.Lock()
	defer t.Unlock()
	t.status.Steps++
	t.status.LastStepAt = now
	if err != nil {
		t.failed(now, err)
	}
}

// failed wants the tally locked.
func (t *tally) failed(now time.Time, err error) {
	t.status.Failures++
	t.status.LastFailureAt = now
	text, _, _ := strings.Cut(err.Error(), "\n") // behind it may be a stack
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	t.status.LastError = text
}

// maxErrorText bounds the text that is kept of a failure; the log has all of it.
const maxErrorText = 300
