# Every target sets up what it needs in a virtual environment of the project and
# touches nothing else on the machine. Needs: Python >= 3.11, pip, make.
PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
WORKERS ?= 2
# pysiglib needs torch. The CPU build is enough and far smaller; where its package
# index is known: make bench TORCH="torch==2.15.0 --index-url <index of CPU builds>".
TORCH ?= torch

EXTRAS_test := checkpoint,cli,plots,sklearn,sweep,test,train
EXTRAS_lint := checkpoint,cli,lint,plots,sklearn,sweep,test,train
EXTRAS_docs := cli,docs,plots,sklearn,train
EXTRAS_demo := cli,plots,train

.PHONY: test lint docs links tables demo bench installs format clean

test: $(VENV)/.ready-test
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

lint: $(VENV)/.ready-lint
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/codespell src tests docs examples benchmarks *.md
	$(VENV)/bin/pyright
	$(VENV)/bin/lint-imports

format: $(VENV)/.ready-lint
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs: $(VENV)/.ready-docs
	$(VENV)/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Whether the links to other sites work.
links: $(VENV)/.ready-docs
	$(VENV)/bin/python -m sphinx -q -b linkcheck docs docs/_build/links

tables: $(VENV)/.ready-docs
	$(VENV)/bin/python docs/tables.py

demo: $(VENV)/.ready-demo
	$(VENV)/bin/python -m arborax_experiments.demo $(ARGS)

bench: $(BENCH_VENV)/.ready
	$(BENCH_VENV)/bin/python -m benchmarks $(ARGS)
	$(BENCH_VENV)/bin/python benchmarks/summary.py

# Every extra with the constraints, the lower bounds, the newest releases: each in a
# throw-away environment, with a smoke test. ARGS: some of core, extras, lowest, newest, wheel.
installs:
	PYTHON=$(PYTHON) .ci/installs $(ARGS)

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "arborax needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-%: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable ".[$(EXTRAS_$*)]" --constraint constraints.txt
	@touch $@

# iisignature compiles against the installed NumPy, hence the order of the steps.
$(BENCH_VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet $(TORCH)
	$(BENCH_VENV)/bin/python -m pip install --quiet numpy setuptools wheel --constraint constraints.txt
	$(BENCH_VENV)/bin/python -m pip install --quiet --no-build-isolation iisignature==0.24
	$(BENCH_VENV)/bin/python -m pip install --quiet --editable ".[bench,train]" --constraint constraints.txt
	@touch $@

clean:
	rm -rf $(VENV) $(BENCH_VENV) docs/_build docs/generated build dist
