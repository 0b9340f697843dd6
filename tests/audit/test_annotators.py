"""Several annotators: consensus, their errors, and what to ask again."""

import numpy as np
import pandas as pd
import pytest

from selfpaced import audit_annotators


def made(seed, n=500, people=12, per_row=3, n_classes=3, errors=(0.03, 0.4)):
    """True labels, votes with gaps, error rates, and probabilities of a model that is right in four of five rows."""
    rng = np.random.default_rng(seed)
    true, error = rng.integers(0, n_classes, n), rng.uniform(*errors, people)
    votes = np.full((n, people), np.nan)
    for row in range(n):
        for who in rng.choice(people, per_row, replace=False):
            wrong = rng.random() < error[who]
            votes[row, who] = (true[row] + wrong * rng.integers(1, n_classes)) % n_classes
    z = 1.5 * rng.normal(size=(n, n_classes))
    z[np.arange(n), true] += 2.5
    probs = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return true, votes, probs


def majority(votes, n_classes=3):
    return np.stack([(votes == c).sum(axis=1) for c in range(n_classes)], axis=1).argmax(axis=1)


def test_consensus_is_better_than_the_majority_and_than_the_model():
    right = []
    for seed in range(6):
        true, votes, probs = made(seed)
        alone, joined = audit_annotators(votes), audit_annotators(votes, probs)
        found = (majority(votes), probs.argmax(axis=1), alone.consensus, joined.consensus)
        right.append([(labels == true).mean() for labels in found])
        assert joined.consensus_probability.mean() == pytest.approx(right[-1][3], abs=0.03)
    by_majority, by_model, by_votes, by_all = np.mean(right, axis=0)
    assert by_votes > by_majority
    assert by_all > max(by_votes, by_model)


@pytest.mark.parametrize("with_model", [False, True])
def test_errors_of_annotators(with_model):
    worst, covered = [], []
    for seed in range(4):
        true, votes, probs = made(seed)
        audit = audit_annotators(votes, probs if with_model else None)
        found = audit.annotator_error.sort_values("annotator")
        there = ~np.isnan(votes)
        share = np.array([np.mean(votes[there[:, a], a] != true[there[:, a]]) for a in range(votes.shape[1])])
        worst.append(np.abs(found["error"] - share).mean())
        covered.append(((found["lower"] <= share) & (share <= found["upper"])).mean())
        assert np.corrcoef(found["error"], share)[0, 1] > 0.8
    assert np.mean(worst) < (0.03 if with_model else 0.05)
    assert np.mean(covered) > 0.9


def test_matrices_find_one_sided_errors():
    rng = np.random.default_rng(5)
    true = rng.integers(0, 2, 600)
    votes = np.tile(true[:, None], 5)
    flips = rng.random(votes.shape) < 0.08
    votes = np.where(flips, 1 - votes, votes)
    votes[:, 4] = np.where((true == 1) & (rng.random(600) < 0.5), 0, true)
    matrix = audit_annotators(votes).annotator_matrix
    assert matrix[4, 1, 0] == pytest.approx(0.5, abs=0.08)
    assert matrix[4, 0, 1] < 0.05
    np.testing.assert_allclose(matrix.sum(axis=2), 1.0)


def test_wide_and_long_agree():
    _, votes, probs = made(1)
    row, who = np.nonzero(~np.isnan(votes))
    names = np.array(["a", "b", "c"])
    long = pd.DataFrame({"row": row, "annotator": who, "label": names[votes[row, who].astype(int)]})
    wide = pd.DataFrame(votes).apply(lambda column: column.map({0.0: "a", 1.0: "b", 2.0: "c"}))
    first, second = audit_annotators(long, probs), audit_annotators(wide, probs)
    np.testing.assert_allclose(first.probabilities, second.probabilities, atol=1e-9)
    assert first.consensus.tolist() == second.consensus.tolist()
    shuffled = audit_annotators(long.sample(frac=1.0, random_state=0), probs)
    np.testing.assert_allclose(shuffled.probabilities, first.probabilities, atol=1e-9)
    without = audit_annotators(long.assign(row=long["row"].map(lambda r: f"r{r}")))
    assert set(without.rows) == {f"r{r}" for r in range(len(votes))}


def test_suspects_are_votes_and_ask_again_ranks_rows():
    true, votes, probs = made(2)
    audit = audit_annotators(votes, probs)
    found = audit.suspects()
    likely = found[found["level"] == "likely error"]
    assert (true[likely["row"]] != likely["given"]).mean() > 0.85
    assert (likely["given"] != likely["expected"]).all()
    asked = audit.ask_again()
    assert len(asked) == len(votes)
    wrong = (audit.consensus != true)[asked["row"]]
    assert wrong[:100].mean() > 3 * wrong[-100:].mean()
    assert (np.diff(asked["information"]) <= 1e-12).all()
    assert len(audit.ask_again(5)) == len(audit.suspects(5)) == 5


def test_rows_without_votes_follow_the_model():
    _, votes, probs = made(3)
    votes[:20] = np.nan
    audit = audit_annotators(votes, probs)
    assert (audit.consensus[:20] == probs[:20].argmax(axis=1)).mean() > 0.9


def test_features_stand_in_for_a_model():
    true, votes, _ = made(4, errors=(0.2, 0.4))
    X = np.random.default_rng(0).normal(size=(len(true), 3)) + 3 * np.eye(3)[true]
    assert (audit_annotators(votes, features=X).consensus == true).mean() > (majority(votes) == true).mean() + 0.05


def test_words_and_page(tmp_path):
    _, votes, probs = made(0)
    audit = audit_annotators(votes, probs)
    assert "12 annotators" in audit.summary()
    assert repr(audit).startswith("AnnotatorAudit(rows=500, annotators=12")
    assert "<table" in audit._repr_html_()
    pytest.importorskip("jinja2")
    assert audit.report(tmp_path / "votes.html").exists()


@pytest.mark.parametrize(
    ("annotations", "probs", "message"),
    [
        (np.zeros(4), None, "one column per annotator"),
        (np.full((4, 2), np.nan), None, "some labels"),
        (np.zeros((4, 2)), None, "at least two labels"),
        (np.eye(4), np.full((3, 2), 0.5), "same length"),
        (np.eye(4), np.full((4, 3), 0.3), "classes="),
        (np.eye(4), np.full((4, 2), np.nan), "NaN"),
        (np.eye(4), 0.5, r"pred_probs must be probabilities of shape .* got float64 of shape \(\)"),
        ([[0, 1], [1]], None, "annotations must be an array, every row of the same length"),
        (pd.DataFrame({"row": [0, 1], "worker": [0, 1], "label": [0, 1]}), None, "must have the column 'annotator'"),
        (
            pd.DataFrame({"row": [0, 1], "annotator": ["a", None], "label": [0, 1]}),
            None,
            "'annotator' must not have gaps",
        ),
    ],
)
def test_bad_input_says_what_to_do(annotations, probs, message):
    with pytest.raises(ValueError, match=message):
        audit_annotators(annotations, probs)


def test_an_annotator_votes_once_per_row():
    twice = pd.DataFrame({"row": [0, 0, 1], "annotator": ["a", "a", "b"], "label": [0, 1, 1]})
    with pytest.raises(ValueError, match="at most once"):
        audit_annotators(twice)
