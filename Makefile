# The commands of the project; CONTRIBUTING.md says when to use which.

PREFIX ?= /opt/tritonserver
HTTP_PORT ?= 8000
GRPC_PORT ?= 8001
METRICS_PORT ?= 8002
FUZZ_SECONDS ?= 60
# One of examples/, the port of its page, and what its client is given besides.
EXAMPLE ?=
PAGE_PORT ?= 8080
ARGS ?=
# Backends that are there when asked for: names between commas, or all (tools/packages/backends.list).
BACKENDS ?=
export BACKENDS HTTP_PORT GRPC_PORT METRICS_PORT PAGE_PORT FUZZ_SECONDS

.DEFAULT_GOAL := help
.PHONY: help run example build check test test-long bench install wheel deb image lint format fuzz cov clean

help: ## this list
	@echo "make <target>:"
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-13s%s\n", $$1, $$2 }'

run: ## install what is missing, build, write the sample repository, serve it on ports 8000, 8001, 8002; BACKENDS as below
	@tools/run.sh

example: ## the same for one of examples/README.md, to be seen in a page or the terminal: EXAMPLE=digits, search, speech or ocr
	@examples/run.sh "$(EXAMPLE)" $(ARGS)

build: ## install what is missing and build what is served (build/release)
	@tools/build.sh release server

check: ## what a change can break first, in three minutes; BASE=COMMIT: all that differs from it
	@tools/setup.sh test
	@/usr/bin/python3 tools/check.py $(if $(BASE),--base $(BASE))

test: ## install what is missing, build, run every test: a quarter of an hour on two quiet cores
	@tools/test.sh

test-long: ## all of that, then a night: soak, crowds, many seeds, more sanitizers, mutants, fuzzing
	@tools/test.sh
	@/usr/bin/python3 tools/test_long.py

bench: ## ours against the reference and against the bare floor, as a table of ratios
	@tools/bench.sh

install: build ## install under PREFIX (default /opt/tritonserver); BACKENDS=NAME,... or all: with these backends
	@tools/install.sh "$(PREFIX)"

wheel: build ## the package for Python with the server inside: build/dist/nereid-*.whl; what is in it, and its size
	@tools/build.sh release nereid_package
	@bindings/python/build_wheel.py build/dist

deb: build ## a Debian package with a systemd service: build/dist/nereid_*.deb; BACKENDS as above
	@tools/deb.sh build/dist

image: build ## a container image, as a directory in the layout of OCI: build/dist/image; BACKENDS as above
	@build/venv/bin/python tools/image.py build/dist/image

lint: ## clang-tidy, cppcheck and the compiler's static analyser
	@tools/lint.sh

format: ## format all C files in place
	@tools/setup.sh test
	@tools/format.sh

fuzz: ## each fuzzer for FUZZ_SECONDS (default 60)
	@tools/fuzz.sh

cov: ## line coverage of the C tests, as a table
	@tools/cov.sh

clean: ## remove the build trees; what was downloaded stays (rm -r build removes that too)
	rm -rf build/release build/dev build/tsan build/fuzz build/cov build/lint build/models build/models-*
