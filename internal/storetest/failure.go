package storetest

import (
	"errors"
	"os"
	"strings"
	"testing"

	"bursar/internal/store"
)

// Story is something that a service does with a datastore.
type Story struct {
	Act func() error
	// State is what is stored then, with what Act has read.
	State func() string
	// Repeatable says that Act, after it has failed, can be tried again at the same moment, and then does all of it.
	Repeatable bool
	// Grouped says that Act writes with others in a group. Where a statement of the group fails, each is tried alone, with
	// other statements in part, so Act may do without it.
	Grouped bool
	// Once says that the statement fails one time. Otherwise it fails each time that it is run, so that trying it again does not help.
	Once bool
}

// ErrStatement is what a statement fails with in [EachFailure].
var ErrStatement = errors.New("storetest: the statement fails")

// EachFailure runs a story again and again, each time with another of its statements failing. Act must
// then return that statement's error. If it is grouped, it may have done all that it does without the failure instead. Where
// it is repeatable, a second try then does all of it.
func EachFailure(t *testing.T, begin func(t *testing.T, place Place) Story) {
	t.Helper()
	if os.Getenv(Variable) == postgres {
		t.Skip("statements fail on SQLite alone")
	}
	if underRaceDetector {
		t.Skip("one goroutine runs a story, hundreds of times: nothing can race")
	}
	var want string
	for n := 0; ; n++ { // 0 is no failure
		var story Story
		armed, ran, failed := false, 0, ""
		place := Place{Path: newFile(t), failing: func(statement string) error {
			if !armed || statement == "ROLLBACK" {
				return nil
			}
			statement = strings.Join(strings.Fields(statement), " ")
			switch ran++; {
			case ran == n:
				failed = statement
				return ErrStatement
			case failed == statement && !story.Once:
				return ErrStatement
			default:
				return nil
			}
		}}
		story = begin(t, place)
		armed = true
		err := story.Act()
		armed = false
		state := story.State()
		switch {
		case n == 0 && err != nil:
			t.Fatalf("it fails without a failure: %v", err)
		case n == 0 && ran == 0:
			t.Fatal("it runs no statement")
		case n == 0:
			want = state
			continue
		case failed == "":
			return // there are no more
		case err == nil && (!story.Grouped || state != want):
			t.Errorf("statement %d fails, and no error is returned (%s):\n%s\nwant\n%s", n, failed, state, want)
		case errors.Is(err, store.ErrSwallowed):
			t.Errorf("statement %d fails, and the transaction goes on (%s): %v", n, failed, err)
		case err != nil && !errors.Is(err, ErrStatement):
			t.Errorf("statement %d fails, and another error is returned (%s): %v", n, failed, err)
		case err != nil && story.Repeatable:
			if err := story.Act(); err != nil {
				t.Errorf("statement %d failed (%s), and the second try fails: %v", n, failed, err)
			} else if state := story.State(); state != want {
				t.Errorf("statement %d failed (%s), and the second try leads to\n%s\nwant\n%s", n, failed, state, want)
			}
		}
	}
}
