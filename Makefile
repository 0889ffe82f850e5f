SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := help
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules

include Tools.mk

# Tools are built into the cache once a version and linked into .tools, so that
# a new clone does not build them again. A link's name has the version, so that a
# new version is a new target.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/warmpath
GOFUMPT := .tools/gofumpt-$(GOFUMPT_VERSION)
STATICCHECK := .tools/staticcheck-$(STATICCHECK_VERSION)
KAPI := .tools/kapi-$(KUBERNETES_VERSION)
JAEGER := .tools/jaeger-$(JAEGER_VERSION)
ISTIOD := .tools/istiod-$(ISTIO_VERSION)
LLAMA_SERVER := .tools/llama-server-$(LLAMA_SERVER_VERSION)
BENCHSTAT := .tools/benchstat-$(BENCHSTAT_VERSION)
GREMLINS := .tools/gremlins-$(GREMLINS_VERSION)
PROTOC_GEN_GO := .tools/protoc-gen-go-$(PROTOC_GEN_GO_VERSION)

# The race detector needs cgo, and cgo a C compiler.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# The packages on the path of a request, which have micro-benchmarks and whose
# tests are tested by mutants.
HOT := ./internal/prefix ./internal/placement ./internal/load ./internal/route

# The same for all programs, or each would compile their packages anew. The
# version is that of the git tag or commit.
BUILD := -trimpath -buildvcs=auto -ldflags '-s -w'

# What a caller may set: make test RUN=TestName PKG=./extproc
PKG ?= ./...
RUN ?= .
BENCH ?= .
COUNT ?= 6
OUT ?= bin/bench.txt
# Of bench, bench-sagemaker, bench-policies, bench-xds, real-engine, chaos, soak and streams: make bench ARGS='-duration 20m -arms noop,warmpath-prefix-aware'; bin/sidebyside -h lists them.
ARGS ?=
# Of fuzz: how long each target runs, how many at once, and which: make fuzz FUZZTIME=1m TARGETS=xds
FUZZTIME ?= 10m
JOBS ?= 1
TARGETS ?= .
# Of test-envoys: the versions.
ENVOYS ?= 1.38.3 1.39.3 1.40.0
# Of test-istio: with a real API server too.
FULL ?=
# Just the Envoy of ENVOY_VERSION, whatever the machine has: make test EXACT=1 ENVOY_VERSION=1.38.3
EXACT ?=

##@ Use

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\nCompare two versions: make bench-micro OUT=bin/old.txt, change, make bench-micro OUT=bin/new.txt, make benchstat\n'

.PHONY: build
build: ## Build bin/warmpath
	go build $(BUILD) -o bin/warmpath ./cmd/warmpath

.PHONY: demo
demo: build ## Envoy, warmpath and seven simulated replicas: RANDOM against PREFIX_AWARE
	@envoy=$$($(FIND_ENVOY)); go build $(BUILD) -o bin/demo ./bench/demo; exec bin/demo -warmpath bin/warmpath -envoy "$$envoy"

.PHONY: envoy
envoy: ## Find an Envoy ($ENVOY, PATH, func-e) or install the pinned one into .tools
	@$(FIND_ENVOY)

FIND_ENVOY = go run -trimpath ./internal/envoybin/cmd/envoybin $(if $(EXACT),-exact) -version $(ENVOY_VERSION) -sha256 '$(strip $(ENVOY_SHA256_$(ENVOY_VERSION)))'

##@ Develop

.PHONY: test
test: python ## Run all tests, also those with a real Envoy and real clients (PKG=, RUN=)
	@$(if $(RACE),,echo "no C compiler: testing without the race detector" >&2)
	@envoy=$$($(FIND_ENVOY)); set -x; ENVOY="$$envoy" go test $(RACE) -timeout 45m -run '$(RUN)' $(PKG)
	@$(if $(filter-out ./... .,$(PKG) $(RUN)),,$(MAKE) --no-print-directory test-monitoring test-browser RUN='TestPanels|TestLostConnection|TestNarrow')

.PHONY: test-browser
test-browser: ## Test the live page in a real Chromium, which is installed where it is missing: a minute (RUN=)
	@tools/install-chromium
	cd test/browser && go test -timeout 10m -run '$(RUN)' .

.PHONY: test-monitoring
test-monitoring: ## Test examples/monitoring with the parser and the engine of Prometheus; building them takes a minute, once
	cd test/monitoring && go test -timeout 10m .

.PHONY: screenshots
screenshots: ## Take pictures of the live page into bin/screenshots
	@tools/install-chromium
	@mkdir -p bin/screenshots
	cd test/browser && SCREENSHOTS='$(CURDIR)/bin/screenshots' go test -timeout 5m -count 1 -run TestPictures .

.PHONY: test-envoys
test-envoys: ## Test the core with each Envoy that is supported: request bodies in every mode, retries, inspection (ENVOYS=)
	@for version in $(ENVOYS); do $(MAKE) --no-print-directory test EXACT=1 ENVOY_VERSION=$$version PKG='./envoy ./cmd/warmpath' \
	  RUN='$(if $(filter .,$(RUN)),TestBodyMatrix|TestDeadEndpoint|TestKilledInMidUpload|TestInspectionAgrees|TestPrintedConfigurationSteers|TestEnvoyAccepts,$(RUN))'; done

.PHONY: test-kubernetes
test-kubernetes: $(KAPI) ## Test membership against a real API server; building that takes ten minutes, once (RUN=)
	@envoy=$$($(FIND_ENVOY)); set -x; ENVOY="$$envoy" KAPI="$(CURDIR)/$(KAPI)" go test $(RACE) -v -timeout 15m -tags kubernetes \
	  -exec '$(CURDIR)/tools/with-addresses' -run '$(if $(filter .,$(RUN)),TestKubernetes,$(RUN))' ./cmd/warmpath

.PHONY: test-jaeger
test-jaeger: $(JAEGER) ## Test traces in a real Jaeger; building that takes ten minutes, once (RUN=)
	@envoy=$$($(FIND_ENVOY)); set -x; ENVOY="$$envoy" JAEGER="$(CURDIR)/$(JAEGER)" go test $(RACE) -v -timeout 15m -tags jaeger \
	  -run '$(if $(filter .,$(RUN)),TestJaeger,$(RUN))' ./cmd/warmpath

ISTIO_FULL = -tags istio,kubernetes -exec '$(CURDIR)/tools/with-addresses'

.PHONY: test-istio
test-istio: $(ISTIOD) $(if $(FULL),$(KAPI)) ## Test behind a gateway that the real istiod configures; building that takes ten minutes, once (RUN=, FULL=1: with an API server)
	@envoy=$$($(FIND_ENVOY)); set -x; ENVOY="$$envoy" ISTIOD="$(CURDIR)/$(ISTIOD)" KAPI="$(CURDIR)/$(KAPI)" go test $(RACE) -v -timeout 15m \
	  $(if $(FULL),$(ISTIO_FULL),-tags istio) -run '$(if $(filter .,$(RUN)),TestIstio,$(RUN))' ./cmd/warmpath

.PHONY: test-real-engine
test-real-engine: $(LLAMA_SERVER) ## Test routing with a real engine; building that takes twelve minutes of processor time, once (RUN=)
	@envoy=$$($(FIND_ENVOY)); set -x; ENVOY="$$envoy" LLAMA_SERVER="$(CURDIR)/$(LLAMA_SERVER)" go test -v -timeout 15m -count 1 -tags realengine \
	  -run '$(if $(filter .,$(RUN)),TestRealEngine,$(RUN))' ./bench/realengine

.PHONY: check
check: $(GOFUMPT) $(STATICCHECK) $(PROTOC_GEN_GO) ## Run every check that is not a test: format, vet, staticcheck, house rules, modules
	@tools/check-format $(GOFUMPT)
	go vet ./...
	go vet -tags kubernetes,jaeger,istio ./cmd/warmpath
	go vet -tags realengine ./bench/realengine
	cd test/browser && go vet . && go mod tidy -diff
	cd test/monitoring && go vet . && go mod tidy -diff
	$(STATICCHECK) ./...
	go test ./internal/archtest
	@tools/check-tree
	go run -trimpath ./internal/protogen -plugin $(PROTOC_GEN_GO) -check
	go mod tidy -diff
	go mod verify

.PHONY: fmt
fmt: $(GOFUMPT) ## Format all Go files
	$(GOFUMPT) -w .

.PHONY: proto
proto: $(PROTOC_GEN_GO) ## Write the Go code of the messages in proto anew
	go run -trimpath ./internal/protogen -plugin $(PROTOC_GEN_GO)

.PHONY: bench
bench: build ## Measure in five minutes what routing costs: Envoy alone, a no-op, warmpath (ARGS=)
	@envoy=$$($(FIND_ENVOY)); go build $(BUILD) -o bin/ ./bench/noop ./bench/sidebyside; \
	  exec bin/sidebyside -envoy "$$envoy" -warmpath bin/warmpath -noop bin/noop -json bin/sidebyside.json $(ARGS)

.PHONY: bench-peers
bench-peers: ## The same beside other routers that know prefixes, installed from PyPI (ARGS=)
	@tools/install-python $(PYTHON) '$(CACHE)' bench/sidebyside/peers.txt peers
	@$(MAKE) --no-print-directory bench ARGS='-arms warmpath-prefix-aware,sglang-router,smg,vllm-router $(ARGS)'

.PHONY: bench-sagemaker
bench-sagemaker: build ## Repeat SageMaker's published experiment in about ten minutes (ARGS=-short: seconds)
	@envoy=$$($(FIND_ENVOY)); go build $(BUILD) -o bin/sagemaker ./bench/sagemaker; \
	  exec bin/sagemaker -envoy "$$envoy" -warmpath bin/warmpath -json bin/sagemaker.json $(ARGS)

.PHONY: real-engine
real-engine: build $(LLAMA_SERVER) ## Three llama-servers on two cores: round robin against warmpath, in about two minutes (ARGS=-short)
	@envoy=$$($(FIND_ENVOY)); go build $(BUILD) -o bin/realengine ./bench/realengine; \
	  exec bin/realengine -envoy "$$envoy" -warmpath bin/warmpath -llama-server '$(LLAMA_SERVER)' -json bin/realengine.json $(ARGS)

.PHONY: bench-policies
bench-policies: ## Compare every way of choosing a replica on all traces, simulated, in an hour (ARGS=-short: seconds)
	go build $(BUILD) -o bin/policies ./bench/policies
	exec bin/policies -json bin/policies.json $(ARGS)

.PHONY: bench-xds
bench-xds: ## Measure what a change of membership costs with 10,000 endpoints and 50 Envoys: two minutes (ARGS=-short: seconds)
	go build $(BUILD) -o bin/xdsscale ./bench/xdsscale
	exec bin/xdsscale -json bin/xdsscale.json $(ARGS)

.PHONY: images
images: ## Draw docs/images anew, from docs/BENCHMARKS.md and the JSON of bench-policies
	go build $(BUILD) -o bin/plot ./bench/policies/plot
	mkdir -p docs/images
	bin/plot -from docs/BENCHMARKS.md -out docs/images/added.png added
	bin/plot -from bin/policies.json -out docs/images/frontier.png frontier
	bin/plot -from bin/policies.json -out docs/images/sagemaker.png sagemaker

.PHONY: chaos
chaos: build ## Let everything fail while requests run, and count what is lost: 20 minutes (ARGS=-short: seconds)
	@envoy=$$($(FIND_ENVOY)); go build $(BUILD) -o bin/chaos ./bench/chaos; \
	  exec bin/chaos -envoy "$$envoy" -warmpath bin/warmpath -json bin/chaos.json $(ARGS)

.PHONY: soak
soak: build ## Random faults for 15 minutes, and look for what grows (ARGS='-soak 8h -seed 2')
	@envoy=$$($(FIND_ENVOY)); go build $(BUILD) -o bin/chaos ./bench/chaos; \
	  exec bin/chaos -envoy "$$envoy" -warmpath bin/warmpath -json bin/soak.json -soak 15m $(ARGS)

.PHONY: streams
streams: build ## Hold 5,000 responses open, storms of clients, full tables: 20 minutes (ARGS=-short: a minute)
	@envoy=$$($(FIND_ENVOY)); go build $(BUILD) -o bin/streams ./bench/streams; \
	  exec bin/streams -envoy "$$envoy" -warmpath bin/warmpath -json bin/streams.json $(ARGS)

.PHONY: fuzz
fuzz: ## Feed arbitrary bytes to every parser, ten minutes each (FUZZTIME=, JOBS= at once, TARGETS=)
	@tools/fuzz '$(FUZZTIME)' '$(JOBS)' '$(TARGETS)'

# --test-cpu must not be given: gremlins 0.6.0 passes it as one word, go test refuses
# that, and every mutant counts as killed.
# A mutant that lives costs a whole run of the tests, so the tests are the short ones,
# and rapid does not make a failure small that nobody reads.
.PHONY: mutants
mutants: $(GREMLINS) ## Change the algorithms' code in small ways, and see that tests fail: an hour (PKG=)
	@export GOFLAGS="$$(go env GOFLAGS) -short -count=1 -vet=off -ldflags=-w" RAPID_SHRINKTIME=1ms RAPID_NOFAILFILE=true; \
	  for package in $(if $(filter ./...,$(PKG)),$(HOT),$(PKG)); do \
	    $(GREMLINS) unleash --workers 1 --timeout-coefficient 4 --threshold-efficacy 85 $$package; done

.PHONY: bench-micro
bench-micro: ## Run the micro-benchmarks of the request path into bin/bench.txt (OUT=, BENCH=, COUNT=)
	@mkdir -p $(dir $(OUT))
	go test -run - -bench '$(BENCH)' -benchmem -count $(COUNT) $(HOT) | tee $(OUT)

.PHONY: benchstat
benchstat: $(BENCHSTAT) ## Compare two results of bench-micro: OLD=, NEW=
	$(BENCHSTAT) $(OLD) $(NEW)

OLD ?= bin/old.txt
NEW ?= bin/new.txt

##@ Tools

.PHONY: tools
tools: envoy python $(GOFUMPT) $(STATICCHECK) $(BENCHSTAT) $(PROTOC_GEN_GO) ## Install everything that test and check need

.PHONY: python
python: ## Make .tools/python, an environment with the clients that tests run
	@tools/install-python $(PYTHON) '$(CACHE)' internal/testenv/pyclient/requirements.txt python

.PHONY: kapi
kapi: $(KAPI) ## Build the API server of test-kubernetes into the cache

$(KAPI): $(wildcard test/kapi/*)
	@tools/install-kapi '$(KUBERNETES_VERSION)' '$(CACHE)'

.PHONY: jaeger
jaeger: $(JAEGER) ## Build the Jaeger of test-jaeger into the cache

$(JAEGER): test/jaeger/go.mod test/jaeger/go.sum
	@tools/install-jaeger '$(JAEGER_VERSION)' '$(CACHE)'

.PHONY: istiod
istiod: $(ISTIOD) ## Build the istiod of test-istio into the cache

$(ISTIOD): $(wildcard test/istio/*)
	@tools/install-istiod '$(ISTIO_VERSION)' '$(CACHE)'

.PHONY: llama-server
llama-server: $(LLAMA_SERVER) ## Build the llama-server of real-engine into the cache

$(LLAMA_SERVER):
	@tools/install-llama-server $(PYTHON) '$(LLAMA_SERVER_VERSION)' '$(LLAMA_SERVER_SHA256)' '$(CACHE)'

$(GOFUMPT):
	@tools/install-go mvdan.cc/gofumpt $(GOFUMPT_VERSION) '$(CACHE)'

$(STATICCHECK):
	@echo 'staticcheck takes about two minutes, once a machine' >&2
	@tools/install-go honnef.co/go/tools/cmd/staticcheck $(STATICCHECK_VERSION) '$(CACHE)'

$(GREMLINS):
	@tools/install-go github.com/go-gremlins/gremlins/cmd/gremlins $(GREMLINS_VERSION) '$(CACHE)'

$(PROTOC_GEN_GO):
	@tools/install-go google.golang.org/protobuf/cmd/protoc-gen-go $(PROTOC_GEN_GO_VERSION) '$(CACHE)'

$(BENCHSTAT):
	@tools/install-go golang.org/x/perf/cmd/benchstat $(BENCHSTAT_VERSION) '$(CACHE)'

.PHONY: clean
clean: ## Remove what was built; the cache of tools stays
	rm -rf bin .tools
