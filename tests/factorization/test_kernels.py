"""Both kernels against a row-by-row solution, and against each other for every rule."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from selfpaced.factorization.engine import Engine, WeightedSolve, from_csr, resolve
from selfpaced.regularizers import REGISTRY, get

NUMPY = Engine(compiled=False)
RULES = [name for name in REGISTRY if name not in ("logarithmic", "channel")]
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="the compiled kernels need numba")
ENGINES = [
    pytest.param(NUMPY, id="numpy"),
    pytest.param(Engine(compiled=True), id="numba", marks=needs_numba),
    pytest.param(Engine(compiled=True, n_threads=2), id="parallel", marks=needs_numba),
]


def row_by_row(X, U, V, weigh, ridge, sample_weight=None):
    """The definition: an independent ridge solve per row, by numpy.linalg.lstsq on stacked equations."""
    out = np.zeros_like(U)
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        A, y = V[X.indices[part]], X.data[part]
        w = weigh(y - A @ U[i])
        w = w if sample_weight is None else w * sample_weight[part]
        root = np.sqrt(w)[:, None]
        stacked = np.vstack([root * A, np.sqrt(ridge) * np.eye(V.shape[1])])
        out[i] = np.linalg.lstsq(stacked, np.concatenate([root[:, 0] * y, np.zeros(V.shape[1])]), rcond=None)[0]
    return out


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weighted", [False, True])
def test_half_step_is_the_exact_solution_of_every_row(csr, factors, engine, weighted):
    U, V = factors
    weights = np.random.default_rng(0).uniform(0.2, 3, csr.nnz) if weighted else None
    step = WeightedSolve(get("welsch"), 1.3, ridge=0.2, eps=0.05)
    expected = row_by_row(csr, U, V, lambda e: np.exp(-abs(e) / 1.3**2) / np.maximum(abs(e), 0.05), 0.2, weights)
    engine.half(from_csr(csr, weights).by_row, U, V, step)
    np.testing.assert_allclose(U, expected, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_quadratic_step_is_trimmed_least_squares(csr, factors, engine):
    U, V = factors
    expected = row_by_row(csr, U, V, lambda e: (e * e < 4.0).astype(float), 0.3)
    engine.half(from_csr(csr).by_row, U, V, WeightedSolve(get("hard"), 4.0, 0.3, quadratic=True))
    np.testing.assert_allclose(U, expected, atol=1e-9)


@needs_numba
@pytest.mark.parametrize("rule", [*RULES, None])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_compiled_equals_numpy_for_every_rule(entries, factors, rule, n_threads):
    step = WeightedSolve(None if rule is None else get(rule), 1.1, ridge=0.1, eps=0.1)
    U, V = (factor.copy() for factor in factors)
    Engine(True, n_threads).sweep(entries, U, V, step)
    W, H = factors
    NUMPY.sweep(entries, W, H, step)
    np.testing.assert_allclose(U, W, atol=1e-8)
    np.testing.assert_allclose(V, H, atol=1e-8)


@needs_numba
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept(csr, factors, dtype):
    U, V = (factor.astype(dtype) for factor in factors)
    W, H = (factor.copy() for factor in factors)
    step = WeightedSolve(get("mixture"), 1.5, 0.1, 0.1)
    Engine(True).sweep(from_csr(csr.astype(dtype)), U, V, step)
    NUMPY.sweep(from_csr(csr), W, H, step)
    assert U.dtype == V.dtype == dtype
    np.testing.assert_allclose(U, W, atol=2e-3 if dtype == np.float32 else 1e-8)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_without_entries_become_zero(engine):
    X = sp.csr_array(np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0]]))
    U = np.ones((3, 1))
    engine.half(from_csr(X).by_row, U, np.ones((2, 1)), WeightedSolve(None, np.inf, 0.1, 0.1))
    assert U[1, 0] == 0
    assert (U[[0, 2], 0] != 0).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_residuals_are_those_of_the_product(csr, entries, factors, engine):
    U, V = factors
    rows = np.repeat(np.arange(100), np.diff(csr.indptr))
    expected = csr.data - (U @ V.T)[rows, csr.indices]
    np.testing.assert_allclose(engine.residuals(entries.by_row, U, V), expected, atol=1e-12)
    np.testing.assert_allclose(engine.sampled_residuals(entries, U, V), expected, atol=1e-12)
    low, high = csr.indptr[20], csr.indptr[30]
    np.testing.assert_allclose(engine.residuals(entries.by_row, U, V, 20, 30), expected[low:high], atol=1e-12)


def test_blocks_cover_all_rows_once(entries):
    ranges = entries.by_row.blocks(500)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 100
    assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))
    assert len(ranges) > 5


@pytest.mark.parametrize("engine", ENGINES)
def test_scales_of_many_entries_come_from_a_sample(csr, factors, engine, monkeypatch):
    from selfpaced.factorization import engine as module

    monkeypatch.setattr(module, "SCALE_ENTRIES", 200)
    few = from_csr(csr)
    rows, columns, values = few.sample
    assert values.size == 200
    np.testing.assert_array_equal(values, csr.toarray()[rows, columns])
    U, V = factors
    expected = values - np.einsum("ij,ij->i", U[rows], V[columns])
    np.testing.assert_allclose(engine.sampled_residuals(few, U, V), expected, atol=1e-12)


def test_without_numba_it_says_once_that_it_is_slower(monkeypatch, caplog):
    from selfpaced.factorization import engine

    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: None)
    engine._say_slower.cache_clear()
    with caplog.at_level("WARNING"):
        assert not resolve("auto", None).compiled
        assert not resolve("auto", None).compiled
    assert [record.message for record in caplog.records if "selfpaced[fast]" in record.message] != []
    assert len(caplog.records) == 1
    engine._say_slower.cache_clear()


def test_importing_neither_imports_numba_nor_compiles():
    code = "import sys, selfpaced.factorization, selfpaced; selfpaced.SelfPacedMF; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
