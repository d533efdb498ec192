# A thin front to CMake: see `make help`.
PRESET ?= release
PREFIX ?= /usr/local
BUILD := build/$(PRESET)
CMAKE_FLAGS ?=
JOBS ?= $(shell cmake/build_jobs.sh)
# Two more than there are processors: as many tests on Slurm mostly wait.
TEST_JOBS ?= $(shell echo $$(( $$(cmake/build_jobs.sh) + 2 )))
GOAL ?= programs
CTEST_FLAGS ?=

.PHONY: help quickstart test setup build configure install package benchmarks gpu-figures sanitize format clean
.DEFAULT_GOAL := help

help:
	@echo 'make quickstart          install what is missing, build, train a model in three stages on this machine'
	@echo 'make test                the same set-up, then every test'
	@echo 'make build               build the programs (PRESET=release|dev|tsan, CMAKE_FLAGS=-D…, GOAL=all: tests and benchmarks too)'
	@echo 'make benchmarks          print the figures of tests/bench'
	@echo 'make gpu-figures         every figure of measuring on a GPU, on this machine (some 25 minutes on an H200)'
	@echo 'make sanitize            every test without torch under address, undefined-behaviour and thread sanitizers'
	@echo 'make install PREFIX=DIR  programs, tasks, workflows, documents, completions and man page'
	@echo 'make package             a .deb and a .tar.gz of the same, in build/release/package'
	@echo 'make setup               only install what is missing (Debian packages, torch)'

setup:
	@cmake/setup.sh

setup-tests:
	@cmake/setup.sh test

configure:
	@command -v cmake >/dev/null || { echo 'make: cmake is missing (Debian: cmake; conda-forge: cmake)' >&2; exit 3; }
	@echo 'make: configuring $(BUILD)'
	@cmake --preset $(PRESET) $(CMAKE_FLAGS)

# GOAL=programs: what a user runs; GOAL=all: tests and benchmarks as well.
build: configure
	@echo 'make: building $(GOAL) with $(JOBS) jobs'
	@cmake --build $(BUILD) -j $(JOBS) --target $(GOAL)

# The steps of one goal follow one another, also under make -j.
quickstart:
	@$(MAKE) --no-print-directory setup
	@$(MAKE) --no-print-directory build
	$(BUILD)/warpsmith run workflows/quickstart.yaml

test:
	@$(MAKE) --no-print-directory setup-tests
	@$(MAKE) --no-print-directory build GOAL=all
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(TEST_JOBS) $(CTEST_FLAGS)

# Both lie in $(BUILD)/package then.
package: build
	cpack --config $(BUILD)/CPackConfig.cmake -B $(BUILD)/package

install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

benchmarks:
	@$(MAKE) --no-print-directory build GOAL=all
	@for b in $(BUILD)/bench/*; do if [ -x $$b ] && [ -f $$b ]; then echo "== $$b"; $$b || exit 1; fi; done

gpu-figures:
	@$(MAKE) --no-print-directory build GOAL=all
	@BUILD=$(BUILD) tests/bench/gpu_figures.sh

sanitize:
	@for p in dev tsan; do $(MAKE) --no-print-directory build PRESET=$$p GOAL=all && ctest --test-dir build/$$p --output-on-failure || exit 1; done

format:
	clang-format-14 -i $$(git ls-files '*.h' '*.cc')

clean:
	rm -rf build
