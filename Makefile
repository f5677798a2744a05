# Every target sets up its own environment; a second run finds it ready.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help demo test docs docs-test lint format bench orders mutation reproduce-quick clean

help:
	@echo "make demo             HGDE beside simpler models on two small graphs, and a page about it (well within a minute)"
	@echo "make test             run the tests (no network, under five minutes on two cores)"
	@echo "make docs             build the documentation in build/site; tutorials are run, warnings are errors"
	@echo "make docs-test        run every tutorial and example, check every link"
	@echo "make test-slow        the tests that take long: real kills, full disks, the same bits from an empty cache"
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

test: $(STAMP)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-slow: $(STAMP)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m slow

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

reproduce-quick: $(STAMP)
	@$(BIN)/hgde reproduce --quick all

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
