# What this repository can do; `make` alone lists it. Only Go is needed, but for interop, torture, memory
# and bench, which need Python 3.10, Java 17 and Maven too and install the rest into ICEPIPE_DEPS.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
DEPS        := $(or $(ICEPIPE_DEPS),$(CURDIR)/.cache/interop)
FUZZTIME    ?= 30s
ROWS        ?= 10000000
REPEAT      ?= 1
TORTURES    ?= Torture|CommitFaults|TwoCopies|EightWriters|FlatCost|FilterFixtures|FilterRandom|UpsertCommit|UpsertMerge|UpsertTwins|UpsertBetween|Catalogs|Storage|Clouds|CopyRandom|VerifyAndUndo|VerifyFixtures|Overwrite|FilterWitnesses

.DEFAULT_GOAL := help
.PHONY: help build demo test check format tidy vet staticcheck race interop torture memory bench fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without -trimpath, which would compile all dependencies a second time beside those of the tests.
build: ## the programs, into bin/
	go build -ldflags "-s -w" -o bin/ ./cmd/...

demo: build ## move a table of orders by the pipe and by ice-migrate, and look at it
	testdata/demo.sh bin

test: ## all tests that need nothing but Go
	go test -timeout 30m ./...

check: format tidy vet staticcheck race ## what a change must pass beside the tests

format:
	@unformatted=$$(gofmt -l bench cmd internal pkg); [ -z "$$unformatted" ] || { echo "not formatted:" $$unformatted >&2; exit 1; }

tidy:
	go mod tidy -diff

vet:
	go vet ./...
	go vet -tags interop ./internal/interop
	go vet -tags crash ./internal/crash
	go vet -tags memory ./internal/interop
	go vet -tags noclouds ./internal/catalogs ./internal/storage
	go vet -tags nos3,nogcs,noazure ./internal/storage
	go vet bench/peer_iceberg_go.go

staticcheck:
	go run $(STATICCHECK) ./...
	go run $(STATICCHECK) -tags interop ./internal/interop
	go run $(STATICCHECK) -tags memory ./internal/interop

# Arrow's assertions find a record batch that is released twice. Both in one build: each alone would
# compile all that iceberg-go links once more.
race: # of what is tried at every place, and of what is random, a part
	go test -short -race -tags assert -timeout 30m ./...

interop: ## move tables of PyIceberg and Spark, and let other engines read them; ONLY="NAME …" for some
	go test -C internal/interop -tags interop -count=1 -timeout 60m

torture: ## all of what interop tries a sample of: kills at every system call, full disks, random tables; hours, as root
	ICEPIPE_TORTURE=1 go test -C internal/interop -tags interop -count=1 -timeout 12h -run '^Test($(TORTURES))$$'
	ICEPIPE_TORTURE=1 go test -count=1 -timeout 3h -run '^TestEqualTables$$' ./pkg/migrate
	ICEPIPE_TORTURE=1 go test -C internal/interop -tags memory -count=1 -timeout 30m -run '^TestMemoryAsAsked$$'

memory: ## hold the programs' peak memory against its bounds, over a file of 1 GB
	go test -C internal/interop -tags memory -count=1 -timeout 30m

# What is promised is promised of 10M rows on a machine that does nothing else.
bench: build ## icepipe against iceberg-go, PyIceberg, Spark, DuckDB and cp; ROWS=1000000 for a quick look, ONLY="NAME …", REPEAT=3
	testdata/interop/setup.sh $(DEPS)
	$(DEPS)/venv/bin/python bench/run.py $(DEPS) bin --rows $(ROWS) --repeat $(REPEAT) --json $(DEPS)/bench.jsonl \
	  $(if $(ONLY),--only $(ONLY)) $(if $(filter 10000000,$(ROWS)),--assert)
	$(if $(ONLY),,$(DEPS)/venv/bin/python bench/upsert.py $(DEPS) bin --rows $(ROWS))

fuzz: ## each fuzz target for FUZZTIME
	@set -e; for package in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; \
	    go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$package; \
	  done; \
	done
