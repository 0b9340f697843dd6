"""Documents whose labels a rule gave: the cells of ``classification.py --part rules``.

Documents are bags of words of five topics, drawn here. A list of keywords per topic labels them, as distant supervision
does: some keywords are common words that tell nothing, and a document without any gets the first label. So whole groups
of labels are wrong, always the same way, and the words that misled the rule are among the features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from noisy_fits import OURS, made
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import average_precision_score

from selfpaced import label_issues
from selfpaced_experiments.cells import Cell

SHARES = np.array([0.3, 0.25, 0.2, 0.15, 0.1])  # of the topics
WORDS, LENGTH = 1500, 40
#: Topics, keywords of each, common words among them (as a share of the keywords), how far topics are apart.
RULES = {
    "five topics": (5, 6, 0.5, 1.0),
    "five topics, poor rule": (5, 3, 1.0, 1.0),
    "five topics, few keywords": (5, 3, 0.0, 1.0),
    "two topics": (2, 4, 0.5, 1.0),
    "topics that overlap": (5, 6, 0.5, 0.5),
    "topics that overlap much": (5, 6, 0.5, 0.3),
}
LABELS = ("by the rule", "clean", "at random")
_PARTS = ("selfpaced.linear.logistic",)


def cell(label: str, **params: Any) -> Cell:
    """One method on one collection."""
    return Cell("rule_labels:fit", params, label, _PARTS, ("numpy", "scikit-learn", "cleanlab"))


def documents(name: str, n: int, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """TF-IDF of documents, their topics, and the labels that the rule gives them."""
    topics, keywords, common, apart = RULES[name]
    rng = np.random.default_rng(seed)
    usual = 1 / np.arange(5, WORDS + 5)
    usual /= usual.sum()
    frequency = usual * np.exp(apart * rng.standard_normal((topics, WORDS)))
    frequency /= frequency.sum(axis=1, keepdims=True)
    truth = rng.choice(topics, n, p=SHARES[:topics] / SHARES[:topics].sum())
    counts = np.stack([np.bincount(rng.choice(WORDS, LENGTH, p=frequency[t]), minlength=WORDS) for t in truth])
    typical, known = np.log(frequency / usual), np.arange(20, 400)  # words that a rule's author would think of
    hits = np.empty((n, topics))
    for t in range(topics):
        own = known[np.argsort(-typical[t, known])[:keywords]]
        misleading = rng.choice(np.arange(20, 120), int(common * keywords), replace=False)
        hits[:, t] = counts[:, np.r_[own, misleading]].sum(axis=1)
    given = (hits + 1e-3 * rng.random(hits.shape)).argmax(axis=1)
    return TfidfTransformer().fit_transform(sparse.csr_matrix(counts)), truth, np.where(hits.any(axis=1), given, 0)


def fit(*, name: str, labels: str, method: str, seed: int, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """What a method flags of 1,000 documents, and how it predicts 1,000 others."""
    X, truth, given = documents(name, 2000, seed)
    if labels != "by the rule":
        given = truth if labels == "clean" else np.random.default_rng(900 + seed).permutation(truth)
    rows, test = slice(0, 1000), slice(1000, None)
    model = made(method, seed).fit(X[rows], given[rows])
    wrong = given[rows] != truth[rows]
    if method == OURS:
        flagged = np.asarray(label_issues(model, X[rows], given[rows])["is_label_issue"])
        suspicion, rate = model.assessment_.diagnosis.wrong, float(model.noise_rate_)
    elif method == "cleanlab":
        issues = model.get_label_issues()
        flagged, suspicion = issues["is_label_issue"].to_numpy(), 1 - issues["label_quality"].to_numpy()
        rate = float(flagged.mean())
    else:
        flagged, suspicion, rate = np.zeros(len(wrong), dtype=bool), np.zeros(len(wrong)), np.nan
    return {
        "wrong": float(wrong.mean()),
        "flagged": float(flagged.mean()),
        "precision": float(wrong[flagged].mean()) if flagged.any() else None,
        "recall": float(flagged[wrong].mean()) if wrong.any() else None,
        "average": float(average_precision_score(wrong, suspicion)) if wrong.any() else None,
        "rate": rate,
        "accuracy": 100 * float(np.mean(model.predict(X[test]) == truth[test])),
    }
