"""What is tried: every estimator, the functions around them, tables, the command line, the criterion for networks."""

from __future__ import annotations

import inspect
import io
import os
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import HuberRegressor, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import selfpaced
from selfpaced import datasets, metrics
from selfpaced.pacing import Fixed, Geometric, check_pace
from selfpaced.regularizers import REGISTRY, GroupRegularizer, get
from selfpaced.tables import TableError, preprocessor, read_table

from .draws import JUNK, SCALES, Draw, features, rows_of, table, target, weight
from .verdicts import attempt, finite

DATA_NAMES = [
    "X",
    "y",
    "sample_weight",
    "rows",
    "columns",
    "view",
    "views",
    "mask",
    "fitted",
    "weights",
    "n",
    "threshold",
]

CLASSIFIERS = [
    LogisticRegression(max_iter=50), DecisionTreeClassifier(max_depth=3, random_state=0), GaussianNB(),
    KNeighborsClassifier(3), SVC(), RidgeClassifier(), DummyClassifier(), make_pipeline(StandardScaler(), GaussianNB()),
    HistGradientBoostingClassifier(max_iter=5), RandomForestClassifier(5, random_state=0),
    CalibratedClassifierCV(GaussianNB(), cv=2),
]  # fmt: skip
REGRESSORS = [
    Ridge(), DecisionTreeRegressor(max_depth=3, random_state=0), KNeighborsRegressor(3), DummyRegressor(), SVR(),
    make_pipeline(StandardScaler(), Ridge()), RandomForestRegressor(5, random_state=0), HuberRegressor(max_iter=30),
]  # fmt: skip

#: Other values that a parameter may well have.
SENSIBLE: dict[str, list[Any]] = {
    "regularizer": [*REGISTRY, get("welsch"), get("hard")],
    "pace": ["auto", "paper", 0.3, 3, 1e6, 1e-6, np.inf, Fixed(1.0), Geometric()],
    "C": ["auto", 0.1, 1.0, 1e6, 1e-9],
    "penalty": ["l2", None],
    "alpha": [0.0, 1.0, 1e-9, 1e9],
    "class_weight": ["balanced", {0: 1.0, 1: 5.0}, {0: 0.0, 1: 1.0}, {"no": 2.0}],
    "tol": [1e-9, 1e-2, 1.0],
    "max_iter": [1, 2, 30],
    "rank": [1, 2, 5, "auto"],
    "n_clusters": [1, 2, 5, 30],
    "view_scaling": ["zscore", "variance", "unit-row", "none"],
    "embedding": [None, "spectral"],
    "cv": [2, 3, "auto"],
    "how": ["drop", "weight"],
    "center": ["auto", "both", "rows", "columns", None],
    "bounds": [(0, 1), (-5.0, 5.0), None],
    "backend": ["numpy", "auto"],
    "cross_fit": [True, False, "auto"],
    "start": ["auto", "robust", "plain"],
    "warm_start": [True],
}


def options(kind: type, draw: Draw, share: float = 0.08) -> dict[str, Any]:
    """Some parameters of a class: sensible ones, and junk."""
    found = {}
    for name in inspect.signature(kind.__init__).parameters:
        if name != "self" and draw.chance(share):
            found[name] = draw.one(SENSIBLE[name] if name in SENSIBLE and draw.chance(0.6) else JUNK)
    return found


def names_of(kind: type) -> list[str]:
    return [name for name in inspect.signature(kind.__init__).parameters if name != "self"] + DATA_NAMES


# ----------------------------------------------------------------------------------------------------- estimators


def _supervised(kind: type, draw: Draw, labels: bool, base: Any = None) -> None:
    given = {} if base is None else {"estimator": clone(base)}
    model = kind(**{**given, **options(kind, draw)})
    X = features(draw)
    y = target(rows_of(X), draw, "labels" if labels else "values")
    sample_weight = weight(rows_of(X), draw)
    extra = {} if sample_weight is None else {"sample_weight": sample_weight}
    names, ours = names_of(kind), base is None

    def call(function: Callable[[], Any]) -> Any:
        try:
            return attempt(function, names, ours=ours)
        except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError):
            if ours or not _base_fails(base, X, y, extra):
                raise
            return None

    if call(lambda: model.fit(X, y, **extra)) is None:
        return
    n = len(model.sample_weight_)
    finite("sample_weight_", model.sample_weight_, (n,))
    finite("noise_rate_", model.noise_rate_)
    again = [X, table(draw), features(draw)]
    for fresh in again if draw.chance(0.5) else again[:1]:
        for method in ("predict", "predict_proba", "decision_function"):
            if not hasattr(model, method):
                continue
            if not ours and _refuses(model.estimator_, fresh):
                continue
            found = call(lambda fresh=fresh, method=method: getattr(model, method)(fresh))
            if found is not None:
                finite(method, found)
                if len(found) != rows_of(fresh):
                    raise AssertionError(f"{method} gives {len(found)} rows for {rows_of(fresh)}")
    judged = call(lambda: model.judge(X, y))
    if judged is not None:
        finite("weight", judged.weight, (n,))
    call(lambda: selfpaced.suspects(model, X, y, n=draw.one([None, 3, 0, -1, "a", 2.5])))
    if labels:
        call(lambda: selfpaced.label_issues(model, X, y, threshold=draw.one([None, 0.5, 2.0, "a"])))


def _refuses(model: Any, X: Any) -> bool:
    """Whether a wrapped model refuses these rows itself."""
    try:
        finite("predict", model.predict(X))
    except (ValueError, TypeError, AssertionError):
        return True
    return False


def _base_fails(base: Any, X: Any, y: Any, extra: dict[str, Any]) -> bool:
    """Whether the wrapped model alone cannot do it either; rows held out may lack what it needs."""
    for rows in (slice(None), slice(None, None, 2), slice(None, rows_of(X) // 2 + 1), slice(1, None, 3)):
        try:
            part = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
            model = clone(base).fit(part, np.asarray(y)[rows])
            finite("predict", model.predict(part))
        except Exception:
            return True
    return False


def logistic(draw: Draw) -> None:
    _supervised(selfpaced.SelfPacedLogisticRegression, draw, labels=True)


def linear(draw: Draw) -> None:
    _supervised(selfpaced.SelfPacedLinearRegression, draw, labels=False)


def classifier(draw: Draw) -> None:
    _supervised(selfpaced.SelfPacedClassifier, draw, True, draw.one(CLASSIFIERS))


def regressor(draw: Draw) -> None:
    _supervised(selfpaced.SelfPacedRegressor, draw, False, draw.one(REGRESSORS))


def suspect_filter(draw: Draw) -> None:
    labels = draw.chance(0.5)
    judge = selfpaced.SelfPacedLogisticRegression() if labels else selfpaced.SelfPacedLinearRegression()
    base = draw.one(CLASSIFIERS[:4] if labels else REGRESSORS[:3])
    kind = selfpaced.SuspectFilter
    model = kind(**{"judge": judge, "estimator": clone(base), **options(kind, draw)})
    X = features(draw)
    y = target(rows_of(X), draw, "labels" if labels else "values")
    try:
        fitted = attempt(lambda: model.fit(X, y), names_of(kind), ours=False)
    except (ValueError, TypeError):
        if _base_fails(base, X, y, {}):
            return
        raise
    if fitted is not None and not _base_fails(base, X, y, {}):
        finite("predict", model.predict(X))


def _matrix(kind: type, draw: Draw) -> None:
    model = kind(**{"random_state": 0, **options(kind, draw)})
    X = features(draw)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.size and X.dtype.kind == "f" and draw.chance(0.4):
        X = np.where(draw.rng.random(X.shape) < 0.3, np.nan, X)
    names = [*names_of(kind), "entry", "entries", "matrix"]
    sample_weight = weight(rows_of(X), draw)
    extra = {} if sample_weight is None else {"sample_weight": sample_weight}
    if attempt(lambda: model.fit(X, **extra), names) is None:
        return
    whole = attempt(lambda: model.reconstruct(), names)
    finite("reconstruct", whole)
    fresh = draw.one([X, table(draw), features(draw)])
    found = attempt(lambda: model.transform(fresh), names)
    if found is not None:
        finite("transform", found)
        finite("inverse_transform", attempt(lambda: model.inverse_transform(found), names))
    entries = draw.one([([0], [0]), ([0, 1], 0), ([99], [0]), ("a", "b"), ([-1], [0]), ([0.5], [0]), (None, [1])])
    found = attempt(lambda: model.predict(*entries), names)
    if found is not None:
        finite("predict", found)
    attempt(lambda: selfpaced.suspects(model, n=draw.one([None, 3])), names)


def factorization(draw: Draw) -> None:
    _matrix(selfpaced.SelfPacedMF, draw)


def prmf(draw: Draw) -> None:
    _matrix(selfpaced.PRMF, draw)


def clustering(draw: Draw) -> None:
    kind = selfpaced.SelfPacedMultiViewKMeans
    model = kind(**{"n_clusters": draw.one([2, 2, 3, 1]), "random_state": 0, "n_init": 3, **options(kind, draw)})
    X = features(draw)
    if draw.chance(0.3):
        X = draw.one([[X, X], {"a": X, "b": table(draw)}, [X, None], {"a": X}, [], (X, table(draw), X)])
    n = rows_of(X) if not isinstance(X, list | dict | tuple) else 5
    sample_weight = weight(n, draw)
    names = names_of(kind)
    if attempt(lambda: model.fit(X, sample_weight=sample_weight), names) is None:
        return
    finite("labels_", model.labels_)
    finite("sample_weight_", model.sample_weight_)
    for fresh in (X, features(draw)):
        for method in ("predict", "transform", "score"):
            found = attempt(lambda method=method, fresh=fresh: getattr(model, method)(fresh), names)
            if found is not None:
                finite(method, found)


# ------------------------------------------------------------------------------------------------------ functions

FLIPS = [datasets.flip_symmetric, datasets.flip_class_conditional]
FLIPS_BY_ROW = [datasets.flip_instance_dependent, datasets.flip_near_border, datasets.outliers_leverage]
SHIFTS = [datasets.outliers_one_sided, datasets.outliers_symmetric]
SCORES = [
    metrics.clustering_accuracy, metrics.normalized_mutual_info, metrics.adjusted_rand, metrics.pairwise_f,
    metrics.purity, metrics.clustering_scores, metrics.pairwise_precision_recall,
]  # fmt: skip


def _some(draw: Draw, usual: list[Any]) -> Any:
    return draw.one(usual) if draw.chance(0.7) else draw.one(JUNK)


def noise(draw: Draw) -> None:
    names = ["rate", "rates", "random_state", "size", "distance", *DATA_NAMES]
    X = features(draw)
    function = draw.one([*FLIPS, *FLIPS_BY_ROW, *SHIFTS])
    labels = function in FLIPS or function in FLIPS_BY_ROW[:2]
    y = target(rows_of(X), draw, "labels" if labels else "values")
    rate = _some(draw, [0.0, 0.1, 0.5, 1.0, [0.1, 0.2], {0: 0.1, 1: 0.3}])
    arguments = (X, y, rate) if function in FLIPS_BY_ROW else (y, rate)
    found = attempt(lambda: function(*arguments, random_state=_some(draw, [0, 1, None])), names)
    if found is not None and not labels:
        finite(function.__name__, found[0] if isinstance(found, tuple) else found.target)


def scores(draw: Draw) -> None:
    n = draw.one([0, 1, 5, 20])
    function = draw.one(SCORES)
    truth, guess = target(n, draw, "labels"), target(draw.one([n, n, n, n + 1]), draw, "labels")
    found = attempt(lambda: function(truth, guess), ["y_true", "y_pred"])
    if found is not None:
        finite(function.__name__, list(found.values()) if isinstance(found, dict) else found)


def rules(draw: Draw) -> None:
    name = _some(draw, list(REGISTRY))
    names = ["regularizer", "loss", "losses", "lam", "pace", "rule"]
    rule = attempt(lambda: get(name), names)
    attempt(lambda: check_pace(_some(draw, SENSIBLE["pace"])), names)
    if rule is None or not hasattr(rule, "opens"):
        return
    losses = np.abs(draw.rng.normal(size=draw.one([0, 1, 5]))) * draw.one([0.0, 1.0, *SCALES[:-1]])
    lam = draw.one([1e-6, 0.5, 1.0, 3.0, 1e6])
    if isinstance(rule, GroupRegularizer) or not np.isfinite(losses).all():
        return
    found = attempt(lambda: rule.weight(losses, lam), names, ours=False)
    if found is not None:
        finite("weight", found, losses.shape)


# --------------------------------------------------------------------------------------------------------- tables

CELLS = [
    "1", "2.5", "-3", "1e5", "1,5", "", "NA", "nan", "inf", "1e999", "abc", "yes", "no", "2020-01-01", "01/02/2020",
    '"quoted"', '"a,b"', '"open', "=1+1", "'=x", "\t", ";", "\x00", "é", "\ud83d", "None", "-", "1_000", "0x1f", "٣",
    "x" * 500, " 7 ", "TRUE", "12:30", "1e400", "-0",
]  # fmt: skip
ENDS = ["\n", "\n", "\n", "\r\n", "\r"]


def _file(draw: Draw, folder: Path) -> Path:
    columns, rows, sign, end = draw.one([1, 2, 3]), draw.one([0, 1, 3, 12, 30]), draw.one(",,,;\t|"), draw.one(ENDS)
    plain = draw.chance(0.6)
    lines = [sign.join(f"c{j}" for j in range(columns))] if draw.chance(0.9) else []
    for i in range(rows):
        width = columns if draw.chance(0.97) else columns + 1
        cells = [f"{draw.rng.normal():.3f}" if j < columns - 1 else "ab"[i % 2] for j in range(width)]
        if not plain and draw.chance(0.5):
            cells[int(draw.rng.integers(width))] = draw.one(CELLS)
        lines.append(sign.join(cells))
    data = (end.join(lines) + end * draw.one([0, 1, 2])).encode("utf-8", "surrogatepass")
    if draw.chance(0.1):
        data = draw.one(
            [b"\xff\xfe" + data, b"\xef\xbb\xbf" + data, bytes(draw.rng.bytes(40)), data[:7], b"\x1f\x8b" + data]
        )
    path = folder / f"t{draw.one(['.csv', '.csv', '.csv', '.tsv', '.txt', '.csv.gz', '.parquet', ''])}"
    path.write_bytes(data)
    return path


def tables(draw: Draw) -> None:
    names = ["separator", "header", "encoding", "columns", "X", "t"]
    with tempfile.TemporaryDirectory() as folder:
        path = _file(draw, Path(folder))
        given = {"encoding": draw.one(["utf-8", "latin-1", "nope"])} if draw.chance(0.1) else {}
        if draw.chance(0.1):
            given["separator"] = draw.one([",", ";", "", "ab", "\n", '"'])
        try:
            loaded = attempt(lambda: read_table(path, header=draw.chance(0.8), **given), names)
        except TableError:
            return
        if loaded is None:
            return
        loaded.lines.of(range(len(loaded.frame)))
        prepare = preprocessor(draw.one(["linear", "tree"]))
        found = attempt(lambda: prepare.fit_transform(loaded.frame), [*names, "column", "table"])
        if found is not None:
            if len(found) != len(loaded.frame):
                raise AssertionError("rows are lost")
            if np.isinf(np.asarray(found, dtype=float)).any():
                raise AssertionError("features are infinite")


VALUED = ["--task", "--model", "--pace", "--regularizer", "--separator", "--out", "--threshold", "--exclude"]
ANSWERS = ["regression", "classification", "ridge", "logistic", "auto", "paper", "2", "-1", "nan", "", ",", "c0", "o"]


def command(draw: Draw) -> None:
    from selfpaced.cli import main

    words = [draw.one(["fit", "fit", "predict", "clean", "check", "list", "nonsense"])]
    with tempfile.TemporaryDirectory() as folder:
        path, there = _file(draw, Path(folder)), os.getcwd()
        words += [str(path)] if draw.chance(0.9) else []
        words += ["--target", draw.one(["c0", "c1", "c2", "column_1", "", "x"])] if draw.chance(0.8) else []
        for option in ("--no-report", "--quiet", "--json", "--no-header", "--skip-broken", "--force"):
            words += [option] if draw.chance(0.3) else []
        for option in (
            "--task",
            "--model",
            "--pace",
            "--regularizer",
            "--separator",
            "--out",
            "--threshold",
            "--exclude",
        ):
            pool = [
                "regression",
                "classification",
                "ridge",
                "logistic",
                "auto",
                "paper",
                "2",
                "-1",
                "nan",
                "",
                ",",
                "c0",
                "o",
            ]
            words += [option, draw.one(pool)] if draw.chance(0.06) else []
        os.chdir(folder)
        said = io.StringIO()
        try:
            with redirect_stdout(said), redirect_stderr(said):
                code = main(words)
        finally:
            os.chdir(there)
    if code not in (0, 1, 2, 3, 4, 5) or "Traceback" in said.getvalue():
        raise AssertionError(f"exit code {code} of {words}: {said.getvalue()[-300:]}")


# --------------------------------------------------------------------------------------------------------- networks


def network(draw: Draw) -> None:
    import torch

    from selfpaced.torch import SelfPacedLoss

    names = [*inspect.signature(SelfPacedLoss.__init__).parameters, "output", "target", "logits", "labels"]
    given = {}
    for name in ("regularizer", "pacing", "n", "n_classes", "ignore_index", "label_smoothing", "trusted", "validation"):
        if draw.chance(0.1):
            given[name] = draw.one([*REGISTRY, 0.5, 3]) if draw.chance(0.5) else draw.one(JUNK)
    criterion = attempt(lambda: SelfPacedLoss(**given), names)
    if criterion is None:
        return
    torch.manual_seed(0)
    for _ in range(2):
        shape = draw.one([(8, 3), (8, 3), (8, 3), (1, 2), (8, 3, 2), (8,), (0, 3)])
        output = torch.randn(shape) * draw.one([1.0, 1.0, 1e30, 0.0])
        labels = (
            torch.randint(0, 2, (shape[0], *shape[2:]))
            if draw.chance(0.8)
            else draw.one(
                [torch.full((8,), 7), torch.zeros(8), torch.zeros(5, dtype=torch.long), torch.full((8, 3), 1 / 3), None]
            )
        )
        loss = attempt(lambda output=output, labels=labels: criterion(output, labels), names)
        if loss is not None and shape[0]:
            finite("loss", float(loss.detach()))
        attempt(criterion.step_epoch, names)


SUBJECTS: dict[str, Callable[[Draw], None]] = {
    "logistic": logistic,
    "linear": linear,
    "classifier": classifier,
    "regressor": regressor,
    "suspect_filter": suspect_filter,
    "factorization": factorization,
    "prmf": prmf,
    "clustering": clustering,
    "noise": noise,
    "scores": scores,
    "rules": rules,
    "tables": tables,
    "command": command,
    "network": network,
}
