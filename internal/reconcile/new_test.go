package reconcile_test

import (
	"reflect"
	"testing"

	"bursar/internal/reconcile"
)

func TestNew_RefusesIncompleteOptions(t *testing.T) {
	w := newFixture(t)
	if _, err := reconcile.New(w.options); err != nil {
		t.Fatalf("complete options: %v", err)
	}
	for _, field := range []string{"Store", "Statement", "Payouts", "Currency", "GracePeriod", "Zone", "Now", "Logger"} {
		o := w.options
		reflect.ValueOf(&o).Elem().FieldByName(field).SetZero()
		if _, err := reconcile.New(o); err == nil {
			t.Errorf("a service without %s was made", field)
		}
	}
	o := w.options
	o.GracePeriod = -1
	if _, err := reconcile.New(o); err == nil {
		t.Error("a service with a negative grace period was made")
	}
}
