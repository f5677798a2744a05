# Every target sets up its own environment; a second run finds it ready.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help demo test test-slow test-lowest install-check docs docs-test lint format bench orders mutation fuzz kills soak reproduce-quick clean

help:
	@echo "make demo             HGDE beside simpler models on two small graphs, and a page about it (well within a minute)"
	@echo "make test             run the tests (no network, under five minutes on two cores)"
	@echo "make docs             build the documentation in build/site; tutorials are run, warnings are errors"
	@echo "make docs-test        run every tutorial and example, check every link"
	@echo "make test-slow        the tests that take long: real kills, full disks, the same bits from an empty cache"
	@echo "make test-lowest      the tests with the oldest supported versions, in an environment of their own"
	@echo "make install-check    sdist and wheel, each installed in a clean environment; then hgde demo"
	@echo "make fuzz             10,000 mangled files and folders (about half an hour); results/hardening-fuzz.json"
	@echo "make kills            200 kills at random moments (an hour or two); results/hardening-kills.json"
	@echo "make soak             four estimators at once for ten minutes; results/hardening-soak.json"
	@echo "make lint             ruff and mypy"
	@echo "make bench            every speed and memory ratio beside its bar"
	@echo "make orders           declared and measured order of every solver"
	@echo "make mutation         do tests notice mistakes? (an hour or more; goes on where it was stopped)"
	@echo "make reproduce-quick  one seed of every published row whose data is at hand, compared with the stored results"

$(STAMP): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once; a few minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: $(STAMP)
	@$(BIN)/hgde demo

# Plug-ins that happen to be installed are not loaded: pytest would rewrite the asserts of their whole packages first.
# Bytecode is kept, whatever the environment says: every process that a test starts would compile the package again.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/python -m pytest -p xdist -n 2 --dist worksteal

test: $(STAMP)
	@$(PYTEST) -m "not slow"

test-slow: $(STAMP)
	@$(PYTEST) -m slow

# The oldest versions that pyproject.toml allows, in a second environment.
LOWEST := .venv-lowest
$(LOWEST)/.installed: pyproject.toml constraints-lowest.txt
	@echo "setting up $(LOWEST) (once; a few minutes) ..."
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e ".[files,search]" pytest pytest-xdist hypothesis
	@touch $@

test-lowest: $(LOWEST)/.installed
	@OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n 2 --dist worksteal -m "not slow" tests/cli tests/data tests/pipeline tests/estimators tests/tasks tests/training tests/hardening

install-check:
	@bash .ci/install-check

docs: $(STAMP)
	@OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

docs-test: $(STAMP)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/docs

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(STAMP)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP)
	@$(BIN)/hgde bench

orders: $(STAMP)
	@$(BIN)/hgde orders

mutation: $(STAMP)
	@nice $(BIN)/python -m benchmarks.mutation

fuzz: $(STAMP)
	@nice $(BIN)/python -m benchmarks.fuzz --count 10000 --out results/hardening-fuzz.json

kills: $(STAMP)
	@nice $(BIN)/python -m benchmarks.kills --kills 200 --out results/hardening-kills.json

soak: $(STAMP)
	@nice $(BIN)/python -m benchmarks.soak --minutes 5 --out results/hardening-soak.json

reproduce-quick: $(STAMP)
	@$(BIN)/hgde reproduce --quick all

clean:
	rm -rf $(VENV) $(LOWEST) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
