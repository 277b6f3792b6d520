package fault_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"bursar/internal/fault"
)

var errSample = fault.New(fault.Refused, "sample", "A sentence.")

func TestError_CopiesMatchSentinel(t *testing.T) {
	cause := errors.New("disk")
	for name, err := range map[string]error{
		"itself":  errSample,
		"message": errSample.WithMessage("Another %s.", "sentence"),
		"cause":   errSample.Because(cause),
		"wait":    errSample.After(time.Second),
		"wrapped": fmt.Errorf("while testing: %w", errSample),
	} {
		if !errors.Is(err, errSample) {
			t.Errorf("%s: no longer matches", name)
		}
		if f := fault.From(err); f == nil || f.Code != "sample" || f.Kind != fault.Refused {
			t.Errorf("%s: From gives %+v", name, f)
		}
	}
	if errors.Is(errSample, fault.New(fault.Refused, "other", "A sentence.")) {
		t.Error("faults of different codes match")
	}
	if !errors.Is(errSample.Because(cause), cause) {
		t.Error("the cause is lost")
	}
	if errSample.Message != "A sentence." || errSample.RetryAfter != 0 || errors.Unwrap(errSample) != nil {
		t.Errorf("a copy changed the sentinel: %+v", errSample)
	}
}

func TestFieldsAreCopied(t *testing.T) {
	first := fault.Field("amount", "must be at least 500")
	second := first.Because(errors.New("x"))
	second.Details["amount"] = "changed"
	if first.Details["amount"] != "must be at least 500" {
		t.Error("two faults share their details")
	}
	if fault.From(errors.New("plain")) != nil || fault.From(nil) != nil {
		t.Error("a plain error was taken for a fault")
	}
}
