# Thin names for real commands: each target is a line you could type yourself.
# Variables: TASK= WORK= AGENT= PROVIDER= RUN= ARGS=
SHELL := /bin/sh
BIN := .venv/bin
WORK ?= work
AGENT ?= pi
PROVIDER ?= rehearsal
PYTEST := $(BIN)/python -m pytest
AT_ONCE := -n auto --dist worksteal
# as they were typed: a $ or a quote in a task means nothing to make or the shell
override TASK := $(value TASK)
override WORK := $(value WORK)
export TASK WORK
NEEDS_TASK = [ -n "$$TASK" ] || { echo "give a task: make $@ TASK='look at every file here'" >&2; exit 2; }

.DEFAULT_GOAL := help
.PHONY: help env sync lock engine up demo test test-fast test-engine test-browser test-slow test-live test-agents qa bench \
	image image-rebuild run run-sealed shell images \
	system-status system-start system-stop ps logs stop clean distclean destroy

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: ## make .venv with everything pinned in it (nothing to do: 0.1 s)
	@scripts/env

sync: ## make .venv again from the lock files
	@scripts/env --again

lock: env ## resolve the dependencies anew into the lock files
	@scripts/lock

engine: ## bring up a container engine and base images where there are none
	@scripts/engine-up

up: env ## the site and its worker, at http://127.0.0.1:8000 (ARGS="--port 8080")
	@$(BIN)/sanduk up $(ARGS)

demo: env engine ## one sealed run of a real agent: no key, no account, no network
	@$(BIN)/sanduk demo

test: env ## everything the tests need, then all tests
	@scripts/engine-up --podman
	@scripts/postgres-up >/dev/null || echo "the tests on PostgreSQL will be skipped" >&2
	@scripts/browser-up || echo "the tests in a browser will be skipped" >&2
	@# each part is tried, whatever came of the other; those with an engine are one at a time
	@failed=0; set -x; \
	$(PYTEST) $(AT_ONCE) -m "not engine and not browser and not live" || failed=1; \
	$(PYTEST) -m "(engine or browser) and not live" || failed=1; \
	exit $$failed

test-fast: env ## the tests that need no engine, no key and no network
	$(PYTEST) $(AT_ONCE) -m "not engine and not browser and not live"

test-engine: env ## the tests that need a container engine
	@scripts/engine-up --podman
	$(PYTEST) -m "engine and not live"

test-browser: env ## the tests that drive the site in a Chromium
	@scripts/engine-up
	@scripts/browser-up
	$(PYTEST) -m "browser and not live"

test-slow: env ## assistants on their worker for half an hour and an hour of a steered clock
	@scripts/engine-up
	SANDUK_TEST_MINUTES=30 SANDUK_TEST_STEPS=60 $(PYTEST) \
		tests/engine/test_assistant_for_minutes.py tests/engine/test_steered_hour.py

test-live: env ## the tests that ask real models; each says which variable it waits for
	$(PYTEST) -m live tests/live

test-agents: env engine ## one paid run per agent, each under a budget; says which key it waits for
	AGENT_LIVE=1 $(PYTEST) -m agents tests/live

qa: env ## format, lint, types, import contracts, migrations
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy relay recipes runs assistants changes sanduk_site
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run

bench: env engine ## print speed ratios, each beside its baseline; ARGS="relay --quick" for less
	$(BIN)/python -m tests.bench $(ARGS)

image: env ## build AGENT's image unless it is there
	$(BIN)/sanduk build --agent $(AGENT)

image-rebuild: env ## build AGENT's image even if it is there
	$(BIN)/sanduk build --agent $(AGENT) --force

run: env ## run AGENT on TASK in WORK, in the default mode
	@$(NEEDS_TASK)
	@$(BIN)/sanduk run --agent $(AGENT) --provider $(PROVIDER) -w "$$WORK" $(ARGS) -- "$$TASK"

run-sealed: env ## the same, sealed whatever the default is
	@$(NEEDS_TASK)
	@$(BIN)/sanduk run --mode sealed --agent $(AGENT) --provider $(PROVIDER) -w "$$WORK" $(ARGS) -- "$$TASK"

shell: env ## a shell in AGENT's box, on WORK
	@$(BIN)/sanduk shell --agent $(AGENT) --provider $(PROVIDER) -w "$$WORK" $(ARGS)

images: env ## the images built here (ARGS=prune removes what no run will ask for)
	@$(BIN)/sanduk images $(ARGS)

system-status: env ## whether the engine, the state directory and the site are well
	@$(BIN)/sanduk system status $(ARGS)

system-start: env ## start the engine, or say which command does
	@$(BIN)/sanduk system start $(ARGS)

system-stop: env ## stop the engine, or say which command does
	@$(BIN)/sanduk system stop $(ARGS)

ps: env ## containers of this installation
	@$(BIN)/sanduk ps

logs: env ## follow the newest live run, or print the last one's trace (RUN=, ARGS=--calls)
	@$(BIN)/sanduk logs --follow $(ARGS) $(RUN)

stop: env ## stop what belongs to no live run
	@$(BIN)/sanduk stop

clean: env ## remove leftover and kept containers; work and logs stay
	@$(BIN)/sanduk clean

distclean: ## clean, then remove .venv and every cache of the tools
	@[ ! -x $(BIN)/sanduk ] || $(BIN)/sanduk clean || true
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

destroy: env ## remove all that was made here, images too; the records after a typed word
	@$(BIN)/sanduk destroy $(ARGS)
