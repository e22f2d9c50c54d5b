# The commands of this checkout; `make` alone lists them.

PYTHON ?= python3
EMACS ?= emacs
export PYTHON EMACS
# Else each of the thousands of processes that the tests start compiles the program anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test soak test-emacs30 test-api test-model lint bench screenshot setup docs package clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s  %s\n", $$1, $$2 }' Makefile

demo: ## set up what is missing, then run the demo in a batch Emacs
	@.ci/setup demo
	@$(EMACS) -Q --batch -L elisp -l efrit -f efrit-demo-batch

test: ## set up what is missing, then every check and test; ONLY=pattern: the tests so named
ifdef ONLY
	@.ci/setup test
	@.ci/only '$(ONLY)'
else
	@.ci/steps setup style+types+lisp-lint pytest+lisp-tests requirements
endif

soak: ## the random and the long tests at length; SOAK=5: five times as long
	@SOAK=$(SOAK) .ci/steps setup lisp-lint-soak pytest-soak+lisp-soak

test-emacs30: ## the Lisp tests in an Emacs 30, unpacked beside an older one on Debian
	@.ci/setup test
	@newer=$$(.ci/emacs30) && EMACS=$${newer:-$(EMACS)} .ci/steps lisp-tests

test-api: ## a short session against the real API, with ANTHROPIC_API_KEY set; costs a few cents
	@.ci/setup demo
	@$(EMACS) -Q --batch -l tests/elisp/real-api.el

test-model: ## twenty sessions with a small model on this machine, compiled here; half an hour
	@.ci/setup model
	@.venv/bin/python -m tests.servers.model

lint: ## the checks without the tests: ruff, mypy, and the Lisp byte-compiled and linted
	@.ci/steps setup style+types+lisp-lint

bench: ## measure against the references, in one run
	@.ci/setup bench
	@.venv/bin/python -m tests.benchmarks

screenshot: ## picture and record the demo anew, into docs/*.png and docs/demo.svg
	@.ci/setup picture
	@.venv/bin/python -m tests.emacs.screenshot
	@.venv/bin/python -m tests.emacs.recording

setup: ## only set up what is missing for using it: .venv, Emacs, git; compile the Lisp
	@.ci/setup demo

docs: ## the manual for Info, elisp/efrit.info, by makeinfo
	@.ci/setup manual
	@$(PYTHON) .ci/lisp.py manual elisp

package: docs ## the Emacs package, for package-install-file: dist/efrit-VERSION.tar
	@$(PYTHON) .ci/lisp.py package dist

clean: ## remove what the other commands made here
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . \( -name __pycache__ -o -name node_modules \) -prune -exec rm -rf {} +
	find elisp tests \( -name '*.elc' -o -name efrit-autoloads.el \) -exec rm -f {} +
	rm -f elisp/efrit.info elisp/dir
