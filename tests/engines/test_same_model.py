"""The same model from memory and from blocks, however the rows are cut."""

import numpy as np
import pytest
from scipy import sparse

from selfpaced import SelfPacedLogisticRegression, suspects
from selfpaced.distributed import MemoryTable
from selfpaced.distributed.table import contents, drawn
from selfpaced.linear import _folds
from selfpaced.pacing import Geometric, Stages
from selfpaced.regularizers import REGISTRY, Regularizer, get

N = _folds.SAMPLED_ROWS


def rows(n, n_classes=2, d=5, seed=0):
    """Correlated features of unequal size, a fifth of the labels wrong."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_t(5.0, (n, d)) * np.geomspace(1, 0.2, d)) @ rng.standard_normal((d, d))
    scores = X @ rng.standard_normal((d, n_classes)) * 2
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    wrong = rng.random(n) < 0.2
    y[wrong] = (y[wrong] + rng.integers(1, n_classes, wrong.sum())) % n_classes
    return X, y


def same(one, other, tol=1e-10):
    assert one.termination_ == other.termination_
    assert (one.lam_, one.C_) == (other.lam_, other.C_)
    for name in ("coef_", "intercept_", "raw_intercept_", "lam_by_class_", "clean_share_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=tol, atol=tol, err_msg=name)
    np.testing.assert_allclose(one.plain_.coef_, other.plain_.coef_, rtol=tol, atol=tol)
    np.testing.assert_allclose(one.noise_rate_interval_, other.noise_rate_interval_, rtol=1e-8, atol=1e-8)
    assert [c.chosen for c in one.path_] == [c.chosen for c in other.path_]


def elsewhere(X, y, n_blocks=7, weight=None):
    """A table that gives no more than the protocol names."""
    own = MemoryTable(X, y, weight, classes=np.unique(y), n_blocks=n_blocks)

    class Table:
        n, n_features, dtype, names, classes, mass = own.n, own.n_features, own.dtype, None, own.classes, own.mass
        reduce, take, numbers = own.reduce, own.take, own.numbers

    return Table()


@pytest.mark.parametrize("n", [N, N + 1])
def test_blocks_do_not_change_the_model(n):
    X, y = rows(n)
    memory = SelfPacedLogisticRegression().fit(X, y)
    for n_blocks in (1, 7, 400):
        same(memory, SelfPacedLogisticRegression().fit(elsewhere(X, y, n_blocks)))
    order = np.random.default_rng(1).permutation(n)
    same(memory, SelfPacedLogisticRegression().fit(elsewhere(X[order], y[order], 7)))


@pytest.fixture
def few_are_many(monkeypatch):
    """Above 400 rows a sample of 400 decides: the large case in little time."""
    monkeypatch.setattr(_folds, "SAMPLED_ROWS", 400)


CASES = {
    "four classes": {},
    "cauchy": {"regularizer": "cauchy"},
    "hard": {"regularizer": "hard"},
    "fixed pace": {"pace": 1.0},
    "plain by a wide pace": {"pace": 1e6},
    "the paper's pace": {"pace": "paper"},
    "a given pace": {"pace": Geometric(mu=1.5, fraction=0.5, stop=Stages(4))},
    "no intercept": {"fit_intercept": False},
    "no penalty": {"penalty": None},
    "a given penalty": {"C": 0.01},
    "balanced": {"class_weight": "balanced"},
    "weights by class": {"class_weight": {0: 2.0, 1: 1.0}},
}


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_fit_is_the_same_from_blocks(few_are_many, case):
    X, y = rows(3000, n_classes=4 if case == "four classes" else 2)
    memory = SelfPacedLogisticRegression(**CASES[case]).fit(X, y)
    same(memory, SelfPacedLogisticRegression(**CASES[case]).fit(elsewhere(X, y)))


@pytest.mark.parametrize("rule", [name for name in REGISTRY if isinstance(get(name), Regularizer)])
def test_every_rule_is_the_same_from_blocks(few_are_many, rule):
    X, y = rows(3000)
    for pace in ("auto", {"channel": 0.2, "logarithmic": 0.5}.get(rule, 1.0)):
        memory = SelfPacedLogisticRegression(regularizer=rule, pace=pace).fit(X, y)
        same(memory, SelfPacedLogisticRegression(regularizer=rule, pace=pace).fit(elsewhere(X, y)), tol=1e-8)


@pytest.mark.parametrize("n", [300, 3000])
def test_weights_and_copies(few_are_many, n):
    X, y = rows(n)
    X[10:20], y[10:20] = X[9], y[9]
    weight = np.random.default_rng(1).integers(1, 4, n).astype(float)
    memory = SelfPacedLogisticRegression().fit(X, y, weight)
    same(memory, SelfPacedLogisticRegression().fit(elsewhere(X, y, weight=weight)))
    repeated = np.repeat(np.arange(n), weight.astype(int))
    same(memory, SelfPacedLogisticRegression().fit(elsewhere(X[repeated], y[repeated])), tol=1e-8)


@pytest.mark.parametrize("n", [300, 3000])
def test_sparse_and_single_precision(few_are_many, n):
    X, y = rows(n)
    X[np.abs(X) < 0.3] = 0.0
    for form, tol in ((sparse.csr_array, 1e-10), (np.float32, 1e-4)):
        memory = SelfPacedLogisticRegression().fit(form(X), y)
        same(memory, SelfPacedLogisticRegression().fit(elsewhere(form(X), y)), tol=tol)


def test_few_rows_of_a_class_do_not_switch_anything_off(few_are_many):
    X, y = rows(6000)
    plain = SelfPacedLogisticRegression().fit(X, y)
    y[:5] = 2
    model = SelfPacedLogisticRegression().fit(X, y)
    assert np.isfinite(plain.lam_)
    assert [c.label for c in model.path_] == [c.label for c in plain.path_]  # the same paces were tried
    assert len(model.path_) > 2
    rare = SelfPacedLogisticRegression().fit(X, np.r_[np.ones(12, int), np.zeros(5988, int)])
    assert rare.noise_rate_interval_ != (0.0, 1.0)  # rows were held out


def same_assessment(one, other, numbers=None):
    """Row by row: probabilities, levels and numbers of the rows, and the stability of each."""
    numbers = np.arange(len(one.assessment_.losses)) if numbers is None else numbers
    order = np.argsort(numbers, kind="stable")
    for name in ("wrong", "evidence", "losses", "weight", "stability"):
        expected, found = getattr(one.assessment_, name), getattr(other.assessment_, name)[order]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10, err_msg=name)
    np.testing.assert_array_equal(other.assessment_.levels()[order], one.assessment_.levels())
    np.testing.assert_array_equal(other.assessment_.diagnosis.given[order], one.assessment_.diagnosis.given)
    expected, found = suspects(one), suspects(other)
    assert len(expected) > 10
    assert found["row"].tolist() == expected["row"].tolist()
    assert found["level"].tolist() == expected["level"].tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_in_blocks_of_memory_are_assessed_as_in_one(n_classes):
    X, y = rows(600, n_classes)
    names = np.array(["a", "b", "c"])[:n_classes]
    memory = SelfPacedLogisticRegression().fit(X, names[y])
    blocks = SelfPacedLogisticRegression().fit(MemoryTable(X, y, classes=names, n_blocks=3))
    same(memory, blocks)
    same_assessment(memory, blocks)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_small_table_from_batches_is_assessed_row_by_row(n_classes):
    X, y = rows(600, n_classes)
    names = np.array(["a", "b", "c"])[:n_classes]
    memory = SelfPacedLogisticRegression().fit(X, names[y])
    batches = (pair for pair in [(X[:250], names[y[:250]]), (X[250:], names[y[250:]])])
    for table, label in ((elsewhere(X, y, 7), None), (batches, names)):
        model = SelfPacedLogisticRegression().fit(table)
        same(memory, model)
        numbers = model.assessment_.numbers
        assert sorted(numbers) == list(range(600))
        if label is not None:
            same_assessment(memory, model, numbers)


def test_one_copy_does_not_change_the_folds(few_are_many):
    X, y = rows(6000)
    table = MemoryTable(X, y, classes=np.arange(2))
    sample = _folds.draw(table, 2, seed=0)
    one = _folds.lay_out(table, sample, 2)
    X[sample.rows[1]] = X[sample.rows[0]]
    table = MemoryTable(X, y, classes=np.arange(2))
    other = _folds.lay_out(table, _folds.draw(table, 2, seed=0), 2)
    assert one.n_validated == other.n_validated == 5
    assert abs(one.n - other.n) <= 1


def test_what_is_known_of_the_rows_is_a_sample(few_are_many):
    X, y = rows(3000)
    model = SelfPacedLogisticRegression().fit(elsewhere(X, y))
    assessed = model.assessment_
    np.testing.assert_array_equal(assessed.diagnosis.given, y[assessed.numbers])
    np.testing.assert_allclose(model.decision_function(X[assessed.numbers]), assessed.diagnosis.logits[:, 0])
    table = suspects(model, n=5)
    np.testing.assert_array_equal(table["given"], y[table["row"]])
    assert model.assess(X, y).losses.shape == (3000,)


@pytest.mark.parametrize("copies", [1, 2, 9])
def test_blocks_do_not_change_the_sample_of_a_rare_class(copies):
    rng = np.random.default_rng(copies)
    X, y = rng.standard_normal((20_000, 2)), (rng.random(20_000) < 0.002).astype(np.intp)
    X = X[rng.integers(0, len(X) // copies, len(X))] if copies > 1 else X
    whole, *others = (
        sample
        for n_blocks in (1, 7, 400)
        for own in [MemoryTable(X, y, classes=np.arange(2), n_blocks=n_blocks)]
        for sample in (own.reduce(contents, 3, 200, 2).settled(), drawn(own, 3, 200, 2))
    )
    assert np.count_nonzero(whole.codes) >= 10 > np.count_nonzero(whole.codes[whole.keys <= whole.limit])
    for other in others:
        for name in ("keys", "codes", "weight", "sample_weight"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(other, name), err_msg=name)
