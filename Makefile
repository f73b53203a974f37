# Needs only Python 3.11+ and make: everything else goes into .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test test-slow test-all lint format bench check clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[lab,dev]' || \
	  { echo "the lab extra has no wheel here: going on without it"; $(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'; }
	touch $@

demo: $(STAMP)
	$(BIN)/triage demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow -n 2

test-all: test test-slow

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)
	$(BIN)/python -m tests.bench

check: lint test

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
