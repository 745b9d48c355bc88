# make demo and make test need nothing but make and Python: both set up .venv first, see tools/set_up.py.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PYTEST := $(RUN) -m pytest -n logical
# What programs and browsers do depends on how busy the computer is, so their tests run apart from the others. One of
# these that fails is run once more by itself; it fails the gate if it fails again.
ALONE := --max-worker-restart 4 -o cache_dir=.pytest_cache/alone
AGAIN := $(RUN) -m pytest -o cache_dir=.pytest_cache/alone --last-failed --last-failed-no-failures none
SETUP := $(PYTHON) tools/set_up.py viewer collision pictures scipy ros-wheels
# Before the tests: two workers would both wait for it.
COMPILE := $(RUN) -m ik_node.kernels.build

# A sourced ROS, another active environment or a personal pip setting must not leak into .venv.
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV LD_LIBRARY_PATH AMENT_PREFIX_PATH COLCON_PREFIX_PATH
unexport RMW_IMPLEMENTATION ROS_DISTRO _ROS_WHEELS_BOOTSTRAP_COMPLETE PIP_TARGET PIP_PREFIX
unexport PYTHONDONTWRITEBYTECODE
export PIP_USER := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo arm test kernels in-process processes browser nightly near quick check coverage bench compare docs faults newest sanitize soak wheel clean
.PHONY: venv venv-arm venv-test set-up-coverage set-up-newest
.DEFAULT_GOAL := help

# The options of ik_demo are variables of the command line of make: DESCRIPTION_FILE=two_arms is --description-file two_arms.
OPTIONS := DESCRIPTION_FILE BASE_LINK TIP_LINK TOOL_AXIS TOOL_POINT PARAMS_FILE PAGE_PORT SIM SERIAL_PORT PROFILE TORQUE
OPTIONS += LEADER LEADER_PROFILE LEADER_DESCRIPTION
OPTIONS += HOST MESH_PATH SHADOWS TORQUE_LIMIT ON_EXIT CALIBRATION ZERO_FROM ZEROS SPEED_SCALING TRACK TRACK_CENTRE TRACK_SIZE
given = $(if $(filter command,$(firstword $(origin $1))),$($1))
options = $(foreach name,$(OPTIONS),$(if $(call given,$(name)),$(shell echo --$(name) | tr A-Z_ a-z-)='$($(name))'))

# Variables of earlier versions: ignored, they would start something else. $(call renamed,goal,old,new)
renamed = $(if $(filter $1,$(MAKECMDGOALS)),$(if $(call given,$2),$(error $2 is now $3: make $1 $3=$($2))))
$(call renamed,demo,PORT,PAGE_PORT)
$(call renamed,demo,ARM,DESCRIPTION_FILE)
$(call renamed,demo,TRACKS,TRACK)
$(call renamed,arm,PORT,SERIAL_PORT)
$(call renamed,arm,PAGE,PAGE_PORT)
$(call renamed,arm,ARM,DESCRIPTION_FILE)
$(call renamed,arm,SPEED,SPEED_SCALING)
# Values of earlier versions.
ifneq ($(filter 1 yes true on,$(call given,SIM)),)
  $(if $(filter demo,$(MAKECMDGOALS)),$(error SIM=$(SIM) is now SIM=mujoco: make demo SIM=mujoco))
endif

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 16

demo: venv  ## Start an arm, the viewer and a goal on a circle; DESCRIPTION_FILE=two_arms TRACK='line spiral', TELEOP=1: keys, SIM=mujoco, PAGE_PORT=8081, or another option of ik_demo
	@$(VENV)/bin/ik_demo $(options) $(if $(TELEOP),--teleop)

arm: venv-arm  ## Drive a real arm with its viewer: SERIAL_PORT=/dev/ttyACM0 or emulated, PROFILE=so100, DESCRIPTION_FILE=my.urdf, SPEED_SCALING=0.5, TORQUE_LIMIT=0.5, ON_EXIT=release, LEADER=/dev/ttyACM1: an arm that leads it, or another option of ik_demo
	@$(VENV)/bin/ik_demo --serial-port auto --speed-scaling 0.2 $(options)

# What takes one core each goes on at the same time.
test:  ## The whole gate, as CI runs it: documentation, every check, and every test but those of make nightly
	@$(SETUP) many proofs servos sim test docs
	@$(COMPILE)
	@$(MAKE) --no-print-directory -j 2 --output-sync=target browser docs check
	@$(MAKE) --no-print-directory in-process processes

newest: set-up-newest in-process processes browser  ## Every test with the newest versions of all packages that setup.py allows
	@$(RUN) -m pytest -q campaigns/test_private_entries.py

kernels:
	@$(COMPILE)

in-process: kernels  ## The tests that start neither programs nor a browser
	@$(PYTEST) --max-worker-restart 0 -m 'not process and not browser and not nightly'

processes:  ## The tests that start programs
	@$(PYTEST) $(ALONE) test/process || { [ $$? -eq 1 ] && $(AGAIN) test/process; }

browser:  ## The tests in a browser
	@$(RUN) -m pytest $(ALONE) test/browser || { [ $$? -eq 1 ] && $(AGAIN) test/browser; }

nightly: check  ## Run all campaigns one after the other, hours; NIGHTLY='slow faults' for some
	@$(COMPILE)
	@$(RUN) -m campaigns $(NIGHTLY)

# Exit code 5: none of these tests is quick.
near: venv-test  ## Run the quick tests of the folders that a change touches; SINCE=main for all commits since then
	@tests=$$($(RUN) tools/near.py $(or $(SINCE),HEAD)) && { [ -z "$$tests" ] || \
		$(RUN) -m pytest -q -m 'not slow and not nightly and not process and not browser' $$tests || [ $$? -eq 5 ]; }

quick: venv-test  ## Lint, and run the tests that need neither ROS nor a browser nor much time
	@$(RUN) -m ruff check
	@$(COMPILE)
	@$(PYTEST) -q -m 'not slow and not nightly' $(addprefix test/, model cli package control batch teach servos sim)

check: venv-test  ## Lint, formatting, types and who may import whom
	@$(RUN) -m ruff check
	@$(RUN) -m ruff format --check
	@$(RUN) -m mypy
	@$(VENV)/bin/lint-imports --no-logo

coverage: set-up-coverage kernels  ## Measure which lines the in-process tests run; compiled kernels do not count. Report in htmlcov/
	@$(PYTEST) --max-worker-restart 0 -q -m 'not process and not browser and not nightly' --cov=ik_node --cov-report=html --cov-report=term:skip-covered

bench: venv-test  ## Measure the solver beside its peers; BENCH='success --scale 0.1' for a part of it
	@$(RUN) -m benchmarks.bench $(BENCH)

docs:  ## Build the documentation in docs/_build/html; warnings are errors
	@$(SETUP) many proofs servos sim test docs
	@$(RUN) -m sphinx -q -aE -W --keep-going -b html docs docs/_build/html
	@echo 'file://$(CURDIR)/docs/_build/html/index.html'

compare: venv-test  ## Measure the local methods side by side, and rewrite docs/explanation/methods.md and its plots
	@$(RUN) -m benchmarks.compare $(COMPARE)

faults: venv-test  ## 1,000 runs of the node with faults by chance, and a judge; FAULTS='--runs 50 --seed 7' for a part
	@$(COMPILE)
	@$(RUN) -m campaigns.faults $(FAULTS)

sanitize: venv-test  ## Compare all kernels with plain Python while sanitizers watch; SANITIZE='--odd 20 forward' for a part
	@$(RUN) -m campaigns.kernels --sanitize $(SANITIZE)

soak: venv-test  ## 30 minutes of goals at 100 Hz: memory, latency, jitter; SOAK='--minutes 2' for less
	@$(COMPILE)
	@$(RUN) -m benchmarks.soak $(SOAK)

wheel: venv  ## Build a wheel in dist/, with compiled kernels for x86-64 and aarch64
	@$(RUN) tools/wheel.py

clean:  ## Remove .venv and everything that was built
	rm -rf $(VENV) .venv-bench build dist htmlcov .coverage install log *.egg-info .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

venv:
	@$(SETUP) $(if $(SIM),sim)

venv-arm:
	@$(SETUP) servos

venv-test:
	@$(SETUP) many proofs servos sim test

set-up-coverage:
	@$(SETUP) many proofs servos sim test coverage

set-up-newest:
	@$(SETUP) --newest many proofs servos sim test
