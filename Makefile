# Two commands do it all on a machine with python3 (>= 3.11) and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-test

.PHONY: demo test test-slow test-array-api test-lowest test-newest lint types docs check clean reproduce

demo: $(VENV)/.installed-app
	$(BIN)/python -m mnpca demo

# The paper's tables and figures: `make reproduce TARGET="table1 --quick"`. All of them take many hours.
TARGET ?= all
reproduce: $(VENV)/.installed-app
	$(BIN)/python -m reproduction $(TARGET)

# One thread a worker: BLAS threads of two workers on two cores would wait for each other.
test test-slow test-array-api test-lowest test-newest: export OMP_NUM_THREADS = 1
test test-slow test-array-api test-lowest test-newest: export OPENBLAS_NUM_THREADS = 1

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal

# What takes more than ten seconds a test: a cluster with a killed worker, altered files, the paper's tables.
test-slow: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m slow

# scikit-learn's checks of array API input, which `make test` skips for want of this switch.
test-array-api: $(STAMP)
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -n 2 tests/contract -k array_api

test-lowest test-newest:
	.ci/versions $(@:test-%=%) -n 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "The documentation: docs/_build/html/index.html"

# The rest has one process each, so two at a time.
check: test
	$(MAKE) --jobs=2 test-array-api lint types docs

# One of the package's extras: "test", or "app", which is enough for the demonstration.
$(VENV)/.installed-%: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/api/generated .pytest_cache .mypy_cache .ruff_cache .coverage
