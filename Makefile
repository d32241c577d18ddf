# From a clone to a running model: `make demo`. From a clone to a tested one: `make test`.
# Needs Python 3.11 or newer with pip, and nothing else; everything goes into .venv and .models.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
STAMP := $(VENV)/.ort-lite
MODELS := tests/model_set/fetch.py
LINTERS := mypy ruff mypy-windows imports

.PHONY: demo test lint $(LINTERS) models docs bench fuzz soak races exits old-cases oclgrind windows packages release-check clean

demo: $(STAMP)
	$(RUN)/python examples/demo.py

# mypy takes as long as the other linters and the models together. Tests wait for processes that they
# start, so three at a time keep two cores busy.
test: $(STAMP)
	$(MAKE) --jobs 2 $(LINTERS) models
	$(RUN)/pytest -n 3 --durations 10

lint: $(STAMP)
	$(MAKE) --jobs 2 $(LINTERS)

ruff: $(STAMP)
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .

mypy: $(STAMP)
	$(RUN)/mypy

mypy-windows: $(STAMP)
	$(RUN)/mypy --platform win32 --no-warn-unreachable --cache-dir .mypy_cache/win32 -p ort_lite -p eps -p ctx_formats

imports: $(STAMP)
	$(RUN)/lint-imports
	$(RUN)/python tests/unit/repo/test_import_cycles.py
	$(RUN)/deptry .

models: $(STAMP)
	$(RUN)/python $(MODELS) >/dev/null

# The documentation as a site, in build/site; a broken link is an error.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --quiet --config-file .ci/site/mkdocs.yml

bench: $(STAMP)
	$(RUN)/python $(MODELS) >/dev/null
	$(RUN)/python -m benchmarks.run_all

# The node cases of onnx 1.2 to 1.18, out of 17 wheels (200 MB): two minutes.
old-cases: $(STAMP)
	$(RUN)/python tests/parity/check_old_cases.py

# 20,000 damaged files of each format through sessions: half an hour.
fuzz: $(STAMP)
	$(RUN)/python tests/hostile/fuzz.py

# 200 ends of Python with sessions in each state, for each EP: two hours.
exits: $(STAMP)
	$(RUN)/python tests/endurance/exits.py

# Sessions whose files another process changes, a minute for each form of each EP: 21 minutes.
races: $(STAMP)
	$(RUN)/python tests/races/race.py

# 10,000 sessions opened, run and closed per EP and road, and all roads mixed: an hour.
soak: $(STAMP)
	$(RUN)/python tests/endurance/soak.py --count 10000 --road plain --road context
	$(RUN)/python tests/endurance/soak.py --seconds 600 --road mixed --out soak/mixed

# OpenCL kernels under oclgrind (Debian's package): out of bounds, data races; some minutes.
oclgrind: $(STAMP)
	$(RUN)/python tests/parity/check_oclgrind.py

# The tests with Windows' own Python under Wine (Debian's packages), some hours; `make windows
# SLICES="formats crossing"` runs some of them. 2 GB go into build/windows.
windows: $(STAMP)
	$(RUN)/python tests/windows/check_windows.py $(SLICES)

# 16 packages of PyPI that use onnxruntime, with ort_lite in its place (0.6 GB): half an hour.
packages: $(STAMP)
	$(RUN)/python tests/packages/check_packages.py

# Wheel and sdist: built, checked, and each tried out in an environment of its own; two minutes.
release-check:
	$(PYTHON) .ci/check_release.py

# Some systems' venv module has no pip to put into the environment; pip itself then does it.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed; try: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(RUN)/pip || $(PYTHON) -m venv $(VENV) || \
	  { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	    $(PYTHON) -m pip --python $(RUN)/python install --quiet pip; }
	$(RUN)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[openvino,opencl,opencl-intel,image,sign,cli,fleet,docs,test]'
	@touch $@

clean:
	rm -rf $(VENV) .models .demo build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
