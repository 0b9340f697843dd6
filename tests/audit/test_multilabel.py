"""Several labels per row."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from selfpaced import audit_labels


def made(seed, rate, n=1200, n_labels=4):
    rng = np.random.default_rng(seed)
    X, B = rng.normal(size=(n, 12)), rng.normal(size=(12, n_labels))
    scores = 16 * X @ B / np.linalg.norm(B, axis=0) + rng.normal(size=n_labels)
    true = rng.random((n, n_labels)) < 1 / (1 + np.exp(-scores))
    wrong = rng.random((n, n_labels)) < rate
    given = true ^ wrong
    held_out = [cross_val_predict(LogisticRegression(C=10), X, y, method="predict_proba")[:, 1] for y in given.T]
    return given, np.column_stack(held_out), wrong


@pytest.fixture(scope="module")
def noisy():
    return made(0, 0.08)


def test_precision_and_recall_of_likely_errors(noisy):
    given, probs, wrong = noisy
    found = audit_labels(given, probs, multi_label=True).suspects()
    likely = found[found["level"] == "likely error"]
    right = wrong[likely["row"], likely["column"]]
    assert right.mean() >= 0.9
    assert right.sum() >= 0.75 * wrong.sum()


def test_clean_matrices_have_hardly_any_likely_errors():
    given, probs, _ = made(1, 0.0)
    audit = audit_labels(given, probs, multi_label=True)
    assert (audit.suspects()["level"] == "likely error").sum() <= 0.005 * given.size
    assert (audit.noise_rate_interval[:, 0] == 0).all()


def test_every_column_is_audited_by_itself(noisy):
    given, probs, wrong = noisy
    audit = audit_labels(given, probs, multi_label=True, classes=list("abcd"))
    assert audit.noise_rate.shape == (4,)
    assert audit.transition_matrix.shape == (4, 2, 2)
    assert ((audit.noise_rate_interval[:, 0] < wrong.mean(axis=0)) & (audit.noise_rate_interval[:, 1] > 0.08)).all()
    alone = audit_labels(given[:, 2].astype(int), probs[:, 2])
    assert audit.noise_rate[2] == pytest.approx(alone.noise_rate)
    found = audit.suspects()
    assert len(found[found["column"] == "c"]) == len(alone.suspects())
    assert len(audit.suspects(7)) == 7
    issues = audit.label_issues()
    assert len(issues) == given.size
    assert issues["is_label_issue"].sum() == (found["level"] == "likely error").sum()


def test_gaps_frames_and_words(noisy, tmp_path):
    pd = pytest.importorskip("pandas")
    given, probs, _ = noisy
    labels = pd.DataFrame(given.astype(float), columns=list("abcd"))
    labels.iloc[:10, 0] = np.nan
    audit = audit_labels(labels, probs, multi_label=True)
    assert audit.audits[0].n_unlabelled == 10
    assert set(audit.suspects()["column"]) <= set("abcd")
    assert "a: Estimated label-error rate" in audit.summary()
    assert repr(audit).startswith("MultiLabelAudit(n=1200, labels=4")
    assert "<table" in audit._repr_html_()
    pytest.importorskip("jinja2")
    assert audit.report(tmp_path / "audit.html").exists()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(5), "MultiLabelBinarizer"),
        (np.zeros((5, 3)), "same shape"),
        (np.full((5, 2), 2), "0 or 1"),
        (np.full((5, 2), "a"), "0 or 1"),
        ([[0], [1, 0], [1], [0], [1]], "lists of several lengths.*MultiLabelBinarizer"),
    ],
)
def test_bad_input_says_what_to_do(labels, message):
    with pytest.raises(ValueError, match=message):
        audit_labels(labels, np.full((5, 2), 0.5), multi_label=True)
