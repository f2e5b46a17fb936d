# Every target makes what it needs: an environment in .venv, and models where tests or benchmarks use them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# models for tests and benchmarks live in the checkout, not in the user's own folders
MODELS := $(CURDIR)/.models
PULL   := PACELINE_HOME=$(MODELS) $(BIN)/paceline models pull
TINY   := $(MODELS)/data/models/smollm2-135m-q4_1.gguf
TARGET := $(MODELS)/data/models/qwen2.5-coder-1.5b-q4_k_m.gguf
DRAFT  := $(MODELS)/data/models/qwen2.5-coder-0.5b-q4_k_m.gguf
BENCHES := $(filter-out %/common.py %/prompts.py %/against_llamacpp.py %/pictures.py %/window_toy.py %/terminal.py %/replay.py %/q4_0_target.py,$(wildcard tests/bench/*.py))
TEST_ENV := PACELINE_TEST_TINY=$(TINY) PACELINE_TEST_TARGET=$(TARGET) PACELINE_TEST_DRAFT=$(DRAFT)

.PHONY: chat demo test test-pair check format snapshots screenshots bench clean

chat: $(VENV)/.installed            ## install, then open the chat
	$(BIN)/paceline

demo: $(VENV)/.installed            ## the same window on a scripted model
	$(BIN)/paceline --demo

test: $(VENV)/.installed-dev $(TINY)    ## all tests that need no download over 100 MB
	$(TEST_ENV) $(BIN)/pytest -q -m "not pair"

test-pair: $(VENV)/.installed-dev $(TINY) $(TARGET) $(DRAFT)    ## tests on the coder pair (1.6 GB)
	$(TEST_ENV) $(BIN)/pytest -q -m pair

check: $(VENV)/.installed-dev       ## format, lint, types, imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev      ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

snapshots: $(VENV)/.installed-dev   ## take the pictures of the window anew
	$(BIN)/pytest -q tests/app -k snapshot --snapshot-update

screenshots: $(VENV)/.installed-dev $(TARGET) $(DRAFT)    ## pictures and recording in assets/, from a real run of the coder pair
	$(TEST_ENV) $(BIN)/python tests/bench/pictures.py

bench: $(VENV)/.installed-dev $(TINY) $(TARGET) $(DRAFT)    ## the figures of BENCHMARKS.md that a script makes; hours on two cores
	PACELINE_HOME=$(MODELS) $(BIN)/paceline bench --pair coder
	for script in $(BENCHES); do echo "== $$script"; $(TEST_ENV) $(BIN)/python $$script || exit 1; done

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,torch]'
	touch $@ $(VENV)/.installed

$(TINY): | $(VENV)/.installed-dev
	$(PULL) tiny

$(TARGET) $(DRAFT): | $(VENV)/.installed-dev
	$(PULL) coder

clean:                              ## forget the environment (models stay)
	rm -rf $(VENV) build dist *.egg-info
