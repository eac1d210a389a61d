# Every target sets up what it needs. `make demo` and `make test` are the two to know.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: setup demo test check bench eval lock clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Longthread needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up $(VENV) (about a minute the first time) …"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -r requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup
	@$(BIN)/longthread demo

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: check
	@$(BIN)/python -m pytest -n auto --dist worksteal

bench: setup
	@$(BIN)/python benchmarks/log.py

eval: setup
	@$(BIN)/python evals/questions.py

lock:
	@rm -rf $(VENV)/lock && $(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/python -m pip --quiet install --upgrade pip
	@$(VENV)/lock/bin/python -m pip --quiet install . && $(VENV)/lock/bin/python -m pip freeze --exclude longthread > requirements/run.txt
	@$(VENV)/lock/bin/python -m pip --quiet install --group dev hatchling editables && $(VENV)/lock/bin/python -m pip freeze --exclude longthread > requirements/dev.txt
	@rm -rf $(VENV)/lock

clean:
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
