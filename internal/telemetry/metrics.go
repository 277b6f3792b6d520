package telemetry

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics counts what the service does. It is safe for concurrent use; every label has a small, fixed
// set of values.
type Metrics struct {
	registry *prometheus.Registry

	requests         *prometheus.CounterVec
	requestSeconds   *prometheus.HistogramVec
	ofRequests       sync.Map // requestLabels → requestMetrics: to find a metric by its labels takes longer
	requestsInFlight prometheus.Gauge

	attempts *prometheus.CounterVec

	payoutMoves       *prometheus.CounterVec
	startupReconciled prometheus.Gauge
	watched           watched

	gatewayCalls   *prometheus.CounterVec
	gatewaySeconds *prometheus.HistogramVec

	tampered *prometheus.CounterVec
	mails    *prometheus.CounterVec
	webhooks *prometheus.CounterVec

	workSteps   *prometheus.CounterVec
	workSeconds *prometheus.HistogramVec
}

// NewMetrics makes metrics in a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.addRequests()
	m.addPayouts()
	m.addWork()
	m.addTampered()
	m.addMails()
	m.addWebhooks()
	m.startupReconciled = newReconciled(m.registry)
	m.watched = newWatched(m.registry)
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func (m *Metrics) addRequests() {
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bursar_http_requests_total",
		Help: "Requests answered, by route, method and class of status.",
	}, []string{"route", "method", "status"})
	m.requestSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "bursar_http_request_seconds",
		Help:    "Time from a request's header to the end of its answer.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"route", "method", "status"})
	m.requestsInFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "bursar_http_requests_in_flight",
		Help: "Requests being answered now.",
	})
	m.attempts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bursar_attempts_total",
		Help: "Attempts at what is throttled, by action and outcome: right, wrong, throttled (refused unchecked) or busy (no place to hash).",
	}, []string{"action", "outcome"})
	m.registry.MustRegister(m.requests, m.requestSeconds, m.requestsInFlight, m.attempts)
}

func (m *Metrics) addPayouts() {
	m.payoutMoves = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bursar_payout_moves_total",
		Help: "Changes of a payout's state; a new payout comes from \"\".",
	}, []string{"from", "to"})
	m.gatewayCalls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bursar_gateway_calls_total",
		Help: "Calls to the payment gateway, by operation and outcome.",
	}, []string{"operation", "outcome"})
	m.gatewaySeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "bursar_gateway_call_seconds",
		Help:    "Time that calls to the payment gateway took.",
		Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"operation"})
	m.registry.MustRegister(m.payoutMoves, m.gatewayCalls, m.gatewaySeconds)
}

func (m *Metrics) addWork() {
	m.workSteps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bursar_work_steps_total",
		Help: "Steps that the work loops took, by loop and outcome (ok or error); a failure to find what is due counts as one.",
	}, []string{"loop", "outcome"})
	m.workSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "bursar_work_step_seconds",
		Help:    "Time that steps of the work loops took.",
		Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30},
	}, []string{"loop"})
	m.registry.MustRegister(m.workSteps, m.workSeconds)
}

func (m *Metrics) addTampered() {
	m.tampered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bursar_tampered_rows_refused_total",
		Help: "Requests and steps refused because a row was changed in the database by hand, by kind of row. Should be 0.",
	}, []string{"kind"})
	m.registry.MustRegister(m.tampered)
}

// Tampered counts a request or a step that was refused because a row of a kind was changed outside the service.
func (m *Metrics) Tampered(kind string) { m.tampered.WithLabelValues(kind).Inc() }

// ExpectTampered expects kinds of rows that may be tampered with.
func (m *Metrics) ExpectTampered(kinds ...string) {
	for _, kind := range kinds {
		m.tampered.WithLabelValues(kind)
	}
}

func (m *Metrics) addMails() {
	m.mails = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bursar_mails_total",
		Help: "What was done with mails: sent, deferred to a later try, failed for good, or suppressed because a limit was reached.",
	}, []string{"outcome"})
	m.registry.MustRegister(m.mails)
}

// ExpectMails expects outcomes of mails.
func (m *Metrics) ExpectMails(outcomes ...string) {
	for _, outcome := range outcomes {
		m.mails.WithLabelValues(outcome)
	}
}

// MailEnded counts one outcome of a mail.
func (m *Metrics) MailEnded(outcome string) { m.mails.WithLabelValues(outcome).Inc() }

func (m *Metrics) addWebhooks() {
	m.webhooks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bursar_webhook_attempts_total",
		Help: "Attempts to deliver an event to a webhook endpoint: delivered, deferred to a later attempt, or failed for good.",
	}, []string{"outcome"})
	m.registry.MustRegister(m.webhooks)
}

// ExpectWebhooks expects outcomes of attempts to deliver.
func (m *Metrics) ExpectWebhooks(outcomes ...string) {
	for _, outcome := range outcomes {
		m.webhooks.WithLabelValues(outcome)
	}
}

// WebhookPosted counts one outcome of an attempt to deliver.
func (m *Metrics) WebhookPosted(outcome string) { m.webhooks.WithLabelValues(outcome).Inc() }

// Handler serves the metrics to Prometheus. It belongs on a listener of its own: what it tells is for
// operators.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// RequestStarted counts a request in flight, until [Metrics.RequestDone].
func (m *Metrics) RequestStarted() { m.requestsInFlight.Inc() }

// StatusClientGone stands for a request whose client hung up before the answer. It is counted by itself, neither as an answer of
// ours nor as a mistake of the client's.
const StatusClientGone = 499

// RequestDone counts an answer. The route is the pattern that matched, never the path itself, and ""
// where none did.
func (m *Metrics) RequestDone(route, method string, status int, took time.Duration) {
	m.requestsInFlight.Dec()
	if route == "" {
		route = "none"
	}
	class := status / 100
	if status == StatusClientGone {
		class = status
	}
	r := m.request(requestLabels{route, knownMethod(method), class})
	r.count.Inc()
	r.seconds.Observe(took.Seconds())
}

type requestLabels struct {
	route, method string
	class         int // of the status, or [StatusClientGone]
}

type requestMetrics struct {
	count   prometheus.Counter
	seconds prometheus.Observer
}

func (m *Metrics) request(l requestLabels) requestMetrics {
	if known, ok := m.ofRequests.Load(l); ok {
		return known.(requestMetrics)
	}
	class := strconv.Itoa(l.class)
	if l.class != StatusClientGone {
		class += "xx"
	}
	r := requestMetrics{m.requests.WithLabelValues(l.route, l.method, class), m.requestSeconds.WithLabelValues(l.route, l.method, class)}
	m.ofRequests.Store(l, r)
	return r
}

// knownMethod keeps made-up methods from making labels.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions:
		return method
	default:
		return "other"
	}
}

// PayoutMoved counts a change of a payout's state; from is "" for a new payout.
func (m *Metrics) PayoutMoved(from, to string) { m.payoutMoves.WithLabelValues(from, to).Inc() }

// ExpectMove makes a change of state show as zero until it happens, so that its first time is seen as
// an increase. So do the other methods that expect something.
func (m *Metrics) ExpectMove(from, to string) { m.payoutMoves.WithLabelValues(from, to) }

// ExpectGatewayCall expects calls of an operation with these outcomes.
func (m *Metrics) ExpectGatewayCall(operation string, outcomes ...string) {
	for _, outcome := range outcomes {
		m.gatewayCalls.WithLabelValues(operation, outcome)
	}
	m.gatewaySeconds.WithLabelValues(operation)
}

// ExpectLoop expects steps of a work loop.
func (m *Metrics) ExpectLoop(loop string) {
	m.workSteps.WithLabelValues(loop, stepDone)
	m.workSteps.WithLabelValues(loop, stepFailed)
	m.workSeconds.WithLabelValues(loop)
}

// Tried counts an attempt at what is throttled.
func (m *Metrics) Tried(action, outcome string) { m.attempts.WithLabelValues(action, outcome).Inc() }

// ExpectAttempts expects attempts at an action with these outcomes.
func (m *Metrics) ExpectAttempts(action string, outcomes ...string) {
	for _, outcome := range outcomes {
		m.attempts.WithLabelValues(action, outcome)
	}
}

// GatewayCalled counts one call to the payment gateway.
func (m *Metrics) GatewayCalled(operation, outcome string, took time.Duration) {
	m.gatewayCalls.WithLabelValues(operation, outcome).Inc()
	m.gatewaySeconds.WithLabelValues(operation).Observe(took.Seconds())
}

// Outcomes of a step.
const (
	stepDone   = "ok"
	stepFailed = "error"
)

// WorkStepped counts one step of a work loop, and how it ended.
func (m *Metrics) WorkStepped(loop string, took time.Duration, err error) {
	outcome := stepDone
	if err != nil {
		outcome = stepFailed
	}
	m.workSteps.WithLabelValues(loop, outcome).Inc()
	m.workSeconds.WithLabelValues(loop).Observe(took.Seconds())
}
