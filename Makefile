# Two commands for a stranger: `make demo` shows what the library does, `make test` shows that it works.
# Both need only python3 (>= 3.11) with venv and pip, and may be run again and again.
PYTHON ?= python3
TORCH ?= torch
BIN := .venv/bin
# One thread per test process: the processes already fill the cores.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup

# What is slow by its nature (Spark, browsers, clusters that lose workers) is left to `make test-all`, and to CI, which
# says `make test ONLY=`. tests/conftest.py lists it.
ONLY ?= -m "not slow"

.PHONY: demo test test-all fuzz checks lowest lint types docs package released clean

demo: .venv/.demo
	$(BIN)/python -m selfpaced fit --out demo
	@echo "To type selfpaced instead of $(BIN)/selfpaced: . $(BIN)/activate"

test: .venv/.test
	$(PYTEST) $(ONLY)

# With PyTorch and its frameworks: first `make test`, then the slow tests, then arrays of other libraries.
test-all: .venv/.test
	$(BIN)/python -m pip install --quiet "$(TORCH)" skorch lightning transformers accelerate
	$(MAKE) test
	$(PYTEST) -m slow
	SCIPY_ARRAY_API=1 SELFPACED_CHECKS=few $(PYTEST) -m slow tests/test_estimator_checks.py

# 10,000 odd inputs; ./tests/fuzz says what may come of them.
fuzz: .venv/.test
	cd tests && OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ../$(BIN)/python -m fuzz

# scikit-learn's checks for every rule and every pace with every estimator, also with arrays of other libraries.
checks: .venv/.test
	SELFPACED_CHECKS=all $(PYTEST) tests/test_estimator_checks.py
	SCIPY_ARRAY_API=1 $(PYTEST) tests/test_estimator_checks.py

lowest:
	PYTHON=$(PYTHON) .ci/lowest

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: .venv/.test
	$(BIN)/mypy

# The theme warns of another MkDocs than the one that is installed; CONTRIBUTING.md says what follows.
docs: .venv/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "documentation: site/index.html"

# The tag, the version, the changelog and CITATION.cff must agree before a release.
released: .venv/.test
	$(BIN)/python .ci/released.py "$(TAG)"

package: .venv/.test
	$(BIN)/python .ci/package.py dist

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("selfpaced needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv

.venv/.demo: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[cli,plot,report,io]"
	touch $@

.venv/.test: pyproject.toml experiments/pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[test,docs]" --editable experiments
	touch $@ .venv/.demo

clean:
	rm -rf .venv .venv-lowest demo dist site
