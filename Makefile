# The one interface to this project. It needs GNU make, Python 3.11 or newer and Node 18 or newer, and
# installs the rest into .venv and devhost/node_modules.

PYTHON ?= python3
PORT ?= 7071
# Of the storage emulator, where others than 10000,10001,10002 are wanted.
STORAGE_PORTS ?=
# Processes that tests run in, each with an Azurite of its own; they wait a lot, so more than a small machine has cores.
WORKERS ?= 3
# How often tests are repeated; every other time beside a process that keeps a core busy.
ROUNDS ?= 200

PY := .venv/bin/python
# A stamp is touched when all of its part is installed, so an interrupted install leaves none.
VENV := .venv/.installed
NODE := devhost/node_modules/.installed

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test lint bench soak repeat repeat-servers clean check

help: ## list what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

run: check $(VENV) $(NODE) ## run the app on this machine with its storage: make run PORT=7071
	@exec $(PY) -m devhost --port $(PORT) $(if $(STORAGE_PORTS),--azurite-ports $(STORAGE_PORTS))

test: lint $(NODE) ## lint, types and every test but the long ones
	$(PY) -m pytest -m "not soak" -n $(WORKERS) --dist loadfile --no-loadscope-reorder

lint: check $(VENV) ## style, format and types only
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

bench: check $(VENV) $(NODE) ## run every tests/bench/*_bench.py; make bench QUICK=1 with small sizes
	@set -e; for file in $(sort $(wildcard tests/bench/*_bench.py)); do \
	  module=tests.bench.$$(basename $$file .py); echo "== $$module"; $(PY) -m $$module $(if $(QUICK),--quick); \
	done

soak: check $(VENV) $(NODE) ## the long tests
	$(PY) -m pytest -m soak

repeat: check $(VENV) $(NODE) ## `make test` again and again, up to the first failure: make repeat ROUNDS=200
	@$(PY) -m tests.repeat $(ROUNDS) $(MAKE) --no-print-directory test

repeat-servers: check $(VENV) $(NODE) ## likewise the short tests that start servers of their own
	@$(PY) -m tests.repeat $(ROUNDS) $(PY) -m pytest -m "servers and not soak" -n $(WORKERS)

clean: ## remove what make has made here: installed parts, caches, and the stored jobs of `make run`
	rm -rf .venv devhost/node_modules .azurite .repeat .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

check:
	$(eval MISSING := $(shell sh devhost/prerequisites.sh $(PYTHON)))
	@$(if $(MISSING),$(error $(MISSING)),:)

$(VENV): requirements.txt requirements-dev.txt
	@$(PY) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

$(NODE): devhost/package.json devhost/package-lock.json
	npm ci --prefix devhost --no-audit --no-fund
	@touch $@
