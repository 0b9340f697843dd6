"""One formula per rule: what the fast loops of the tasks run is the rule's own class, for every rule."""

from __future__ import annotations

import ast
import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import selfpaced
from selfpaced.clustering.cost import Cost
from selfpaced.factorization.engine import Engine, WeightedSolve, compiled_weight
from selfpaced.factorization.entries import from_csr
from selfpaced.linear._loss import Latent
from selfpaced.regularizers import (
    REGISTRY,
    Barron,
    GroupRegularizer,
    MixtureJiang,
    MixtureZhao,
    Regularizer,
    Scaled,
    TruncatedQuadratic,
    from_loss,
    get,
    relative,
)
from selfpaced.regularizers.program import latent_program, record, weight_program
from selfpaced.regularizers.recording import RECORDER, Recorder


@dataclass(frozen=True)
class Charbonnier(Scaled):
    """The rule of CONTRIBUTING: known to nothing but this file."""

    name = "charbonnier"

    def profile(self, xp, z):
        return 2 * (xp.sqrt(1 + z) - 1)

    def slope(self, xp, z):
        return 1 / xp.sqrt(1 + z)


def log_phi(loss, lam):
    return lam**2 * np.log1p(loss / lam**2)


def arctan_phi(residual, lam):
    return np.arctan((residual / lam) ** 2) + 0.5 * np.tanh(np.square(residual))


RULES = [get(name) for name, rule in REGISTRY.items() if not issubclass(rule, GroupRegularizer)]
RULES += [Barron(alpha=0.0), Barron(alpha=1.0), Barron(alpha=-math.inf), Barron(alpha=-30.0), MixtureZhao(gamma=0.7)]
RULES += [MixtureJiang(ratio=0.1), TruncatedQuadratic(sharpness=0.2), TruncatedQuadratic(sharpness=math.inf)]
RULES += [relative(get("huber")), relative(get("l1l2")), Charbonnier()]
RULES += [from_loss(log_phi), from_loss(arctan_phi, form="quadratic")]
LOSSES = np.append(0.0, np.geomspace(1e-5, 200, 400))
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{type(rule).__name__}-{rule.name}")
each_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32])
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="the compiled kernels need numba")


def paces(rule):
    low, high = rule.pace_range
    return (0.3, 1.0, 3.0) if math.isinf(high) else (low + share * (high - low) for share in (0.1, 0.5, 0.9))


def near_a_jump(rule, lam):
    """Losses at which the weight steps: there rounding decides."""
    weight = rule.relative_weight(LOSSES, lam)
    jumps = np.flatnonzero(np.abs(np.diff(weight)) > 0.4)
    return np.isin(np.arange(LOSSES.size), [*jumps, *(jumps + 1)])


@each_rule
@each_dtype
def test_the_recorded_weight_is_the_rules(rule, dtype):
    for lam in paces(rule):
        program = weight_program(rule, lam, np.dtype(dtype))
        assert program is not None
        found, expected = program(LOSSES.astype(dtype)), rule.relative_weight(LOSSES, lam)
        assert found.dtype == dtype
        kept = ~near_a_jump(rule, lam)
        np.testing.assert_allclose(found[kept], expected[kept], atol=1e-12 if dtype == np.float64 else 3e-5)


@each_rule
@each_dtype
def test_the_quick_latent_loss_is_the_rules(rule, dtype):
    for lam in paces(rule):
        program = latent_program(rule, lam, 0.5, np.dtype(dtype))
        assert program is not None
        distance = LOSSES.astype(dtype)
        expected = rule.latent(2 * LOSSES, lam) / rule.max_weight(lam) / 2
        tolerance = {"rtol": 1e-12, "atol": 1e-13} if dtype == np.float64 else {"rtol": 3e-5, "atol": 3e-6}
        unit = max(1.0, float(np.max(expected[:-1], where=expected[:-1] < 50, initial=0.0)))
        np.testing.assert_allclose(program(distance), expected, rtol=tolerance["rtol"], atol=unit * tolerance["atol"])
        assert (distance == LOSSES.astype(dtype)).all()  # the input is not overwritten


@needs_numba
@each_rule
@pytest.mark.parametrize("quadratic", [False, True])
def test_the_factorization_compiles_every_rule(rule, quadratic, sparse_matrix):
    entries, U, V = sparse_matrix
    for lam in paces(rule):
        solve = WeightedSolve(rule, lam, ridge=0.1, eps=0.1, quadratic=quadratic)
        assert compiled_weight(solve, np.float64) is not None
        found, expected = (U.copy(), V.copy()), (U.copy(), V.copy())
        Engine(compiled=True).sweep(entries, *found, solve)
        Engine(compiled=False).sweep(entries, *expected, solve)
        np.testing.assert_allclose(found[0], expected[0], atol=1e-9)
        np.testing.assert_allclose(found[1], expected[1], atol=1e-9)


@pytest.fixture
def sparse_matrix():
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = sp.random_array((40, 30), density=0.4, format="csr", rng=rng)
    X.data[:] = rng.normal(size=X.nnz)
    return from_csr(X), rng.normal(size=(40, 3)), rng.normal(size=(30, 3))


@each_rule
def test_clustering_and_logistic_regression_minimise_the_rules_own_loss(rule):
    lam = list(paces(rule))[1]
    prob = np.exp(-LOSSES[LOSSES < 30])
    losses = -np.log(prob)
    largest = rule.max_weight(lam)
    np.testing.assert_allclose(
        Cost(rule, lam).latent(losses), rule.latent(losses, lam) / largest, rtol=1e-10, atol=1e-12 * max(1, lam**2)
    )
    for pace, codes in ((lam, None), (np.array([lam, lam]), np.zeros(prob.size, dtype=np.intp))):
        latent, weight = Latent(rule, pace)(prob, np.zeros(prob.size, dtype=np.intp) if codes is None else codes)
        np.testing.assert_allclose(latent, rule.latent(losses, lam) / largest, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(weight, rule.relative_weight(losses, lam), rtol=1e-8, atol=1e-12)


def awkward(loss, lam):
    return lam * np.log1p(np.array(loss) / lam)  # insists on an array


def branching(loss, lam):
    return lam * np.log1p(loss / lam) if np.max(loss) > 0 else loss


def two_faced(loss, lam):
    """Does something else with what is no array."""
    return lam * np.log1p(loss / lam) if hasattr(loss, "shape") else lam * np.sqrt(1 + loss / lam)


@pytest.mark.parametrize("phi", [awkward, branching, two_faced], ids=lambda phi: phi.__name__)
def test_what_cannot_be_recorded_is_called_as_it_is(phi, sparse_matrix):
    rule, plain = from_loss(phi), from_loss(lambda loss, lam: lam * np.log1p(loss / lam))
    assert weight_program(rule, 0.8, np.dtype(float)) is None
    assert latent_program(rule, 0.8, 1.0, np.dtype(float)) is None
    np.testing.assert_allclose(Cost(rule, 0.8).latent(LOSSES), Cost(plain, 0.8).latent(LOSSES), atol=1e-12)
    entries, U, V = sparse_matrix
    expected = U.copy(), V.copy()
    Engine(compiled=False).sweep(entries, *expected, WeightedSolve(plain, 0.8, 0.1, 0.1))
    if importlib.util.find_spec("numba") is not None:
        Engine(compiled=True).sweep(entries, U, V, WeightedSolve(rule, 0.8, 0.1, 0.1))
        np.testing.assert_allclose(U, expected[0], atol=1e-9)


class Unhashable(Charbonnier):
    __hash__ = None


def test_a_rule_that_cannot_be_hashed_is_recorded_all_the_same():
    assert weight_program(Unhashable(), 1.0, np.dtype(float)) is not None


def test_a_pace_outside_its_range_has_no_program():
    assert weight_program(get("logarithmic"), 1.5, np.dtype(float)) is None
    assert latent_program(get("welsch"), 1e9, 1.0, np.dtype(np.float32)) is None


def everything(xp, x):
    """Every operation, with numbers and with values on either side."""
    y = xp.abs(x - 3) + 0.5
    total = (x + y) * (x - y) / (x + 2) + 2 / y - (1 - x) + (5 - y * x) + x**y + 1.5**x + (-x) ** 2 + y**3 + y**-0.7
    total = total + xp.sqrt(x) + xp.exp(-x) + xp.expm1(-x) + xp.log(y) + xp.log1p(x) + xp.tanh(x) + xp.arctan(y)
    total = total + xp.where((x < y) & (x > 0.1), x, y) + xp.where((x >= 2) | (y <= 1), 3.0, x * y)
    total = total + xp.where(x > 1, xp.clip(x, 0.5, 2.0), xp.minimum(x, y)) + xp.maximum(y, x) + xp.maximum(1.0, x)
    total = total + xp.astype(x <= 2, x.dtype) + xp.where(xp.isinf(x), 0.0, 1.0) + xp.logaddexp(x, y) + 0 * x
    return total + xp.where(~(y > x), x, 1.0) + (1 + x) / 4 / 5 + x * 2 * 3 - (x - 1) - (2 - (3 - x))


@each_dtype
def test_every_operation_on_either_machine(dtype):
    program = record(everything, dtype)
    values = np.linspace(0.05, 5, 300).astype(dtype)
    expected = everything(np, values.astype(float))
    tolerance = 1e-11 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(program(values), expected, rtol=tolerance)
    if importlib.util.find_spec("numba") is not None:
        from selfpaced.factorization import kernels

        codes, constants, n_registers, result = kernels.encode(program, dtype)
        registers = np.empty((n_registers, kernels.BLOCK), dtype=dtype)
        registers[0, : values.size] = values
        kernels._run(codes, constants, registers, values.size)
        np.testing.assert_allclose(registers[result, : values.size], expected, rtol=tolerance)


def test_numpy_functions_are_recorded_by_their_own_names():
    ours, theirs = record(lambda _, x: everything(np, x), float), record(everything, float)
    values = np.linspace(0.05, 5, 50)
    np.testing.assert_allclose(ours(values), theirs(values), rtol=1e-12)
    with pytest.raises(TypeError, match="cosh"):
        record(lambda _, x: np.cosh(x), float)
    with pytest.raises(TypeError, match="value of a loss"):
        record(lambda _, x: x if x > 1 else 1.0, float)
    assert isinstance(RECORDER, Recorder)


# Where a task knows a rule by its class. None of these may hold a formula that the tests above do not derive from the
# rule: logistic regression fuses Welsch with the log-loss (a power of the probability), compared for every rule above;
# calibration names the hard rule because its weight jumps, and has no formula.
_KNOWN = {"linear/_loss.py": {"Welsch"}, "pacing/calibration.py": {"Hard"}}


def rules_asked_for(path):
    """Names of rule classes that a module compares the type of a rule with."""
    names = {rule.__name__ for rule in REGISTRY.values() if issubclass(rule, Regularizer)}
    tests = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare | ast.Dict)
        or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance")
    ]
    inside = [part for test in tests for part in ast.walk(test)]
    return {part.id for part in inside if isinstance(part, ast.Name)} & names


def test_no_task_keeps_a_formula_of_its_own():
    root = Path(selfpaced.__file__).parent
    found = {
        path.relative_to(root).as_posix(): rules_asked_for(path)
        for path in root.rglob("*.py")
        if path.parent.name != "regularizers"
    }
    assert {path: rules for path, rules in found.items() if rules} == _KNOWN
