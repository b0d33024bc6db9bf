# Every task of the project; `make` alone lists them. .ci/run is made of these targets, so what passes here passes there.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

# The settings of whoever tries the programs out are none of the tests'.
unexport $(filter DISPATCHER_% JANITOR_%,$(.VARIABLES))

VERSION := $(or $(shell git describe --tags --always --dirty 2>/dev/null),dev)
LDFLAGS := -X main.version=$(VERSION)

TEST_TIMEOUT ?= 10m
TESTFLAGS    ?=
RUNFLAGS     ?=
FUZZTIME     ?= 10s
SECONDS      ?= 60
BENCH        ?= .

# Tools are pinned here and built once per version and Go release, outside the module: their dependencies are not ours.
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION   := v1.9.0
VULNDB_VERSION        ?= v0.0.0-20261105234957-e22db6528018
# AWS's runtime interface emulator tags no releases for the Go module proxy.
LAMBDA_RIE_VERSION    := v0.0.0-20261030222936-bef5c4ba774d
CYCLONEDX_VERSION     := v1.10.0

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/queuehook-ci
TOOLS := $(CACHE)/$(shell go env GOVERSION)
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint
GOVULNCHECK   := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)/govulncheck
INDEXDB       := $(TOOLS)/indexdb-$(VULNDB_VERSION)/indexdb
LAMBDA_RIE    := $(TOOLS)/aws-lambda-rie-$(LAMBDA_RIE_VERSION)/aws-lambda-rie
CYCLONEDX     := $(TOOLS)/cyclonedx-gomod-$(CYCLONEDX_VERSION)/cyclonedx-gomod

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: bin/dispatcher ## build and start `dispatcher dev`: everything in one process, nothing to install (RUNFLAGS='--for 30s')
	@exec bin/dispatcher dev $(RUNFLAGS)

.PHONY: build
build: bin/dispatcher bin/lambda-janitor ## build both programs into bin/

# Always asked for: the go command knows better than make what is up to date.
.PHONY: bin/dispatcher
bin/dispatcher:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/dispatcher

.PHONY: bin/lambda-janitor
bin/lambda-janitor:
	CGO_ENABLED=0 go build -trimpath -tags lambda.norpc -ldflags '$(LDFLAGS)' -o $@ ./cmd/lambda-janitor

.PHONY: redis-server
redis-server: ## install redis-server where it is missing: the tests run real ones
	@scripts/install-redis-server

.PHONY: lambda-rie
lambda-rie: $(LAMBDA_RIE) ## build AWS's Lambda emulator where it is missing, and print where it is: the tests ask for it here
	@echo $(LAMBDA_RIE)

.PHONY: test
test: redis-server $(LAMBDA_RIE) ## run all tests with the race detector (TESTFLAGS=-short, -run ...)
	go test -race -timeout $(TEST_TIMEOUT) $(TESTFLAGS) ./...

.PHONY: chaos
chaos: redis-server ## break a running fleet for SECONDS (60) by faults that seeds decide, print figures (QUEUEHOOK_SEED=n replays one trial)
	QUEUEHOOK_CHAOS_SECONDS=$(SECONDS) go test -count=1 -timeout 0 -v -run '^TestChaos$$' ./internal/chaos

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (10s)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz

.PHONY: bench
bench: redis-server ## run the benchmarks (BENCH=regexp)
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

.PHONY: vet
vet: ## run go vet
	go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## check the house style: .golangci.yml, and that tests sleep in synctest bubbles only
	$(GOLANGCI_LINT) run --allow-parallel-runners ./...
	cd internal/deploy && $(GOLANGCI_LINT) run --allow-parallel-runners ./...
	@scripts/check-sleeps

.PHONY: format
format: $(GOLANGCI_LINT) ## rewrite the sources as gofumpt and goimports want them
	$(GOLANGCI_LINT) fmt ./...

.PHONY: vuln
vuln: $(GOVULNCHECK) $(INDEXDB) ## look for known vulnerabilities that our code can reach (VULNDB_VERSION=latest)
	@GOVULNCHECK=$(GOVULNCHECK) INDEXDB=$(INDEXDB) VULNDB_VERSION=$(VULNDB_VERSION) DB_CACHE=$(CACHE) scripts/vuln

.PHONY: tidy
tidy: ## bring go.mod and go.sum in line with the imports
	go mod tidy
	go -C internal/deploy mod tidy

.PHONY: tidy-check
tidy-check: ## fail where `make tidy` would change something
	go mod tidy -diff
	go -C internal/deploy mod tidy -diff

.PHONY: deploy-test
deploy-test: ## check the Dockerfile, compose.yaml and the Helm chart, each by its own tool's code (TESTFLAGS=-update: golden files)
	@# What it looks at is outside of its module, where the go command sees no change.
	go -C internal/deploy test -count=1 $(TESTFLAGS) ./...

.PHONY: image
image: ## build the container images, with docker or what BUILDER names
	@scripts/build-image

.PHONY: image-test
image-test: ## build the images without a registry and run them, read-only as uid 65532 (installs buildah)
	@scripts/test-image

.PHONY: terraform-test
terraform-test: ## check the Terraform module and its examples, plans only (TERRAFORM_CHECK=program instead of terraform)
	@scripts/test-terraform

.PHONY: release
release: $(CYCLONEDX) ## build what a release consists of into dist/: archives, Lambda packages, SBOMs, SHA256SUMS
	@CYCLONEDX=$(CYCLONEDX) VERSION=$(VERSION) scripts/release dist

.PHONY: release-check
release-check: $(CYCLONEDX) ## build the release in two folders, compare every byte and try what runs here
	@CYCLONEDX=$(CYCLONEDX) VERSION=$(VERSION) scripts/check-release

.PHONY: clean
clean: ## remove what was built here; the tools in the cache folder stay
	rm -rf bin dist

$(GOLANGCI_LINT):
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

# Nothing but lambda-rie's line goes to standard output.
$(LAMBDA_RIE):
	@GOBIN=$(@D) go install github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@$(LAMBDA_RIE_VERSION)

$(GOVULNCHECK):
	GOBIN=$(@D) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

$(INDEXDB):
	GOBIN=$(@D) go install golang.org/x/vulndb/cmd/indexdb@$(VULNDB_VERSION)

$(CYCLONEDX):
	GOBIN=$(@D) go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION)
