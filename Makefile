# make demo and make test work on a fresh clone; everything they install stays in .venv and .agent.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
ARGS ?=

# The real Hermes Agent, in an environment of its own because it pins its dependencies.
export AFRESH_TEST_HERMES ?= $(CURDIR)/.agent/bin/hermes
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHON

.PHONY: help demo test test-operations faults bench fidelity check check-static format install pins clean

help:
	@echo "make demo          renew a worker before your eyes"
	@echo "make test          run the tests (ARGS=tests/lifecycle for some of them)"
	@echo "make test-operations  the tests that need PostgreSQL and Chromium: several hosts, the Prefect UI, the page, the HTTP API"
	@echo "make faults        play the whole matrix of faults and write build/faults.json (ARGS=\"--only hermes --jobs 1\")"
	@echo "make fidelity      measure what crosses a renewal and write build/fidelity.json (ARGS=\"--size 20000\")"
	@echo "make bench         measure speed beside what it is held against and write build/bench.json (ARGS=\"--only readings scan\")"
	@echo "make check         formatting, lint, types, import contracts, tests"
	@echo "make check-static  the same without the tests"
	@echo "make format        format the code and mend what the linter can"
	@echo "make install       install into .venv and say how to put afresh on the PATH"
	@echo "make pins          write constraints*.txt anew (UPGRADE=--upgrade for newer releases)"
	@echo "make clean         remove everything that make made"

demo: .venv/installed .agent/installed
	@$(BIN)/afresh demo $(ARGS)

test: .venv/installed .agent/installed
	@$(BIN)/pytest -q -n 3 --dist loadfile $(ARGS)

test-operations: .venv/installed .agent/installed
	@.ci/needs chromium postgres $$([ "$$(id -u)" -ne 0 ] || echo ip)
	@$(BIN)/pytest -q -n 2 --dist loadfile -m operations $(ARGS)

faults: .venv/installed .agent/installed
	@$(BIN)/python -m tests.faults $(ARGS)

fidelity: .venv/installed
	@$(BIN)/python -m tests.fidelity $(ARGS)

bench: .venv/installed .agent/installed
	@$(BIN)/python -m tests.bench $(ARGS)

check: check-static test

check-static: .venv/installed
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: .venv/installed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

install: .venv/installed
	@echo "Installed. To call it from anywhere:"
	@echo "  ln -s $(CURDIR)/$(BIN)/afresh ~/.local/bin/afresh"

# The pins are a complete set, so pip checks every file against its hash; a folder has none, hence two steps.
.venv/installed: constraints.txt pyproject.toml
	@.ci/needs tmux venv
	@echo "Installing Afresh into .venv (a minute or two)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --require-hashes -r constraints.txt
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@

.agent/installed: constraints-agent.txt
	@.ci/needs venv
	@echo "Installing the Hermes Agent into .agent (a minute)"
	@$(PYTHON) -m venv .agent
	@.agent/bin/python -m pip install -qq --require-hashes -r constraints-agent.txt
	@touch $@

# uv resolves for every platform at once, which pip cannot. The files name no index.
PIN := build/pins/bin/uv pip compile - -q $(UPGRADE) --universal --python-version 3.11 --generate-hashes \
	--no-annotate --custom-compile-command "make pins"

pins:
	@$(PYTHON) -m venv build/pins
	@build/pins/bin/python -m pip install -qq uv
	@printf 'hatchling\neditables\n' | $(PIN) pyproject.toml --group dev -o constraints.txt >/dev/null
	@printf 'hermes-agent==0.19.0\n' | $(PIN) -o constraints-agent.txt >/dev/null

clean:
	rm -rf .venv .agent build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
