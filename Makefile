# make demo | demo-gui | test | lint | docs | bench | clean, on a fresh machine with Python 3.11 or
# newer and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/core
BASE := $(VENV)/base
READY := $(VENV)/ready
# Tests of the kernels of devices on the CPU which do not name torch.
EMULATED := $(shell grep -L torch tests/backends/emulated/test_*.py)
CUDA := $(wildcard ecc_core/_backends/cuda/source/*.cu* tests/backends/emulated/*.cuh tests/backends/emulated/*pp)

.DEFAULT_GOAL := help
.PHONY: help demo demo-gui test emulated suite bytecode system kernels lint docs bench clean

help:
	@echo "make demo   curves and figures of example images, in demo-output/"
	@echo "make demo-gui  napari with an image and the dock Threshold"
	@echo "make test   linters and the test suite; names and installs missing system packages"
	@echo "make lint   linters only"
	@echo "make docs   the documentation site, in site/"
	@echo "make bench  times against other libraries, in benchmarks/results/"
	@echo "make clean  remove what the others left, except $(VENV)"

demo: $(BASE)
	$(BIN)/python examples/demo.py

demo-gui: $(READY)
	$(BIN)/python examples/napari_demo.py

# Two jobs at a time keep two cores busy: kernels are compiled, which needs the package only, and emulated,
# which needs few tools, while pip installs the others, and linters run beside the rest. A job that fails
# does not end the others. Tests marked as slow run once a week.
test:
	$(MAKE) --jobs 2 --keep-going lint emulated suite

emulated suite bytecode kernels: export PYTHONDONTWRITEBYTECODE :=
# Threads of OpenMP, of which torch and others start one for each core in each process, would wait for
# each other without sleeping.
emulated suite: export OMP_NUM_THREADS := 1
# Three processes keep two cores busy while some tests wait. Each takes whole files; kernels that one has
# compiled are read by the others from numba's cache.
suite: bytecode kernels
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder -m "not slow" --durations 15 $(EMULATED:%=--ignore=%)

# Two processes, as pip waits for the network and the disk half of the time.
emulated: kernels system
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-xvfb -m "not slow" $(EMULATED)

# All modules that tests import are compiled once; processes of the suite that find no byte code compile
# the same ones at the same time. It is written even where the shell's settings say otherwise. What goes
# wrong here goes wrong in the suite, too, which says it.
bytecode: $(READY) system
	-$(BIN)/python -m pytest --collect-only -q >/dev/null 2>&1

# Kernels that many tests need are compiled once, while pip, which uses one core, installs the rest;
# processes of the suite that begin with an empty cache compile the same ones at the same time.
kernels: $(CORE)
	$(BIN)/ecc warmup

# As root on Debian this installs the system packages that tests need, after naming them.
# It comes after the base, whose environment may need a system package, too.
system: $(BASE)
	sh tools/ensure_system.sh

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(CUDA)
	$(BIN)/mypy
	$(BIN)/lint-imports

# A broken link or an example that fails ends the build.
docs: $(READY)
	rm -rf site docs/api docs/benchmark-figures
	$(BIN)/sphinx-build -W --keep-going -q -b html docs site

bench: $(READY)
	$(BIN)/python benchmarks/cpu.py

clean:
	rm -rf demo-output site docs/gallery docs/api docs/benchmark-figures build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find ecc_core napari_ecc tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

# The environment, in three parts: the package, what the demo and the emulated kernels need, and everything
# else. Each is made once, and again when its requirements change.
$(CORE): pyproject.toml constraints.txt tools/ensure_venv.sh
	@echo "Installing the package into $(VENV), which takes about a minute"
	sh tools/ensure_venv.sh $(PYTHON) $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable .
	touch $@

$(BASE): $(CORE)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt "napari-ecc[io]" --group demo --group emulated
	touch $@

$(READY): $(BASE)
	@echo "Installing the tools of developers into $(VENV), which takes some minutes"
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --group dev
	touch $@
