import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from selfpaced.assessment import Assessment, Labels, Values, fingerprint, weights_at
from selfpaced.regularizers import get

RNG = np.random.default_rng(0)
SMALL = RNG.normal(size=(20, 3))
LARGE = RNG.normal(size=(40_000, 8))  # beyond the size up to which the content itself is digested


@pytest.mark.parametrize("table", [SMALL, LARGE], ids=["small", "large"])
class TestFingerprintOfArrays:
    def test_equal_content_has_equal_fingerprints(self, table):
        y = np.arange(len(table))
        assert fingerprint(table, y) == fingerprint(table.copy(), y.copy())
        assert fingerprint(table, y) == fingerprint(np.asfortranarray(table), y)

    def test_one_cell_makes_a_difference(self, table):
        other = table.copy()
        other[len(table) // 2, 1] += 1e-9
        assert fingerprint(table) != fingerprint(other)

    def test_the_order_of_rows_makes_a_difference(self, table):
        other = table.copy()
        other[[1, 7]] = other[[7, 1]]
        assert fingerprint(table) != fingerprint(other)

    def test_y_makes_a_difference(self, table):
        y = np.zeros(len(table))
        assert fingerprint(table, y) != fingerprint(table, y + (np.arange(len(table)) == 3))
        assert fingerprint(table, y) != fingerprint(table)

    def test_one_row_more_makes_a_difference(self, table):
        assert fingerprint(table) != fingerprint(np.vstack([table, table[:1]]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.DataFrame({"a": [1.0, np.nan], "b": pd.Categorical(["x", "y"]), "c": ["p", None]}),
        lambda: pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"]), "a": pd.array([1, None], "Int64")}),
        lambda: pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
        lambda: sp.csr_array(np.eye(4)),
        lambda: [np.eye(3), np.ones((3, 2))],
        lambda: {"one": np.eye(3), "two": sp.csr_matrix(np.eye(3))},
        lambda: ["some text", "other text"],
        lambda: [[1, 2], [3]],
        lambda: (np.array([0, 1]), np.array([1, 0]), np.array([0.5, 2.0])),
    ],
    ids=["categories", "dates", "polars", "sparse", "views", "named views", "texts", "ragged", "triplets"],
)
def test_anything_a_model_takes_has_a_repeatable_fingerprint(make):
    assert fingerprint(make(), [0, 1]) == fingerprint(make(), [0, 1])
    assert fingerprint(make(), [0, 1]) != fingerprint(make(), [1, 0])


def test_a_changed_cell_of_a_frame_or_sparse_matrix_shows():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    other = frame.assign(b=["x", "z"])
    assert fingerprint(frame) != fingerprint(other)
    matrix = sp.csr_array(np.eye(4))
    assert fingerprint(matrix) != fingerprint(sp.csr_array(np.eye(4)[::-1]))


class Even:
    """A noise model that takes logits for probabilities."""

    def proba(self, logits):
        return np.asarray(logits)

    def noise_probability(self, logits, y):
        return 1.0 - np.asarray(logits)[np.arange(len(y)), y]


def test_labels_are_expected_or_assessed_as_wrong_by_their_probabilities():
    diagnosis = Labels(
        np.array(["no", "yes"]), np.array([0, 0, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]), Even()
    )
    assessment = Assessment("labels", diagnosis, losses=np.array([0.1, 1.6, 0.5]), lam=np.inf)
    assert diagnosis.given.tolist() == ["no", "no", "yes"]
    assert diagnosis.expected.tolist() == ["no", "yes", "yes"]
    np.testing.assert_allclose(diagnosis.support, [0.9, 0.2, 0.6])
    np.testing.assert_allclose(assessment.wrong, [0.1, 0.8, 0.4])
    assert assessment.ranking().tolist() == [1, 2, 0]
    assert assessment.ranking(1).tolist() == [1]
    assert assessment.weight.tolist() == [1.0, 1.0, 1.0]


class Noisy(Even):
    """A noise model that is not certain that there is any noise."""

    def noise_probability(self, logits, y):
        return 0.6 * super().noise_probability(logits, y)

    def probability_if_noisy(self, logits, y):
        return super().noise_probability(logits, y)


def levelled(look, **options):
    logits = np.array([[0.9, 0.1], [0.05, 0.95], [0.3, 0.7], [0.4, 0.6], [0.45, 0.55]])
    diagnosis = Labels(np.array(["no", "yes"]), np.array([0, 0, 0, 0, 1]), logits, Noisy())
    return Assessment("labels", diagnosis, losses=np.ones(5), lam=np.inf, look=look, **options)


def test_levels_are_likely_errors_and_rows_worth_a_look():
    assert levelled(0.65).levels().tolist() == [0, 2, 1, 0, 0]
    assert levelled(0.1).levels().tolist() == [0, 2, 1, 1, 0]  # the last is expected to be what it is
    assert levelled(0.65).levels(threshold=0.4).tolist() == [0, 2, 2, 0, 0]
    assert levelled(np.inf).levels(threshold=0.9).tolist() == [0, 0, 0, 0, 0]
    assert levelled(0.1, trusted=np.arange(5) == 1).levels().tolist() == [0, 0, 1, 1, 0]


def test_the_table_names_levels():
    assessment = levelled(0.65)
    table = assessment.table(assessment.ranking())
    assert table["row"].tolist() == [1, 2, 3, 4, 0]
    assert table["level"].tolist() == ["likely error", "worth a look", "", "", ""]
    np.testing.assert_allclose(table["probability_if_noisy"], [0.95, 0.7, 0.6, 0.45, 0.1])
    np.testing.assert_allclose(table["noise_probability"], 0.6 * table["probability_if_noisy"])


def test_values_worth_a_look_have_large_residuals():
    diagnosis = Values(np.array([3.0, -2.0, 1.0]), np.zeros(3), wrong=np.array([0.9, 0.1, 0.1]))
    assessment = Assessment(
        "values", diagnosis, losses=np.array([9.0, 4.0, 1.0]), lam=1.0, rule=get("welsch"), look=2.0
    )
    assert assessment.levels().tolist() == [2, 1, 0]


def test_the_loss_decides_between_rows_that_are_equally_wrong():
    diagnosis = Values(np.zeros(3), np.zeros(3), wrong=np.array([1.0, 1.0, 0.0]))
    assessment = Assessment("values", diagnosis, losses=np.array([1.0, 4.0, 9.0]), lam=1.0, rule=get("welsch"))
    assert assessment.ranking().tolist() == [1, 0, 2]
    np.testing.assert_allclose(assessment.weight, np.exp([-1.0, -4.0, -9.0]))


def test_every_row_may_have_its_own_pace():
    losses, lam = np.array([1.0, 1.0]), np.array([1.0, 2.0])
    np.testing.assert_allclose(weights_at("welsch", losses, lam), np.exp([-1.0, -0.25]))


def test_rows_are_recognised_by_content():
    diagnosis = Values(np.zeros(2), np.zeros(2), np.zeros(2))
    X, y = np.eye(2), np.array([1.0, 2.0])
    assessment = Assessment("values", diagnosis, np.zeros(2), np.inf, fingerprint=fingerprint(X, y))
    assert assessment.of(X.copy(), y.copy())
    assert not assessment.of(X[::-1], y)
    assert not Assessment("values", diagnosis, np.zeros(2), np.inf).of(X, y)
