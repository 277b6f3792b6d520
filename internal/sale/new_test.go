package sale_test

import (
	"reflect"
	"testing"

	"bursar/internal/sale"
)

func TestNew_RefusesIncompleteOptions(t *testing.T) {
	s := openShop(t)
	for _, field := range []string{"Store", "Now", "Zone"} {
		o := s.options
		reflect.ValueOf(&o).Elem().FieldByName(field).SetZero()
		if _, err := sale.New(o); err == nil {
			t.Errorf("a service without %s was made", field)
		}
	}
	o := s.options
	o.HoldingPeriod = -1
	if _, err := sale.New(o); err == nil {
		t.Error("a service with a negative holding period was made")
	}
	o.HoldingPeriod = 0
	if _, err := sale.New(o); err != nil {
		t.Errorf("without a holding period: %v", err)
	}
}
