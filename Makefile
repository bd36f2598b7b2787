# All targets run in $(VENV), created by the first target that needs it; `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
RUN_EXTRAS := ros,viewer
TEST_EXTRAS := $(RUN_EXTRAS),record,plot,test
# These tests measure motion in real time, so that they run one per core.
REAL_TIME := test/hardware/test_driver_processes.py $(foreach name,hardware_lines capabilities \
	excitation_node follow_joint_trajectory gripper_hardware hostile safety hardware hardware_log \
	states, test/ros/test_$(name).py)
IGNORE_REAL_TIME := $(addprefix --ignore=,$(REAL_TIME))
# These tests of nodes and commands take long: `make test` leaves them to test-all.
LONG := $(foreach name,parameters rviz rviz_controls sim_page streams task_space,\
	test/ros/test_$(name).py) test/viewer/test_viewer.py test/cli/test_hardware_cli.py
IGNORE_LONG := $(addprefix --ignore=,$(LONG))
# There are more processes than cores, because nodes wait for each other. The tests of a file run in
# one process, which starts their nodes once. Further threads of BLAS would compete for the cores.
JOBS ?= 3
PYTEST = env -u PYTHONDONTWRITEBYTECODE OPENBLAS_NUM_THREADS=1 \
	$(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

# A machine that stands still for 0.25 s interrupts a motion, as it must, and fails its test. A test
# that fails twice fails.
REPEAT := --last-failed --last-failed-no-failures none

# The wheels are a complete ROS 2: variables of another installation must not reach them.
ISOLATED := env -u PYTHONPATH -u PYTHONHOME -u _ROS_WHEELS_BOOTSTRAP_COMPLETE
ifneq ($(ROS_DISTRO)$(AMENT_PREFIX_PATH),)
ISOLATED += -u AMENT_PREFIX_PATH -u COLCON_PREFIX_PATH -u CMAKE_PREFIX_PATH -u LD_LIBRARY_PATH \
	-u ROS_DISTRO -u ROS_VERSION -u ROS_PYTHON_VERSION -u RMW_IMPLEMENTATION
endif
BIN := $(ISOLATED) $(VENV)/bin
SETUP := $(ISOLATED) $(PYTHON) scripts/setup_env.py --venv $(VENV) --extras

.DEFAULT_GOAL := help
.PHONY: help setup setup-test sim test test-all lint docs bench urdf gallery clean

help: ## list the targets
	@echo "make <target> [ARGS=...] [PYTHON=python3.12] [VENV=.venv]"; echo
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  %-10s %s\n", $$1, $$2}'

setup: ## create the environment: package, ROS 2 and Pinocchio from wheels, ROS interfaces, compiled code
	@$(SETUP) $(RUN_EXTRAS)
	@$(BIN)/python interfaces/build.py --optional
	@$(BIN)/arm-dynamics compile

setup-test: ## create the environment of the tests, the demonstrations and all commands
	@$(SETUP) $(TEST_EXTRAS)

sim: ## simulate the five_dof arm; ARGS="--duration 10 --headless"; stop with Ctrl-C
	@$(PYTHON) scripts/sourced_ros.py
	@$(SETUP) $(RUN_EXTRAS)
	@$(BIN)/python scripts/foreground.py $(VENV)/bin/arm-dynamics sim $(ARGS)

test: setup-test ## run the quick tests, three at a time; ARGS="-k motor" selects among all tests
	@$(BIN)/python interfaces/build.py
ifeq ($(strip $(ARGS)),)
	@$(PYTEST) -n $(JOBS) --hypothesis-profile quick -m "not slow and not figures" \
		$(IGNORE_REAL_TIME) $(IGNORE_LONG)
else
	@$(BIN)/python -m pytest $(ARGS)
endif

test-all: setup-test ## run all tests, also the slow ones, figures and fault tables
	@$(BIN)/python interfaces/build.py
	@code=0; $(PYTEST) --cache-clear -n $(JOBS) --durations=25 $(IGNORE_REAL_TIME) || code=$$?; \
		[ $$code -le 1 ] || exit $$code; \
		$(PYTEST) -n 2 --durations=25 $(REAL_TIME) || code=$$?; \
		[ $$code -eq 1 ] || exit $$code; \
		echo "failed tests, repeated once, one at a time:"; $(PYTEST) -x -v $(REPEAT)

lint: setup-test ## run ruff, mypy, the layer contracts and the prose lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/prose_lint.py

bench: ## run all benchmarks, or those of ARGS="step planning", and write the tables of the pages
	@$(SETUP) $(RUN_EXTRAS),hardware,bench
	@$(BIN)/python benchmarks/write_tables.py $(ARGS)

urdf: setup-test ## write the URDFs of the bundled arms again from their tables
	@for arm in five_dof four_joint puma560 seven_dof_can so101 three_link two_link; do \
		$(BIN)/python -m tools.urdf.$$arm > urdf/$$arm.urdf || exit 1; done
	@for arm in five_dof puma560; do \
		$(BIN)/python -m tools.urdf.parallel_gripper $$arm > urdf/$${arm}_gripper.urdf || exit 1; done
	@$(BIN)/python -m tools.urdf.two_link pb > urdf/two_link_pb.urdf

docs: ## build the documentation site: build/docs/index.html
	@$(SETUP) $(TEST_EXTRAS),docs
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs $(ARGS)
	@echo "the documentation is build/docs/index.html"

gallery: setup-test ## draw all pictures of docs/gallery.md
	@$(BIN)/python docs/gallery.py

clean: ## remove the environment and everything built
	rm -rf $(VENV) build install log dist *.egg-info .pytest_cache .mypy_cache .ruff_cache \
		.import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
