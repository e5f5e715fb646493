# Each target sets up what it needs; the second call installs nothing.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# One process more than there are cores, 4 at the most: some tests wait for other processes.
COUNT  := $(shell $(PYTHON) -c 'import os; print(min(4, len(os.sched_getaffinity(0)) + 1) if hasattr(os, "sched_getaffinity") else 4)')
PYTEST := $(BIN)/python -m pytest -n $(COUNT) --dist loadfile

.PHONY: demo test quick other-cpu fuzz lint bench docs dist clean setup extras

demo: $(READY)            ## ORDisCo and SMB on the embedded digits, side by side
	$(BIN)/ordisco run

test: $(READY)            ## all tests
	$(PYTEST)

quick: $(READY)           ## the tests that take no time, while you work
	$(PYTEST) -m 'not slow'

# A processor without AVX-512, bf16 and AMX, as far as torch and oneDNN can be told so; what depends on it would show here.
OTHER_CPU := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=AVX2
OTHER_CPU_TESTS := tests/runs/test_precision.py tests/learner/test_step.py tests/learner/test_learner.py tests/runs/test_resume.py \
	--deselect tests/runs/test_resume.py::test_a_run_killed_again_and_again_is_the_run_never_interrupted

other-cpu: $(READY)       ## a quick part of the tests, as on another processor
	$(OTHER_CPU) $(PYTEST) $(OTHER_CPU_TESTS)

fuzz: $(READY)            ## wrong input at random for 20 minutes, or MINUTES=…, from SEED=…
	$(BIN)/python tests/fuzz.py --minutes $(or $(MINUTES),20) --seed $(or $(SEED),0)

lint: $(READY)            ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)           ## measured speed
	$(BIN)/ordisco bench

docs: $(VENV)/.docs       ## the API page, from the docstrings, into build/docs/
	rm -rf build/docs
	$(BIN)/python -W error tools/api_page.py build/docs

dist: $(READY)            ## wheel and source archive, into dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation

setup: $(READY)

extras: $(VENV)/.extras   ## the label page, ONNX, Ray and Slurm, and what their tests need; without them these are skipped

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

$(VENV)/.docs: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	@touch $@

$(VENV)/.extras: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[extras]"
	@touch $@

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
