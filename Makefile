# The few commands a person needs; each does what is missing first.  `make help` lists them.
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
# Most tests wait for timers, not for a core.
TEST_JOBS ?= $(shell echo $$((2 * $(JOBS))))
VENV    = build/venv

.DEFAULT_GOAL := help
.PHONY: help setup configure build demo test columns check page test-browser screenshots sanitize fuzz faults bench wheels package deb install format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install the packages that building and testing need, where they are missing
	@tools/setup

configure: setup
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }

build: configure ## build the tool as it is installed (build/release)
	@cmake --build --preset release -j $(JOBS)

demo: configure ## profile a real command here, show a recorded run of a GPU, sweep a simulated one
	@cmake --build --preset release -j $(JOBS) --target jouleprof jouleprof_nvml_sim
	@tools/demo

test: setup $(VENV)/ready ## build and run every test
	cmake --preset ci -DPython3_EXECUTABLE=$(CURDIR)/$(VENV)/bin/python3 -DJOULEPROF_PYTHON=ON
	cmake --build --preset ci -j $(JOBS)
	ctest --preset ci -j $(TEST_JOBS)
	@sed -n 's/^page_test: SKIPPED/the page: skipped/p' build/ci/Testing/Temporary/LastTest.log
	@awk '/tests from .* ran\./ {n += $$2} END {print n " unit tests in these programs"}' build/ci/Testing/Temporary/LastTest.log

$(VENV)/ready: tests/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install -q -r tests/requirements.txt
	touch $@

columns: ## write the tables of docs/json.md and the columns of the Python package from src/report/json/records.cpp
	@JOULEPROF_WRITE_COLUMNS=1 build/ci/src/report/report_test --gtest_brief=1 --gtest_filter='Records.*'

check: setup ## format, floors and documentation are in order
	tools/check_format
	python3 tools/check_floors.py
	tools/check_docs
	tools/check_page
	PATH="$$($(VENV)/bin/python3 -c 'import kubernetes_validate' 2>/dev/null && echo $(CURDIR)/$(VENV)/bin:)$$PATH" packaging/check

web/node_modules/ready: web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	touch $@

page: web/node_modules/ready ## build the page of `report --html` from web/, which needs npm (Node 18 or newer)
	cd web && npm run build

# `make test` runs these where all is there. It installs nothing for them: Node, npm and Chromium take
# longer to install than all other packages together.
BROWSER_NEEDS = $(shell command -v node >/dev/null || echo nodejs) $(shell command -v npm >/dev/null || echo npm) \
                $(shell test -x "$${CHROMIUM:-/usr/bin/chromium}" || echo chromium)
test-browser: ## test the page, in Chromium too; installs Node, npm, its packages and Chromium where they are missing
	@tools/setup $(BROWSER_NEEDS)
	@$(MAKE) --no-print-directory web/node_modules/ready configure
	@cmake --build --preset release -j $(JOBS) --target jouleprof jouleprof_nvml_sim
	@JOULEPROF_TOOL=$(CURDIR)/build/release/src/apps/cli/jouleprof \
	 JOULEPROF_SIM=$(CURDIR)/build/release/tests/nvml_sim/libjouleprof_nvml_sim.so tools/page_test

screenshots: web/node_modules/ready configure ## make the pictures of docs/images again, which needs Chromium
	@cmake --build --preset release -j $(JOBS) --target jouleprof
	tools/screenshots build/release/src/apps/cli/jouleprof

# The test programs in which several threads meet.
THREADED = session_test session_jobs_test windows_test nvml_sim_core_test recording_test serve_test \
           cupti_test reruns_test
sanitize: setup ## unit tests under the address, undefined-behaviour and thread sanitizers
	cmake --preset asan && cmake --build --preset asan -j $(JOBS) --target unit_tests
	ctest --preset asan -j $(TEST_JOBS) -LE e2e
	cmake --preset tsan && cmake --build --preset tsan -j $(JOBS) --target $(THREADED)
	ctest --preset tsan -j $(TEST_JOBS) -R "^($$(echo $(THREADED) | tr ' ' '|'))"

FUZZ_SECONDS ?= 20
fuzz: setup ## fuzz the readers of files, FUZZ_SECONDS each
	cmake --preset asan && cmake --build --preset asan -j $(JOBS) --target fuzzers
	tools/fuzz build/asan $(FUZZ_SECONDS) $(JOBS)

FAULTS ?= --all
faults: build ## make each system call of the tool fail in turn; FAULTS='--seed 7 --samples 50' for a few
	python3 tests/faults/run_faults.py --jobs $(JOBS) $(FAULTS) build/release

BENCH_VENV = build/bench_venv
bench: build $(BENCH_VENV)/ready ## measure what measuring costs, beside other tools
	cmake --preset release -DJOULEPROF_BENCH=ON
	cmake --build --preset release -j $(JOBS) --target benchmarks
	$(BENCH_VENV)/bin/pip install -q .
	$(BENCH_VENV)/bin/python3 bench/run.py build/release --json build/bench.json

$(BENCH_VENV)/ready: bench/requirements.txt
	python3 -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install -q -r bench/requirements.txt
	touch $@

wheels: build ## a Python wheel for each Python from 3.9 to 3.13 found here, tested (build/wheels)
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) tools/wheels

package: build ## the tool and library as a tarball for x86-64 Linux with glibc 2.28 (build)
	@tools/package build/release build

deb: build ## the tool, library and service as a Debian package (build)
	@tools/deb build/release build

install: build ## install into PREFIX (default /usr/local)
	cmake --install build/release --prefix $(PREFIX)

format: ## format the sources
	@git ls-files '*.h' '*.hpp' '*.cpp' '*.c' | xargs clang-format-16 -i

clean: ## remove everything built
	rm -rf build
