# Each target sets up what it needs; the second call installs nothing.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test fuzz lint bench clean setup

demo: $(READY)            ## ORDisCo and SMB on the embedded digits, side by side
	$(BIN)/ordisco run

test: $(READY)            ## all tests
	$(BIN)/python -m pytest

fuzz: $(READY)            ## wrong input at random for 20 minutes, or MINUTES=…, from SEED=…
	$(BIN)/python tests/fuzz.py --minutes $(or $(MINUTES),20) --seed $(or $(SEED),0)

lint: $(READY)            ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)           ## measured speed
	$(BIN)/ordisco bench

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
