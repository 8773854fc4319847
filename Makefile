# What one types while one changes the code. No target needs root, and each is a line that can be typed as well.
# PACKAGES narrows bench and flakes down: make bench PACKAGES=./adapters/gateway/...
.DEFAULT_GOAL := help
.PHONY: help build test short lint generate bench flakes release-check

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

build: ## both programs, into bin/
	go build -o bin/ ./cmd/agentproxy ./cmd/apx

test: ## every test; what this machine lacks a program for is skipped
	go test ./...

short: ## rules, use cases and the shape of the code: no database server, no browser
	go test ./domain/... ./ports/... ./app/... ./test/arch

lint: ## formatting, vet and golangci-lint
	! gofmt -l $$(git ls-files '*.go') | grep . && go tool -modfile=.ci/tools/go.mod golangci-lint run

generate: ## every file that is written from the code, in the order in which one is made from another
	go test ./cmd/apx ./domain/connect ./adapters/configfile ./adapters/upstream ./adapters/admin -update
	go test ./adapters/httpapi ./adapters/apiclient ./adapters/httpapi/pages ./test/arch -update

bench: ## every benchmark, or those of PACKAGES
	go test -run '^$$' -bench . $(or $(PACKAGES),./...)

flakes: ## the tests again and again, alone, beside busy loops and on one slow processor
	.ci/flakes $(PACKAGES)

release-check: ## what a release is made by, and the programs for this machine, into dist/
	@test -n "$$(git remote)" || { echo "goreleaser names a release by the git remote, and this checkout has none: run" \
		"make release-check in a clone of it (git clone . ../agentproxy-release)"; exit 1; }
	go tool -modfile=.ci/release/go.mod goreleaser check && go tool -modfile=.ci/release/go.mod goreleaser build --snapshot --single-target --clean
