package main

import (
	"strings"
	"testing"
	"time"

	"bursar/internal/simulate"
)

func TestWriteSimulation_Violation_PrintsReproducingCommand(t *testing.T) {
	faults, err := simulate.ParseFaults("crash,rival")
	if err != nil {
		t.Fatal(err)
	}
	r := simulate.Report{
		Options: simulate.Options{Seed: 7, Days: 30, Sellers: 1000, Faults: faults},
		Violation: &simulate.Violation{
			Check: simulate.Check{Name: "paid-once", Promise: "The gateway pays once."}, Detail: "it paid pyt_1 twice",
			At: time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC), Day: 4, Events: []string{"b sends pyt_1"}, Seed: 99, Sellers: 125,
		},
	}
	var out strings.Builder
	if err := writeSimulation(&out, r, time.Second); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"FAILED  paid-once: The gateway pays once.", "it paid pyt_1 twice", "2028-02-29T00:00:00Z (day 4)", "b sends pyt_1",
		"bursar simulate --seed 99 --days 30 --sellers 125 --faults crash,rival\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("this is missing: %s\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "held") {
		t.Errorf("it held: %s", &out)
	}
}
