# make demo and make test need nothing but make and Python with venv: both set up .venv first.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready

# A sourced ROS, another active environment or a personal pip setting must not leak into .venv.
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV LD_LIBRARY_PATH AMENT_PREFIX_PATH COLCON_PREFIX_PATH
unexport RMW_IMPLEMENTATION ROS_DISTRO _ROS_WHEELS_BOOTSTRAP_COMPLETE PIP_TARGET PIP_PREFIX
export PIP_USER := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# An environment whose Python has gone or whose folder was moved is made anew: the stamp holds its place.
ifneq ($(shell [ ! -e $(RUN) ] || $(RUN) -S -c 'print(open("$(READY)").read())' 2>&1),$(CURDIR))
$(shell rm -f $(READY))
endif

.PHONY: help demo test check bench compare clean
.DEFAULT_GOAL := help

help:  ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

demo: $(READY)  ## Start an arm, the browser viewer and a goal that travels along a circle; Ctrl-C ends it
	@$(VENV)/bin/ik_demo

test: check  ## Run every check and every test
	@$(RUN) -m pytest

check: $(READY)  ## Lint, formatting, types and who may import whom
	@$(RUN) -m ruff check
	@$(RUN) -m ruff format --check
	@$(RUN) -m mypy
	@$(VENV)/bin/lint-imports --no-logo

bench: $(READY)  ## Measure the solver beside its peers; BENCH='success --scale 0.1' for a part of it
	@$(RUN) -m benchmarks.bench $(BENCH)

compare: $(READY)  ## Measure the methods of descent side by side, and rewrite docs/methods.md and its plots
	@$(RUN) -m benchmarks.compare $(COMPARE)

clean:  ## Remove .venv and everything that was built
	rm -rf $(VENV) .venv-bench build install log *.egg-info .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# The stamp is taken away first, so that an interrupted set-up starts afresh.
$(READY): setup.py
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' || { \
	    echo "ik_node needs Python 3.10 to 3.14; $(PYTHON) is: $$($(PYTHON) --version 2>&1)." \
	        "Name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$(PYTHON) cannot make virtual environments: sudo apt install $(notdir $(PYTHON))-venv" >&2; exit 1; }
	@[ "$$(uname -sm)" = 'Linux x86_64' ] || { \
	    echo 'PyPI has ROS 2 for x86-64 Linux only. Elsewhere install ROS 2 itself: see README.md.' >&2; exit 1; }
	@if [ -e $@ ]; then rm $@; else \
	    echo 'Setting up .venv from PyPI: once, one to three minutes, 1 GB.'; \
	    $(PYTHON) -m venv --clear $(VENV); fi
	@$(RUN) -m pip install --editable '.[ros-wheels,test]'
	@printf '%s' "$(CURDIR)" > $@
