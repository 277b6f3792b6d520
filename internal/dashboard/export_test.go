package dashboard

import (
	"net/http"

	"bursar/internal/money"
	"bursar/internal/sale"
	"bursar/internal/web"
)

// ReadAmount is what a table and fuzzing are for.
func ReadAmount(c money.Currency, typed string) (money.Amount, string) {
	return readAmount(c, typed, money.Max)
}

// DeviceName is what a table is for.
var DeviceName = deviceName

// ChartOf draws months in a currency, and returns the bars' places: where each begins and how long it is, in
// thousandths, and the labels of the lines.
func ChartOf(c money.Currency, months []sale.Month) (bars [][2]int64, lines []string, zero int64) {
	d := &dashboard{o: Options{Currency: c}}
	drawn := d.monthsChart(months)
	if drawn == nil {
		return nil, nil, 0
	}
	for _, b := range drawn.Bars {
		bars = append(bars, [2]int64{int64(b.Y), int64(b.Height)})
	}
	for _, l := range drawn.Lines {
		lines = append(lines, l.Label)
	}
	return bars, lines, int64(drawn.Zero)
}

// Panics makes a page that panics, with nothing but a logger around it.
func Panics(o Options) (http.Handler, error) {
	h, err := New(o)
	mux, _ := h.(*http.ServeMux)
	d := &dashboard{o: o}
	if err == nil {
		d.sameOrigin, err = web.NewSameOrigin(o.BaseURL)
	}
	if err == nil {
		d.assets, err = readAssets()
	}
	if err == nil {
		d.templates, err = d.parseTemplates()
	}
	if err == nil {
		mux.HandleFunc("/panics", d.serve(route{"GET", "/panics", everyone, nil}))
	}
	return mux, err
}
