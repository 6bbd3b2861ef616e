# The few commands a person needs; each does what is missing first.  `make help` lists them.
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
VENV    = build/venv

.DEFAULT_GOAL := help
.PHONY: help setup build demo test check sanitize fuzz bench wheels install format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install the packages that building and testing need, where they are missing
	@tools/setup

build: setup ## build the tool as it is installed (build/release)
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@cmake --build --preset release -j $(JOBS)

demo: build ## profile a real command here, then show a recorded run of an H100
	@tools/demo

test: setup $(VENV)/ready ## build and run every test
	cmake --preset ci -DPython3_EXECUTABLE=$(CURDIR)/$(VENV)/bin/python3 -DJOULEPROF_PYTHON=ON
	cmake --build --preset ci -j $(JOBS)
	ctest --preset ci -j $(JOBS)

$(VENV)/ready: tests/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install -q -r tests/requirements.txt
	touch $@

check: setup ## format, floors and documentation are in order
	tools/check_format
	python3 tools/check_floors.py
	tools/check_docs

# The test programs in which several threads meet.
THREADED = session_test windows_test nvml_sim_core_test recording_test
sanitize: setup ## unit tests under the address, undefined-behaviour and thread sanitizers
	cmake --preset asan && cmake --build --preset asan -j $(JOBS) && ctest --preset asan -j $(JOBS) -LE e2e
	cmake --preset tsan && cmake --build --preset tsan -j $(JOBS) --target $(THREADED)
	for program in $(THREADED); do \
	  "$$(find build/tsan -name $$program -type f)" --gtest_brief=1 || exit 1; done

FUZZ_SECONDS ?= 20
FUZZERS = import_fuzz csv_fuzz torch_trace_fuzz recording_reader_fuzz spool_fuzz
fuzz: setup ## fuzz the readers of files, FUZZ_SECONDS each
	cmake --preset fuzz && cmake --build --preset fuzz -j $(JOBS) --target $(FUZZERS)
	tools/fuzz build/fuzz $(FUZZ_SECONDS)

BENCH_VENV = build/bench_venv
bench: build $(BENCH_VENV)/ready ## measure what measuring costs, beside other tools
	$(BENCH_VENV)/bin/pip install -q .
	$(BENCH_VENV)/bin/python3 bench/run.py build/release --json build/bench.json

$(BENCH_VENV)/ready: bench/requirements.txt
	python3 -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install -q -r bench/requirements.txt
	touch $@

wheels: build ## a Python wheel for each Python from 3.9 to 3.13 found here, tested (build/wheels)
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) tools/wheels

install: build ## install into PREFIX (default /usr/local)
	cmake --install build/release --prefix $(PREFIX)

format: ## format the sources
	@git ls-files '*.h' '*.hpp' '*.cpp' '*.c' | xargs clang-format-16 -i

clean: ## remove everything built
	rm -rf build
