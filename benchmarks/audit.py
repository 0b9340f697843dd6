"""Audits of labels from held-out probabilities, beside cleanlab: one label, groups, several labels, annotators.

    python benchmarks/audit.py [--part NAME] [--seeds N] [--crowd-kit PYTHON] [--save]

All methods get the same labels and the same held-out probabilities (five folds). The cases were listed before anything
was run on them. Seeds draw the noise, the folds and the model together.

One label: F1 of finding the changed labels by the likely errors, by both levels, and by cleanlab's
`find_label_issues`; AP: average precision of our ranking and of cleanlab's label quality scores; whether the 95 %
interval of the noise rate holds the true rate. Clean cases: rows listed of 1,000.

In-sample: labels that the probabilities contradict, as a multiple of those that they expect to contradict (smallest and
largest of eight tables, 10 % wrong), and tables for which `audit_labels` warns.

Features: labels that a logistic regression cannot fit, clean and with 15 % wrong, with and without `features`.

Groups: 300 patients x 6 visits, 20 features, 15 % of the patients with the wrong label in all visits; probabilities
from GroupKFold. "rows": the same audit without `groups`.

Several labels: 8 % of the entries wrong in all or in three of five columns, made from linear scores of several sizes.
"known": the rule "more probably wrong than right" with the true probabilities and the true rate, which no method can
beat on average. cleanlab: `multilabel_classification.filter.find_multilabel_issues_per_class`.

Annotators: consensus right, in percent. Dawid-Skene: plain EM, below. CROWDLAB: `cleanlab.multiannotator`, with the
same probabilities (LogisticRegression in five folds, fitted to the majority). Errors: mean and largest distance between
the estimated and the true share of wrong votes of an annotator, and how often the 95 % interval holds the error rate by
which the votes were drawn. crowd-kit: its Dawid-Skene and GLAD, if --crowd-kit names an interpreter that has them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import label_sets
import numpy as np
import pandas as pd
from noisy_fits import noisy
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_predict
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import scale

from selfpaced import SelfPacedLogisticRegression, audit_annotators, audit_labels

RESULT = Path(__file__).parent / "results" / "audit.md"
MOST_ROWS = 1500
NOISY = (
    ("digits", "logistic", "20 %"),
    ("breast cancer", "forest", "10 %"),
    ("wine", "logistic", "20 %"),
    ("segment", "boosting", "20 %"),
    ("satimage", "forest", "35/5 %"),
    ("twonorm", "logistic", "20 %"),
    ("phoneme", "boosting", "20 %"),
    ("vehicle", "forest", "10 %"),
    ("pima", "logistic", "border 20 %"),
    ("College", "logistic", "20 %"),
    ("cells", "boosting", "border 20 %"),
    ("olive", "forest", "20 %"),
    ("bdims", "logistic", "35/5 %"),
    ("made, 4 classes", "network", "40 %"),
)
CLEAN = (
    ("digits", "logistic"),
    ("breast cancer", "forest"),
    ("wine", "logistic"),
    ("segment", "boosting"),
    ("pima", "logistic"),
    ("cells", "boosting"),
    ("OJ", "logistic"),
    ("made, 4 classes", "network"),
)
PATIENTS, VISITS, DRAWS = 300, 6, 40
PATIENT_CASES = (  # size of the scores, whose label it is, share of patients all of whose labels are wrong
    *((size, "patient", 0.15) for size in (4, 8, 16, 32)),
    *((size, "visit", 0.15) for size in (4, 16)),
    *((size, whose, 0.0) for size in (4, 16) for whose in ("patient", "visit")),
)
LABELS, SIZES = 5, (6, 10, 16, 24)
ANNOTATED = {  # votes per row, number of annotators, their error rates, distance of the classes, kind
    "3 votes": (3, 15, (0.05, 0.35), 1.0, "even"),
    "5 votes": (5, 25, (0.05, 0.35), 1.0, "even"),
    "2 votes": (2, 10, (0.05, 0.35), 1.0, "even"),
    "poor annotators": (3, 15, (0.2, 0.6), 1.0, "even"),
    "weak model": (3, 15, (0.05, 0.35), 0.5, "even"),
    "strong model": (3, 15, (0.05, 0.35), 1.6, "even"),
    "one in five guesses": (3, 15, (0.05, 0.3), 1.0, "guess"),
    "one-sided errors": (3, 15, (0.05, 0.5), 1.0, "one-sided"),
    "many annotators, 10 votes each": (3, 150, (0.05, 0.35), 1.0, "even"),
}
MODELS = {
    "logistic": lambda seed: LogisticRegression(max_iter=300, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(100, random_state=seed),
    "boosting": lambda seed: HistGradientBoostingClassifier(max_iter=50, random_state=seed),
    "network": lambda seed: MLPClassifier((32,), max_iter=60, random_state=seed),
}


# ----------------------------------------------------------------------------------------------- one label


def table(name):
    """Scaled features and labels of at most so many rows."""
    loaders = {"digits": load_digits, "breast cancer": load_breast_cancer, "wine": load_wine}
    if name in loaders:
        X, y = loaders[name](return_X_y=True)
    elif name.startswith("made"):
        X, y = make_classification(MOST_ROWS, 20, n_informative=8, n_classes=4, class_sep=1.5, flip_y=0, random_state=7)
    else:
        X, y = label_sets.load(name)
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_ROWS])
    return scale(X[rows]), np.unique(y[rows], return_inverse=True)[1]


def held_out(model, X, y, seed):
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_predict(MODELS[model](seed), X, y, cv=folds, method="predict_proba")


def f1(flagged, wrong):
    return 2 * (flagged & wrong).sum() / max(flagged.sum() + wrong.sum(), 1)


def cleanlab_says(labels, probs):
    """Issues and label quality by cleanlab."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    return find_label_issues(labels, probs, n_jobs=1), get_label_quality_scores(labels, probs)


def audited(name, model, noise, seed):
    X, y = table(name)
    given, wrong = noisy(X, y, noise, 100 + seed)
    probs = held_out(model, X, given, seed)
    audit = audit_labels(given, probs)
    levels, (issues, quality) = audit.assessment.levels(), cleanlab_says(given, probs)
    low, high = audit.noise_rate_interval
    out = {"likely": levels == 2, "both": levels > 0, "cleanlab": issues}
    if noise == "clean":
        return {key: 1000 * flagged.mean() for key, flagged in out.items()} | {"above": float(low > 0), "high": high}
    assessment = audit.assessment
    evidence = assessment.wrong + 1e-6 * assessment.evidence
    found = {key: f1(flagged, wrong) for key, flagged in out.items()}
    rate = {"rate": audit.noise_rate_if_any, "true": wrong.mean(), "covered": float(low <= wrong.mean() <= high)}
    ap = {"ap": average_precision_score(wrong, evidence), "their_ap": average_precision_score(wrong, -quality)}
    return found | rate | ap | {"low": low, "high": high}


def mean_of(results):
    return {key: float(np.mean([one[key] for one in results if key in one])) for key in results[0]}


def labels_part(seeds, _python=None):
    yield "| case | true rate | rate if any | interval | covered | F1 likely | F1 both | cleanlab | AP | their AP |"
    yield "|---" * 10 + "|"
    everything = []
    for name, model, noise in NOISY:
        results = [audited(name, model, noise, seed) for seed in range(seeds)]
        m = mean_of(results)
        everything.append(m)
        spread = np.std([one["both"] for one in results])
        yield (
            f"| {name}, {model}, {noise} | {m['true']:.2f} | {m['rate']:.2f} | {m['low']:.2f} to {m['high']:.2f} "
            f"| {m['covered']:.2f} | {m['likely']:.2f} | {m['both']:.2f} ± {spread:.2f} | {m['cleanlab']:.2f} "
            f"| {m['ap']:.2f} | {m['their_ap']:.2f} |"
        )
    m = mean_of(everything)
    ahead = sum(one["both"] > one["cleanlab"] + 0.005 for one in everything)
    behind = sum(one["both"] < one["cleanlab"] - 0.005 for one in everything)
    yield (
        f"| mean of {len(NOISY)} | | | | {m['covered']:.2f} | {m['likely']:.2f} | {m['both']:.2f} "
        f"| {m['cleanlab']:.2f} | {m['ap']:.2f} | {m['their_ap']:.2f} |"
    )
    yield f"\nBoth levels against cleanlab: ahead in {ahead}, behind in {behind} of {len(NOISY)} cases.\n"
    yield "| clean case | likely of 1,000 | both of 1,000 | cleanlab of 1,000 | noise claimed | upper end |"
    yield "|---" * 6 + "|"
    everything = []
    for name, model in CLEAN:
        m = mean_of([audited(name, model, "clean", seed) for seed in range(seeds)])
        everything.append(m)
        yield (
            f"| {name}, {model} | {m['likely']:.1f} | {m['both']:.1f} | {m['cleanlab']:.1f} | {m['above']:.2f} "
            f"| {m['high']:.2f} |"
        )
    m = mean_of(everything)
    yield f"| mean of {len(CLEAN)} | {m['likely']:.1f} | {m['both']:.1f} | {m['cleanlab']:.1f} | {m['above']:.2f} | |"


# ----------------------------------------------------------------------------------------------- features


def in_sample_part(_seeds, _python=None):
    yield "| model | held out | tables warned of | in-sample | tables warned of |"
    yield "|---|---|---|---|---|"
    for model in MODELS:
        cells = []
        for said in (held_out, fitted_to):
            ratios, warned = [], []
            for name, _ in CLEAN:
                X, y = table(name)
                given = noisy(X, y, "10 %", 100)[0]
                probs = said(model, X, given, 0)
                expected = np.sum(1 - probs.max(axis=1))
                ratios.append(np.mean(probs.argmax(axis=1) != given) * len(given) / max(expected, 1e-9))
                warned.append(audit_labels(given, probs).in_sample)
            cells += [f"{min(ratios):.2f} to {max(ratios):.2f}", f"{sum(warned)} of {len(CLEAN)}"]
        yield f"| {model} | " + " | ".join(cells) + " |"


def fitted_to(model, X, y, seed):
    return MODELS[model](seed).fit(X, y).predict_proba(X)


def misfitted(kind, seed, n=1000):
    """Features and labels that a linear model explains in part."""
    rng = np.random.default_rng(seed)
    if kind == "moons":
        return make_moons(n, noise=0.15, random_state=seed)
    X = rng.normal(size=(n, 2))
    if kind == "disc and half-plane":
        return X, ((X[:, 0] > 0.8) | (np.square(X).sum(axis=1) < 1)).astype(int)
    return X, ((X[:, 0] > 0) ^ ((X[:, 0] > 0.5) & (X[:, 1] > 0.5))).astype(int)  # a corner of the other class


def features_part(seeds, _python=None):
    yield "| labels | wrong | features | noise claimed | interval | likely of 1,000 | F1 likely | F1 both |"
    yield "|---" * 8 + "|"
    for kind in ("moons", "disc and half-plane", "corner"):
        for rate in (0.0, 0.15):
            for given in (False, True):
                found = []
                for seed in range(seeds):
                    X, y = misfitted(kind, seed)
                    labels, wrong = noisy(X, y, f"{100 * rate:.0f} %" if rate else "clean", seed)
                    audit = audit_labels(labels, held_out("logistic", X, labels, seed), features=X if given else None)
                    levels, (low, high) = audit.assessment.levels(), audit.noise_rate_interval
                    found.append((low > 0, low, high, 1000 * (levels == 2).mean(), f1(levels == 2, wrong)))
                    found[-1] += (f1(levels > 0, wrong),)
                m = np.mean(np.array(found, dtype=float), axis=0)
                scores = f"{m[4]:.2f} | {m[5]:.2f}" if rate else "|"
                yield (
                    f"| {kind} | {rate:.2f} | {'yes' if given else 'no'} | {m[0]:.2f} | {m[1]:.2f} to {m[2]:.2f} "
                    f"| {m[3]:.1f} | {scores} |"
                )


# ------------------------------------------------------------------------------------------------- groups


def visits(seed, rate, size, whose="patient", features=20):
    """Visits of patients: features, labels of the patient or of each visit, groups, wrong labels."""
    rng = np.random.default_rng(seed)
    coef, base = rng.normal(size=features), rng.normal(size=(PATIENTS, features))
    X = 0.8 * np.repeat(base, VISITS, axis=0) + 0.6 * rng.normal(size=(PATIENTS * VISITS, features))
    known = base if whose == "patient" else X
    true = rng.random(len(known)) < 1 / (1 + np.exp(-size * known @ coef / np.linalg.norm(coef)))
    true = np.repeat(true, VISITS) if whose == "patient" else true
    wrong = np.zeros(PATIENTS, dtype=bool)
    wrong[rng.permutation(PATIENTS)[: round(rate * PATIENTS)]] = True
    wrong = np.repeat(wrong, VISITS)
    return X, true ^ wrong, np.repeat(np.arange(PATIENTS), VISITS), wrong


def patients(*case):
    """Labels, held-out probabilities, groups, wrong labels."""
    X, labels, groups, wrong = visits(*case)
    folds = GroupKFold(5)
    probs = cross_val_predict(LogisticRegression(), X, labels, groups=groups, cv=folds, method="predict_proba")
    return labels, probs, groups, wrong


def groups_part(_seeds, _python=None):
    yield (
        "| size of the scores | label of | wrong | covered | covered, rows | width | width, rows "
        "| draws with likely errors | likely: precision, recall | both: precision, recall |"
    )
    yield "|---" * 10 + "|"
    for size, whose, rate in PATIENT_CASES:
        found = []
        for seed in range(DRAWS):
            labels, probs, groups, wrong = patients(seed, rate, size, whose)
            audit, by_row = audit_labels(labels, probs, groups=groups), audit_labels(labels, probs)
            (low, high), (low2, high2) = audit.noise_rate_interval, by_row.noise_rate_interval
            covered = [low <= wrong.mean() <= high, low2 <= wrong.mean() <= high2]
            found.append((*covered, high - low, high2 - low2, *_counted(audit.assessment.levels(), wrong)))
        m = np.mean(found, axis=0)
        figures = f"{m[0]:.3f} | {m[1]:.3f} | {m[2]:.2f} | {m[3]:.2f} | {m[4]:.2f}"
        yield f"| {size} | {whose} | {rate:.2f} | {figures} | {_pairs(found, wrong)} |"


def _counted(levels, wrong):
    """Whether there are likely errors; how many rows are listed, and how many of them are wrong."""
    likely, both = levels == 2, levels > 0
    return likely.any(), likely.sum(), wrong[likely].sum(), both.sum(), wrong[both].sum()


def _pairs(found, wrong):
    """Precision and recall of likely errors and of both levels, over all draws; without wrong labels their number."""
    likely, likely_right, both, both_right = np.array(found, dtype=float)[:, -4:].sum(axis=0)
    if not wrong.any():
        return f"{likely / DRAWS:.0f} rows | {both / DRAWS:.0f} rows"
    pairs = ((likely, likely_right), (both, both_right))
    return " | ".join(f"{right / max(n, 1):.2f}, {right / (DRAWS * wrong.sum()):.2f}" for n, right in pairs)


def grouped_fit_part(_seeds, _python=None):
    columns = (
        "covered | covered, rows | draws with likely errors | likely: precision, recall | both: precision, recall |"
    )
    yield f"| size of the scores | label of | wrong | {columns}"
    yield "|---" * 8 + "|"
    for size, whose, rate in PATIENT_CASES:
        found = []
        for seed in range(DRAWS):
            X, labels, groups, wrong = visits(seed, rate, size, whose)
            models = [SelfPacedLogisticRegression().fit(X, labels, groups=own) for own in (groups, None)]
            covered = [low <= wrong.mean() <= high for low, high in (model.noise_rate_interval_ for model in models)]
            found.append((*covered, *_counted(models[0].assessment_.levels(), wrong)))
        m = np.mean(found, axis=0)
        yield f"| {size} | {whose} | {rate:.2f} | {m[0]:.3f} | {m[1]:.3f} | {m[2]:.2f} | {_pairs(found, wrong)} |"


# --------------------------------------------------------------------------------------------- several labels


def several(seed, size, rate, columns):
    rng = np.random.default_rng(seed)
    X, B = rng.normal(size=(MOST_ROWS, 20)), rng.normal(size=(20, LABELS))
    p = 1 / (1 + np.exp(-(size * X @ B / np.linalg.norm(B, axis=0) + size / 6 * rng.normal(size=LABELS))))
    true, wrong = rng.random(p.shape) < p, np.zeros(p.shape, dtype=bool)
    wrong[:, rng.permutation(LABELS)[:columns]] = rng.random((MOST_ROWS, columns)) < rate
    given = true ^ wrong
    model = LogisticRegression(C=10.0, max_iter=300)
    probs = [cross_val_predict(model, X, y, cv=5, method="predict_proba")[:, 1] for y in given.T]
    own = np.where(given, p, 1 - p)
    known = (wrong.any(axis=0) * rate * (1 - own)) > (1 - rate) * own
    return given, np.column_stack(probs), wrong, known


def precision_recall(flagged, wrong):
    return flagged.sum() and (flagged & wrong).sum() / flagged.sum(), (flagged & wrong).sum() / max(wrong.sum(), 1)


def multilabel_part(seeds, _python=None):
    from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class

    yield "| size of the scores | wrong columns | likely: precision, recall | known | cleanlab |"
    yield "|---" * 5 + "|"
    clean = []
    for size in SIZES:
        for columns in (LABELS, 3):
            found = []
            for seed in range(seeds):
                given, probs, wrong, known = several(seed, size, 0.08, columns)
                likely = _flagged(given, probs)
                lists = [np.flatnonzero(row).tolist() for row in given]
                theirs = np.asarray(find_multilabel_issues_per_class(lists, probs, n_jobs=1))
                found.append([*precision_recall(likely, wrong), *precision_recall(known, wrong)])
                found[-1] += [*precision_recall(theirs, wrong)]
            m = np.mean(found, axis=0)
            pairs = [f"{a:.2f}, {b:.2f}" for a, b in zip(m[::2], m[1::2], strict=True)]
            yield f"| {size} | {columns} of {LABELS} | " + " | ".join(pairs) + " |"
        clean += [_flagged(*several(100 + seed, size, 0.0, LABELS)[:2]).mean() for seed in range(seeds)]
    mean, most = 100 * np.mean(clean), 100 * max(clean)
    yield f"\nClean matrices: {mean:.2f} % of the entries are likely errors (at most {most:.2f} % of one)."


def _flagged(given, probs):
    found = audit_labels(given, probs, multi_label=True).suspects()
    found = found[found["level"] == "likely error"]
    flagged = np.zeros(given.shape, dtype=bool)
    flagged[found["row"], found["column"]] = True
    return flagged


# ------------------------------------------------------------------------------------------------- annotators


def annotated(setting, seed, n=600, n_classes=3):
    """Features, true labels, votes with gaps, and the error rate of every annotator."""
    per_row, people, errors, distance, kind = setting
    rng = np.random.default_rng(seed)
    true = rng.integers(0, n_classes, n)
    X = distance * rng.normal(size=(n_classes, 10))[true] + rng.normal(size=(n, 10))
    error, votes = rng.uniform(*errors, people), np.full((n, people), np.nan)
    guessing = np.arange(people) % 5 == 0 if kind == "guess" else np.zeros(people, dtype=bool)
    for row in range(n):
        for who in rng.choice(people, per_row, replace=False):
            wrong, label = rng.random() < error[who], true[row]
            if guessing[who]:
                label = rng.integers(0, n_classes)
            elif wrong and kind == "one-sided":
                label = max(label - 1, 0)
            elif wrong:
                label = (label + rng.integers(1, n_classes)) % n_classes
            votes[row, who] = label
    rates = np.where(guessing, 1 - 1 / n_classes, error * (1 - 1 / n_classes if kind == "one-sided" else 1))
    return X, true, votes, rates


def dawid_skene(votes, n_classes, rounds=50):
    """Plain EM (Dawid and Skene, 1979) with a hundredth of a vote in every cell."""
    given = ~np.isnan(votes)
    counts = np.stack([(votes == c).sum(axis=1) for c in range(n_classes)], axis=1).astype(float)
    q = counts / counts.sum(axis=1, keepdims=True)
    for _ in range(rounds):
        T = np.stack([[q[votes[:, a] == y].sum(axis=0) for y in range(n_classes)] for a in range(votes.shape[1])])
        T = T.transpose(0, 2, 1) + 0.01
        T /= T.sum(axis=2, keepdims=True)
        logs = np.tile(np.log(q.mean(axis=0) + 1e-12), (len(votes), 1))
        for a in range(votes.shape[1]):
            rows = given[:, a]
            logs[rows] += np.log(T[a][:, votes[rows, a].astype(int)]).T
        q = np.exp(logs - logs.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    return q.argmax(axis=1)


CROWD_KIT_NAMES = ("Dawid-Skene", "GLAD")
CROWD_KIT = """
import sys
import numpy as np, pandas as pd
from crowdkit.aggregation import GLAD, DawidSkene
found = {}
for key, votes in np.load(sys.argv[1]).items():
    task, worker = np.nonzero(~np.isnan(votes))
    frame = pd.DataFrame({"task": task, "worker": worker, "label": votes[task, worker].astype(int)})
    models = DawidSkene(n_iter=100), GLAD(n_iter=100)
    found[key] = [model.fit_predict(frame).reindex(range(len(votes))).to_numpy() for model in models]
np.savez(sys.argv[2], **found)
"""


def crowd_kit_part(seeds, python=None):
    """Consensus by crowd-kit, which runs in an interpreter of its own, beside ours without probabilities."""
    if python is None:
        yield "Not run: --crowd-kit names an interpreter that has the package crowd-kit."
        return
    drawn = {(label, seed): annotated(setting, seed) for label, setting in ANNOTATED.items() for seed in range(seeds)}
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "votes.npz", Path(folder) / "found.npz"
        np.savez(given, **{f"{label}/{seed}": one[2] for (label, seed), one in drawn.items()})
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run([python, "-W", "ignore", "-c", CROWD_KIT, given, made], check=True, env=environment)
        found = dict(np.load(made))
    yield "| setting | " + " | ".join(CROWD_KIT_NAMES) + " | ours, votes only |"
    yield "|---" * (2 + len(CROWD_KIT_NAMES)) + "|"
    for label in ANNOTATED:
        right = []
        for seed in range(seeds):
            _, true, votes, _ = drawn[label, seed]
            labels = [*found[f"{label}/{seed}"], audit_annotators(votes).consensus]
            right.append([100 * (one == true).mean() for one in labels])
        yield f"| {label} | " + " | ".join(f"{mean:.1f}" for mean in np.mean(right, axis=0)) + " |"


def consensus_of(setting, seed):
    from cleanlab.multiannotator import get_label_quality_multiannotator

    X, true, votes, rates = annotated(setting, seed)
    majority = np.stack([(votes == c).sum(axis=1) for c in range(3)], axis=1).argmax(axis=1)
    probs = held_out("logistic", X, majority, seed)
    crowdlab = get_label_quality_multiannotator(pd.DataFrame(votes), probs, verbose=False)["label_quality"]
    alone, audit = audit_annotators(votes), audit_annotators(votes, probs)
    names = ("majority", "Dawid-Skene", "ours, votes only", "CROWDLAB", "ours")
    consensus = (majority, dawid_skene(votes, 3), alone.consensus, crowdlab["consensus_label"].to_numpy())
    right = {n: 100 * (c == true).mean() for n, c in zip(names, (*consensus, audit.consensus), strict=True)}
    error = audit.annotator_error.sort_values("annotator")
    share = np.nanmean(np.where(np.isnan(votes), np.nan, votes != true[:, None]), axis=0)
    off = np.abs(error["error"].to_numpy() - share)
    inside = ((error["lower"] <= rates) & (rates <= error["upper"])).mean()
    return right | {"off": off.mean(), "worst": off.max(), "inside": float(inside), "votes": error["votes"].mean()}


def annotators_part(seeds, _python=None):
    names = ("majority", "Dawid-Skene", "ours, votes only", "CROWDLAB", "ours")
    head = " | ".join(names)
    yield f"| setting | {head} | ours - CROWDLAB | votes each | error off: mean | largest | interval holds |"
    yield "|---" * (len(names) + 6) + "|"
    for label, setting in ANNOTATED.items():
        results = [consensus_of(setting, seed) for seed in range(seeds)]
        m = mean_of(results)
        lead = np.array([one["ours"] - one["CROWDLAB"] for one in results])
        cells = " | ".join(f"{m[name]:.1f}" for name in names)
        yield (
            f"| {label} | {cells} | {lead.mean():+.1f} ± {lead.std():.1f} | {m['votes']:.0f} | {m['off']:.3f} "
            f"| {m['worst']:.3f} | {m['inside']:.2f} |"
        )


PARTS = {
    "labels": ("One label per row", labels_part),
    "in-sample": ("In-sample probabilities", in_sample_part),
    "features": ("Features", features_part),
    "groups": ("Groups", groups_part),
    "grouped-fit": ("Groups in the fit of the logistic regression", grouped_fit_part),
    "multilabel": ("Several labels per row", multilabel_part),
    "annotators": ("Several annotators", annotators_part),
    "crowd-kit": ("Several annotators: crowd-kit", crowd_kit_part),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--crowd-kit", metavar="PYTHON")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sections = {}
    for part in args.part or PARTS:
        title, lines = PARTS[part]
        began, text = time.process_time(), []
        print(f"\n## {title}\n", flush=True)
        for line in lines(args.seeds, args.crowd_kit):
            print(line, flush=True)
            text.append(line)
        text.append(f"\n({args.seeds} seeds, {time.process_time() - began:.0f} s of processor time)")
        print(text[-1])
        sections[title] = "\n".join(text)
    if args.save:
        save(sections)


def save(sections):
    """Write the parts that were run; others stay as they are."""
    before = RESULT.read_text(encoding="utf-8").split("\n## ")[1:] if RESULT.exists() else []
    kept = dict(part.split("\n\n", 1) for part in before) | sections
    head = "# Audits from held-out probabilities\n\n" + __doc__.split("\n\n", 2)[2].strip()
    parts = [f"## {title}\n\n{kept[title].strip()}" for title, _ in PARTS.values() if title in kept]
    RESULT.write_text("\n\n".join([head, *parts]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
