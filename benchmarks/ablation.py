"""What each mechanism of the logistic regression earns: one is switched off, and the difference is printed.

    python benchmarks/label_sets.py                    # once: the tables
    python benchmarks/ablation.py [--seeds 1] [--every 1] [--only paces shift ...] [--save]

Development tables (label_sets.py), clean and with seven kinds of noise. A cell is the difference to the present
code, mean over the tables (standard error), in points: accuracy on clean labels, average precision of the wrong labels
(AP), F1 of the rows that are listed; log-loss on clean labels, times 100; then over all noisy tables the share of
intervals that cover the true rate, the likely errors and the share of them that are wrong; likely errors on clean
tables, and processor time. A mechanism that is within one standard error
everywhere is one too many, unless data that are not here need it: one class recorded as another, classes of few rows,
skewed features, tables of few distinct rows, a single absurd cell (tests/linear/test_logistic_*.py).

The other areas are measured the same way, each in the script that has its tables and its error:

    python benchmarks/wrappers.py --part ablation --runs FILE      # soft labels of wrapped classifiers
    python benchmarks/regression.py --part ablation                # linear regression and gross errors in values
    python benchmarks/factorization.py --parts ablation            # factorization
    python benchmarks/clustering.py --parts ablation               # clustering
"""

from __future__ import annotations

import argparse
import contextlib
import time
import warnings
from pathlib import Path
from unittest import mock

import label_sets
import noisy_fits
import numpy as np
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from selfpaced import SelfPacedLogisticRegression
from selfpaced.label_noise import fit, model, multiclass
from selfpaced.linear import _candidates, _fold_fits, _folds, _logistic_fit, _misfit

RESULT = Path(__file__).parent / "results" / "ablation.md"
MEASURES = {"AP": ("20 %", "40 %", "35/5 %"), "F1": ("20 %", "40 %", "35/5 %"), "log-loss": ("clean", "20 %", "40 %")}
RANKED = [(measure, noise) for measure, noises in MEASURES.items() for noise in noises]
LINEAR = {"candidates": _candidates, "fold_fits": _fold_fits, "folds": _folds, "fit": _logistic_fit}
NOISE = {"noise": fit, "models": fit.ChannelModels, "model": model.NoiseModel, "classes": multiclass}
MODULES = {**LINEAR, "misfit": _misfit, "check": _misfit.MisfitCheck, **NOISE}


def _one_candidate(fits, trials):
    """The best candidate alone instead of the average."""
    shares = np.zeros(len(trials))
    shares[trials.index(_candidates.best_of(fits, trials))] = 1.0
    return shares


def _as_it_is(X, mean, variance):  # noqa: ARG001
    return mean, variance


def _nothing(*args):  # noqa: ARG001
    return None


def _none(*args):  # noqa: ARG001
    return []


def _established(models, model):  # noqa: ARG001
    """Likely errors by the rate itself, if the interval does not contain 0."""
    return model.unless_established()


def _one_scale(like, clean, unit):  # noqa: ARG001
    """The model without noise as it is, instead of a scale for every pair of classes."""
    return clean, None


def _by_standard_error(noise, models, error, n, misfit):
    """The interval of the rate by its standard error alone."""
    largest = min(error + 2 * np.sqrt(error * (1 - error) / n), 1.0)
    if fit._gain(models) < fit.CONVINCING:
        return 0.0, float(largest)
    spread = np.hypot(noise.interval[1] - noise.noise_rate, fit.NORMAL_975 * misfit)
    return float(max(0.0, noise.noise_rate - spread)), float(min(noise.noise_rate + spread, largest))


def _every_share(fits, trials):
    """Plain and paced candidates in one average."""
    rows, best = fits.rows, _candidates.best_of(fits, trials)
    z = [_candidates.gap(best, trial, rows.evidence_weight, rows.evidence_size).z for trial in trials]
    shares = np.exp(-0.5 * np.square(np.maximum(z, 0.0)))
    return shares / shares.sum()


def _own_rate(check, channel):  # noqa: ARG001
    return channel.noise_rate


def _trusted_fully(check, channel):
    """The rate of the reference model, however many of the suspected labels it predicts."""
    return channel.noise_rate - check.trust * max(channel.noise_rate - check.channel.noise_rate, 0.0)


def _own_noise_model(check, channel, *rows):  # noqa: ARG001
    return channel


def _geometric(scales, weights, z):  # noqa: ARG001
    return float(np.exp(weights @ np.log(scales)))


def _certain(*args):  # noqa: ARG001
    return 1.0


def _one_rate(transition, rate, wanted):  # noqa: ARG001
    return fit.symmetric(min(wanted, 0.5), len(transition))


def _never_isolated(noise, logits, y):  # noqa: ARG001
    return np.zeros(len(y))


SWITCHES = {  # what is patched, and options of the estimator
    "paces": ([("candidates", "CLEAN", 2.0)], {}),
    "penalties": ([], {"C": 1.0}),
    "average": ([("candidates", "_shares", _one_candidate)], {}),
    "all or none of the paced ones": ([("candidates", "_shares", _every_share)], {}),
    "wide paces under the best penalty": ([("candidates", "PENALISED_PACES", 0)], {}),
    "paces by class": ([("candidates", "_class_scale", _nothing)], {}),
    "repetitions": ([("folds", "REPETITIONS", 1)], {}),
    "misfit check": ([("fit", "misfit_check", _nothing)], {}),
    "rate of the misfit check": ([("check", "most", _own_rate)], {}),
    "doubt of the misfit check at different rates": ([("check", "most", _trusted_fully)], {}),
    "interval of the misfit check": ([("check", "applied", _own_noise_model)], {}),
    "likely errors by the misfit check": ([("check", "credible", _own_noise_model)], {}),
    "ranks in the misfit check": ([("misfit", "SKEWED", np.inf)], {}),
    "nearness in the misfit check": ([("misfit", "FEW_FEATURES", 0)], {}),
    "no heed of a misfit check that is clearly worse": ([("check", "explains_less", False)], {}),
    "scales of pairs of classes": ([("classes", "_scaled_by_pair", _one_scale), ("noise", "MAX_PAIRWISE", 2)], {}),
    "lower end by the likelihood ratio": ([("noise", "_interval", _by_standard_error)], {}),
    "lower end of the rate": ([("models", "withstanding", _established)], {}),
    "single errors": ([("model", "_isolated", _never_isolated)], {}),
    "rates by class in the lists": ([("noise", "_at_rate", _one_rate)], {}),
    "scale by the mean probabilities": ([("noise", "_common_scale", _geometric)], {}),
    "information in the logits": ([("noise", "_signal", _certain)], {}),
    "rates of pairs of classes": ([("classes", "MAX_PAIRWISE", 2)], {}),
    "one class recorded as another": ([("classes", "_one_way", _none)], {}),
    "classes too small to assess": ([("noise", "CLASS_ROWS", 0)], {}),
    "tolerance by overlap": ([("noise", "FEIGNED", np.inf)], {}),
    "shift": ([], {"shift": False}),
    "limits of the shift": ([], {"shift": True}),
    "one row that decides a scale": ([("fold_fits", "_without_one_row", _as_it_is)], {}),
    "copies count less": ([("folds", "ERROR_CORRELATION", 0.0)], {}),
    "coarse tables": ([("folds", "MIXED", 2.0)], {}),
}


def switched(patches):
    stack = contextlib.ExitStack()
    for module, name, value in patches:
        stack.enter_context(mock.patch.object(MODULES[module], name, value))
    return stack


def measured(names, seeds, patches, options):
    """One record for every table, noise and seed."""
    found = {}
    with switched(patches):
        for seed in range(seeds):
            for name in names:
                X, y, X_test, y_test = noisy_fits.parts(name, seed)
                for noise in noisy_fits.NOISES:
                    found[name, noise, seed] = _fit(X, y, X_test, y_test, noise, seed, options)
    return found


def _fit(X, y, X_test, y_test, noise, seed, options):
    given, flipped = noisy_fits.noisy(X, y, noise, 5000 + seed)
    present, labels = np.unique(given, return_inverse=True)
    start = time.process_time()
    model = SelfPacedLogisticRegression(random_state=seed, **options).fit(X, labels)
    cost, (low, high) = time.process_time() - start, model.noise_rate_interval_
    lists, wrong = noisy_fits.listed(noisy_fits.OURS, model, flipped), bool(flipped.any())
    proba = np.full((len(y_test), int(max(y.max(), y_test.max())) + 1), 1e-12)
    proba[:, present] = np.maximum(model.predict_proba(X_test), 1e-12)
    return {
        "accuracy": 100 * np.mean(present[model.predict(X_test)] == y_test),
        "log-loss": -100 * np.mean(np.log(proba[np.arange(len(y_test)), y_test])),
        "AP": 100 * average_precision_score(flipped, model.assessment_.evidence) if wrong else np.nan,
        "F1": 100 * lists["f1"] if wrong else np.nan,
        "covers": 100.0 * (low <= flipped.mean() + 1e-9 and flipped.mean() <= high + 1e-9),
        "likely": lists["likely"],
        "right": lists["likely"] * (lists["right"] or 0.0),
        "ms": 1000 * cost,
    }


def by_table(found, noise, measure):
    values = {}
    for (name, kind, _), record in found.items():
        if kind == noise:
            values.setdefault(name, []).append(record[measure])
    return {name: np.mean(own) for name, own in values.items()}


def difference(found, base, noise, measure):
    own, other = by_table(found, noise, measure), by_table(base, noise, measure)
    gaps = np.array([own[name] - other[name] for name in own])
    gaps = gaps[np.isfinite(gaps)]
    return f"{gaps.mean():+.2f} ({gaps.std(ddof=1) / np.sqrt(len(gaps)):.2f})" if len(gaps) > 1 else "-"


def row(label, found, base):
    noisy = noisy_fits.NOISES[1:]
    cells = [difference(found, base, noise, "accuracy") for noise in noisy_fits.NOISES]
    cells += [difference(found, base, noise, measure) for measure, noise in RANKED]
    cells.append(f"{np.mean([np.mean(list(by_table(found, n, 'covers').values())) for n in noisy]):.0f} %")
    claimed = [record for key, record in found.items() if key[1] != "clean"]
    cells.append(f"{sum(r['likely'] for r in claimed)}")
    cells.append(f"{sum(r['right'] for r in claimed) / max(sum(r['likely'] for r in claimed), 1):.2f}")
    cells.append(f"{sum(record['likely'] for key, record in found.items() if key[1] == 'clean')}")
    cells.append(f"{np.mean([record['ms'] for record in found.values()]):.0f} ms")
    return "| " + " | ".join([label, *cells]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="take every n-th table")
    parser.add_argument("--only", nargs="*", choices=list(SWITCHES), default=list(SWITCHES))
    parser.add_argument("--save", action="store_true", help="also write results/ablation.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ranked = [f"{measure} {noise}" for measure, noise in RANKED]
    columns = [*noisy_fits.NOISES, *ranked, "covers", "likely errors", "of them wrong", "likely, clean", "time"]
    lines = ["| switched off | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    print("\n".join(lines), flush=True)
    names = label_sets.DEVELOPMENT[:: options.every]
    base = measured(names, options.seeds, [], {})
    lines.append(row("nothing", base, {key: dict.fromkeys(record, 0.0) for key, record in base.items()}))
    print(lines[-1], flush=True)
    for label in options.only:
        lines.append(row(label, measured(names, options.seeds, *SWITCHES[label]), base))
        print(lines[-1], flush=True)
    if options.save:
        what = __doc__.split("\n\n")[2]
        title = f"# Ablation of the logistic regression\n\n{len(names)} tables, {options.seeds} seed(s). {what}\n\n"
        RESULT.write_text(title + "\n".join(lines) + "\n")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
