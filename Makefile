# The steps that check a change live in .ci/run, so that `make check` and CI are the same thing.

# A pipe fails when any part of it does.
SHELL := bash
.SHELLFLAGS := -o pipefail -c

FUZZTIME ?= 5s
COUNT ?= 1
BENCH ?= .
ROUNDS ?= 10
HISTORY ?= 1000000
CALM ?= 5s
PLANTED ?= 20
CRASHES ?= 300
SEED ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: ## Everything CI runs; needs PostgreSQL's programs, but no running database
	@bash .ci/run

.PHONY: test
test: ## All tests
	@bash .ci/run test

.PHONY: race
race: ## The tests that start goroutines, under the race detector, in shuffled order (needs a C compiler)
	@bash .ci/run race

.PHONY: lint
lint: ## Linters and format, as .golangci.yml has them
	@bash .ci/run lint

.PHONY: fmt
fmt: ## Format the code and order its imports
	go tool -modfile=tools/go.mod golangci-lint fmt

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZTIME each (5s)
	@FUZZTIME=$(FUZZTIME) bash .ci/run fuzz

.PHONY: bench
bench: ## Speed over HTTP beside floors, in ROUNDS (10) that alternate, COUNT times (1), at HISTORY (1000000) payouts, kept in bin/bench.txt; BENCH=REGEXP selects, BASE=FILE compares
	@mkdir -p bin
	BURSAR_TEST_HISTORY=$(HISTORY) go test -run='^$$' -bench='$(BENCH)' -benchtime=$(ROUNDS)x -count=$(COUNT) -timeout=120m ./test/e2e | tee bin/bench.txt
	go test -run='^$$' -bench='$(BENCH)' -benchmem -benchtime=2s -count=$(COUNT) -timeout=60m ./internal/payout ./internal/store | tee -a bin/bench.txt
	@[ -z "$(BASE)" ] || go tool -modfile=tools/go.mod benchstat $(BASE) bin/bench.txt

.PHONY: failover
failover: ## PostgreSQL is killed, hung and failed over under load (needs its programs); all is calm for CALM (5s) in between
	BURSAR_TEST_FAILOVER=$(CALM) go test -count=1 -v -timeout=30m -run='Failover|Standby|LostAnswer|Linearizable|Histories' ./test/e2e

.PHONY: crash
crash: ## The program is killed CRASHES times (300) under load, its disk is filled and taken away, its log is torn; SEED repeats a run's kills
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/bursar
	BURSAR_TEST_PROGRAM=$(CURDIR)/bin/bursar BURSAR_TEST_CRASHES=$(CRASHES) BURSAR_TEST_SEED=$(SEED) \
	go test -count=1 -v -timeout=60m -run='Crashes|FirstStart|Disk|Directory|Durable|Torn' ./test/e2e

.PHONY: users
users: ## Ten thousand users with hashes of eight formats are imported, and each signs in with the old password
	BURSAR_TEST_USERS=all go test -count=1 -v -timeout=60m -run='^TestImportedUsersSignIn$$' ./test/e2e

.PHONY: planted
planted: ## Bugs are planted in the source one by one, and the simulator has to find each within PLANTED seeds (20)
	BURSAR_TEST_PLANTED=$(PLANTED) go test -count=1 -v -timeout=120m -run='PlantedBugs' ./internal/simulate

.PHONY: golden
golden: ## Rewrite the golden files from what the code does now; read the diff before committing it
	@dirs=$$(grep -rlE --include='*_test.go' 'flag\.Bool\("update"' internal cmd test | sed 's|/[^/]*$$||; s|^|./|' | sort -u); \
	if [ -z "$$dirs" ]; then echo "no golden tests found" >&2; exit 1; fi; \
	go test -count=1 $$dirs -update

.PHONY: screenshots
screenshots: ## Pictures of the demo's pages for the README, in docs/images (needs Chromium, Node.js and npm)
	@mkdir -p docs/images
	BURSAR_TEST_SCREENSHOTS=$(CURDIR)/docs/images go test -count=1 -run='^TestPictures$$' ./test/browser

.PHONY: run
run: ## The service, on http://127.0.0.1:8080
	go run ./cmd/bursar serve

.PHONY: demo
demo: ## The service on a throw-away directory, filled with a small marketplace
	go run ./cmd/bursar demo

.PHONY: sandbox
sandbox: ## The gateway sandbox alone
	go run ./cmd/bursar sandbox

.PHONY: build
build: ## The release binary, in bin/
	@bash .ci/run build
