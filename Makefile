# Needs Python >= 3.11, a C++ compiler, make and perl; everything else comes with `make setup`.
PYTHON ?= python3
BOARD ?= ulx3s-25f
SEEDS ?=
ROUTE ?=
BENCH ?=
WAVES ?=
PDK ?= gscl45
TARGET ?= 1x8x8
NETWORK ?=
BLOCK ?= element-lns5

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete

# Long commands tell what they do at once, into a pipe as well.
export PYTHONUNBUFFERED := 1

.PHONY: setup demo test thorough sim formal bitstream asic layout bench random fuzz price-list docs check clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Slipstick needs Python 3.11 or newer, not %d.%d" % sys.version_info[:2])'
	@echo "installing what requirements.lock names into $(VENV): some minutes the first time"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Compiles the handwritten-digits network, runs it on the compiled RTL, and draws what it saw.
demo: setup
	$(BIN)/python -m slipstick.examples.demo

TESTS := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal --quiet --durations=25 --durations-min=15

# What guards the project; the last lines are the slowest tests, and pytest's summary.
test: check
	$(TESTS) -m "not thorough"

# The same with more sizes of hardware, more proofs and more deliberate mistakes.
thorough: check
	$(TESTS)

# Every cocotb bench; BENCH=name runs one, WAVES=name writes build/waves/name.fst as well.
sim: setup
	$(BIN)/python -m slipstick_sim.benches $(BENCH) $(if $(WAVES),--waves $(WAVES))

# Every proof, with its time; docs/explanation/formal.md says what they show.
formal: setup
	$(BIN)/python -m pytest tests/formal --verbose --durations=0 --durations-min=1

# The bitstream of a board; SEEDS=n places and routes with n seeds and keeps the fastest;
# with ROUTE=m too it routes only the m placements that look fastest.
bitstream: setup
	$(BIN)/python -m slipstick build --target $(BOARD) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(ROUTE),--route $(ROUTE))

# A core in standard cells: area by block and clock, and with NETWORK=file.tflite the energy of an
# inference; PDK=gscl45, osu018 or a liberty file.
asic: setup
	$(BIN)/python -m slipstick asic --pdk $(PDK) --target $(TARGET) $(if $(NETWORK),--network $(NETWORK))

# The layout of a block as GDS, with its checks and a picture; PDK=osu018, osu035 or osu050,
# BLOCK=lns-unit and others. It needs Debian's packages, see docs/how-to/layout.md.
layout: setup
	$(BIN)/python -m slipstick layout $(BLOCK) --pdk $(if $(filter osu%,$(PDK)),$(PDK),osu018)

# Every figure of docs/reference/figures.md but clocks and areas, which are those of `make bitstream`; an hour or two.
bench: setup
	$(BIN)/python -m slipstick.benchmarks
	$(BIN)/python -m slipstick.benchmarks.speed
	$(BIN)/python -m slipstick.benchmarks.large
	$(BIN)/python -m slipstick.benchmarks.wire
	$(BIN)/python -m slipstick.benchmarks.end_to_end
	$(BIN)/python -m slipstick.benchmarks.dram
	$(BIN)/python -m slipstick.benchmarks.training_step
	$(BIN)/python -m slipstick.benchmarks.cluster
	$(BIN)/python -m slipstick.benchmarks.stages
	$(BIN)/python -m slipstick.benchmarks.server
	$(BIN)/python -m slipstick.benchmarks.faults
	$(BIN)/python -m slipstick.benchmarks.scalesim
	$(BIN)/python -m slipstick.benchmarks.scaling

# Random networks on nine kinds of hardware, against their references; some hours.
random: setup
	$(BIN)/python -m slipstick.verify.random_networks

# A million damaged files over all parsers; some hours.
fuzz: setup
	$(BIN)/python -m slipstick.verify.fuzz --files 1000000 --json reports/fuzz.json

# What each number format costs and gives: measures what the report lacks (hours from nothing),
# then writes the table and the picture.
price-list: setup
	$(BIN)/python -m slipstick study price-list --missing --markdown docs/reference/price-list.md --plot docs/images/price-list.png

# The site, in build/docs; a broken link ends the build. Three pages are written from the code first.
docs: setup
	$(BIN)/python tools/generate_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/pyright

clean:
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
