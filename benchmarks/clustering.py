"""Multi-view clustering against what people would pick instead.

    python benchmarks/clustering.py [--quick] [--save] [--parts PART ...]

Sections: ``paper`` (the paper's table on its own scaling), ``rules`` (every rule, default setting),
``embedding`` (against SpectralClustering), ``sets`` (other data, the same settings), ``scaling`` (views of
different forms), ``public`` (public sets), ``ablation`` (what each mechanism earns), ``count`` (how many clusters),
``score`` (by their number), ``holes`` (entries missing), ``corruption`` and ``speed``. UCI digits and public sets are
read from the directory in SELFPACED_DATA. No labels are seen by any method; seeds of data, corruption and
initialisation are apart.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from sections import main, say
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits
from view_sets import (
    counted_sets,
    gross,
    iris_views,
    looked_at_once,
    noise_view,
    of_many_forms,
    public_sets,
    swapped,
    wine_views,
    with_holes,
)

from selfpaced import SelfPacedMultiViewKMeans
from selfpaced.clustering import estimator, paced
from selfpaced.datasets import make_multiview_digits
from selfpaced.regularizers import REGISTRY, Regularizer
from selfpaced_experiments.baselines import concatenated_kmeans, per_view_kmeans, scale_views
from selfpaced_experiments.data import load_mfeat, load_spambase
from selfpaced_experiments.metrics import clustering_accuracy, clustering_scores

METRICS = ("ACC", "NMI", "AR", "F", "Purity")
PAPER = {
    "hard": (0.821, 0.758, 0.709, 0.739, 0.834),
    "mixture": (0.845, 0.812, 0.763, 0.787, 0.861),
    "mspl": (0.840, 0.806, 0.751, 0.776, 0.854),
    "huber": (0.843, 0.810, 0.756, 0.781, 0.858),
    "l1l2": (0.835, 0.801, 0.743, 0.769, 0.849),
    "cauchy": (0.845, 0.814, 0.762, 0.786, 0.861),
    "welsch": (0.862, 0.833, 0.790, 0.812, 0.878),
}
PAPER_BASELINES = {
    "fou": (0.612, 0.628, 0.484, 0.539, 0.645),
    "fac": (0.588, 0.597, 0.453, 0.512, 0.631),
    "kar": (0.734, 0.730, 0.634, 0.672, 0.767),
    "mor": (0.415, 0.500, 0.295, 0.374, 0.475),
    "pix": (0.677, 0.701, 0.585, 0.629, 0.711),
    "zer": (0.524, 0.504, 0.369, 0.434, 0.551),
    "Con-MC": (0.775, 0.773, 0.690, 0.722, 0.802),
}
Views = dict[str, np.ndarray]
Lines = Iterator[str]


def side_by_side(views: Views) -> np.ndarray:
    """The table the peers get: the same scaling as ours, in double precision."""
    return np.hstack(list(scale_views(views).values())).astype(np.float64)


def kmeans(views: Views, k: int, seed: int) -> np.ndarray:
    return KMeans(k, n_init=10, random_state=seed).fit_predict(side_by_side(views))


def spectral(views: Views, k: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a graph that is not connected
        peer = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)
        return peer.fit_predict(side_by_side(views))


def ours(**settings: Any) -> Callable[[Views, int, int], np.ndarray]:
    return lambda views, k, seed: SelfPacedMultiViewKMeans(k, random_state=seed, **settings).fit_predict(views)


def scores(target: np.ndarray, labels: np.ndarray) -> list[float]:
    return list(clustering_scores(target, labels).values())


def cells(values: list[list[float]]) -> str:
    table = np.array(values)
    return " | ".join(f"{m:.3f} ({s:.3f})" for m, s in zip(table.mean(0), table.std(0), strict=True))


def header(first: str, *columns: str) -> Lines:
    yield f"| {first} | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"


def paper(seeds: int) -> Lines:
    """The paper's table on its scaling (unit rows)."""
    data = load_mfeat()
    yield f"UCI digits, unit rows, {seeds} seeds, mean (sd). A row wins if all five means are above the paper's.\n"
    yield from header("method", *METRICS, "paper ACC / NMI / AR / F / Purity", "above in all five")
    rows: dict[str, list[list[float]]] = {}
    for seed in range(seeds):
        for name, labels in per_view_kmeans(data.views, 10, random_state=seed).items():
            rows.setdefault(str(name), []).append(scores(data.target, labels))
        labels = concatenated_kmeans(data.views, 10, random_state=seed)
        rows.setdefault("Con-MC", []).append(scores(data.target, labels))
    for name, values in rows.items():
        said = " / ".join(f"{cell:.3f}" for cell in PAPER_BASELINES[name])
        yield f"| {name} (baseline, one start) | {cells(values)} | {said} | |"
    for rule, said in PAPER.items():
        fit = ours(regularizer=rule, view_scaling="unit-row")
        values = [scores(data.target, fit(data.views, 10, seed)) for seed in range(seeds)]
        above = bool((np.mean(values, axis=0) > said).all())
        yield f"| {rule} | {cells(values)} | {' / '.join(f'{c:.3f}' for c in said)} | {'yes' if above else 'NO'} |"


def rules(seeds: int) -> Lines:
    """Every rule in the default setting."""
    data = load_mfeat()
    yield f"UCI digits, default setting, {seeds} seeds. To reach: .972 / .940 (welsch), .968 / .930 (others).\n"
    yield from header("method", *METRICS, "reached")
    values = [scores(data.target, kmeans(data.views, 10, seed)) for seed in range(seeds)]
    yield f"| KMeans(n_init=10) | {cells(values)} | |"
    names = [name for name, rule in REGISTRY.items() if issubclass(rule, Regularizer)]
    for rule in ["welsch", "mspl", *sorted(set(names) - {"welsch"})]:
        values = [scores(data.target, ours(regularizer=rule)(data.views, 10, seed)) for seed in range(seeds)]
        accuracy, information = np.mean(values, axis=0)[:2]
        need = (0.972, 0.94) if rule == "welsch" else (0.968, 0.93)
        yield f"| {rule} | {cells(values)} | {'yes' if accuracy >= need[0] and information >= need[1] else 'NO'} |"


def embedding(seeds: int) -> Lines:
    """Spectral embeddings in front, against scikit-learn's SpectralClustering."""
    data = load_mfeat()
    yield f"UCI digits, {seeds} seeds. To reach: .982 / .955.\n"
    yield from header("method", *METRICS, "seconds")
    for name, fit in {
        "SpectralClustering(nearest neighbours)": spectral,
        "welsch, embedding": ours(embedding="spectral"),
        "cauchy, embedding": ours(embedding="spectral", regularizer="cauchy"),
        "plain k-means, embedding": ours(embedding="spectral", regularizer=None),
    }.items():
        began = time.perf_counter()
        values = [scores(data.target, fit(data.views, 10, seed)) for seed in range(seeds)]
        yield f"| {name} | {cells(values)} | {(time.perf_counter() - began) / seeds:.1f} |"


def other_sets() -> dict[str, tuple[Views, np.ndarray]]:
    digits, breast = make_multiview_digits(), load_breast_cancer()
    spam = load_spambase()
    return {
        "digits 8x8: pixels, Fourier, profiles, moments": (digits.views, digits.target),
        "breast: mean, error, worst": (
            {"mean": breast.data[:, :10], "error": breast.data[:, 10:20], "worst": breast.data[:, 20:]},
            breast.target,
        ),
        "wine: acid and ash, phenols, colour": wine_views(),
        "iris: sepal, petal": iris_views(),
        "spambase: words, characters, capitals": (
            {"words": spam.data[:, :48], "characters": spam.data[:, 48:54], "capitals": spam.data[:, 54:]},
            spam.target,
        ),
    }


METHODS = {
    "KMeans(n_init=10)": kmeans,
    "SpectralClustering": spectral,
    "ours (default)": ours(),
    "ours (embedding)": ours(embedding="spectral"),
}


def sets(seeds: int) -> Lines:
    """The same settings, unchanged, on other multi-view data."""
    yield f"ACC / NMI, mean over {seeds} seeds; the best ACC of a row in bold.\n"
    yield from header("data", *METHODS)
    for name, (views, target) in other_sets().items():
        k = len(np.unique(target))
        found = [
            np.mean([scores(target, fit(views, k, seed))[:2] for seed in range(seeds)], axis=0)
            for fit in METHODS.values()
        ]
        best = max(value[0] for value in found)
        shown = [f"{a:.3f} / {i:.3f}" if a < best else f"**{a:.3f}** / {i:.3f}" for a, i in found]
        yield f"| {name} | {' | '.join(shown)} |"


SCALINGS = ("zscore", "unit-row", "auto")


def scaling(seeds: int) -> Lines:
    """Views of different forms: z-scores, unit rows, and what the form of each view asks for."""
    yield f"ACC, mean over {seeds} seeds; in bold what is less than .005 below the best of its row.\n"
    for title, sets in (("studied", of_many_forms()), ("looked at once", looked_at_once())):
        yield from header(f"data, {title}", *SCALINGS, "chosen")
        for name, (views, target) in sets.items():
            k = len(np.unique(target))
            found = {}
            for choice in SCALINGS:
                models = [
                    SelfPacedMultiViewKMeans(k, view_scaling=choice, random_state=seed).fit(views)
                    for seed in range(seeds)
                ]
                found[choice] = float(np.mean([clustering_accuracy(target, model.labels_) for model in models]))
            best = max(found.values())
            shown = [f"**{value:.3f}**" if value > best - 0.005 else f"{value:.3f}" for value in found.values()]
            chosen = ", ".join(f"{view}: {how}" for view, how in models[-1].view_scaling_.items())
            yield f"| {name} | {' | '.join(shown)} | {chosen} |"
        yield ""


def count(seeds: int) -> Lines:
    """The number of clusters chosen by the agreement of halves."""
    yield f"n_clusters='auto', {seeds} draws; a class of a real set need not be a cluster.\n"
    yield from header("data", "true", "chosen", "agreement of the halves on it")
    rows: dict[str, tuple[int, list[int], list[float]]] = {}
    for seed in range(seeds):
        public = ((name, len(np.unique(target)), views) for name, target, views in public_sets())
        for name, true, X in (*counted_sets(seed), *public):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # unsure: shown by an agreement below .9
                model = SelfPacedMultiViewKMeans("auto", n_init=1, n_keep=1, random_state=seed).fit(X)
            _, chosen, agreement = rows.setdefault(name, (true, [], []))
            chosen.append(model.n_clusters_)
            agreement.append(model.cluster_agreement_.get(model.n_clusters_, max(model.cluster_agreement_.values())))
    for name, (true, chosen, agreement) in rows.items():
        yield f"| {name} | {true} | {' '.join(map(str, sorted(chosen)))} | {np.mean(agreement):.2f} |"


def score(seeds: int) -> Lines:
    """The score by the number of clusters: it does not just rise with it."""
    yield f"`score` on rows that were not fitted, mean over {seeds} draws; the highest of a row in bold.\n"
    factors = (0.5, 1, 1.5, 2, 3)
    yield from header("data", *(f"{factor:g} times the true number" for factor in factors))
    rows: dict[str, list[list[float]]] = {}
    for seed in range(seeds):
        for name, true, X in counted_sets(seed):
            if true == 1:
                continue
            views = X if isinstance(X, dict) else {"all": X}
            half = np.random.default_rng([seed, 9]).permutation(next(iter(views.values())).shape[0])
            seen, new = ({view: block[part] for view, block in views.items()} for part in np.array_split(half, 2))
            counts = [max(round(factor * true), 2) for factor in factors]
            found = [SelfPacedMultiViewKMeans(k, random_state=seed).fit(seen).score(new) for k in counts]
            rows.setdefault(name, []).append(found)
    for name, found in rows.items():
        means = np.mean(found, axis=0)
        shown = (f"**{value:.3f}**" if value == means.max() else f"{value:.3f}" for value in means)
        yield f"| {name} | {' | '.join(shown)} |"


def holes(seeds: int) -> Lines:
    """Entries that are not known: rows that are there in part."""
    yield f"ACC with a share of all entries missing at random, mean over {seeds} draws; the better one in bold."
    yield "KMeans(n_init=10) gets the mean of the column for what is missing.\n"
    shares = (0.0, 0.1, 0.3, 0.5)
    yield from header("data", *(f"{who}, {share:.0%}" for share in shares for who in ("KMeans", "ours")))
    data = load_mfeat()
    chosen = {"UCI digits": (data.views, data.target), "iris": iris_views(), "wine": wine_views()}
    for name, (views, target) in chosen.items():
        k, shown = len(np.unique(target)), []
        for share in shares:
            found = np.zeros((seeds, 2))
            for seed in range(seeds):
                given = with_holes(views, share, np.random.default_rng(2000 + seed))
                filled = {view: np.where(np.isnan(b), np.nanmean(b, axis=0), b) for view, b in given.items()}
                found[seed] = [
                    scores(target, fit(part, k, seed))[0] for fit, part in ((kmeans, filled), (ours(), given))
                ]
            means = found.mean(axis=0)
            shown += [f"**{value:.3f}**" if value == means.max() else f"{value:.3f}" for value in means]
        yield f"| {name} | {' | '.join(shown)} |"


CORRUPTIONS = {
    "noise of 3 sd in all views of 20 %": gross,
    "noise of 10 sd in all views of 20 %": lambda views, rng: gross(views, rng, scale=10),
    "noise of 3 sd in half the views of 20 %": lambda views, rng: gross(views, rng, partly=True),
    "half the views of 20 % swapped": swapped,
    "one view of pure noise": noise_view,
}


def corruption(seeds: int) -> Lines:
    """How much accuracy is lost under corruption."""
    yield f"ACC on clean data, and ACC (loss) under corruption, mean over {seeds} draws; the smallest loss in bold.\n"
    data = load_mfeat()
    chosen = {"UCI digits": (data.views, data.target)} | dict(list(other_sets().items())[:4])
    yield from header("data, corruption", *METHODS)
    for name, (views, target) in chosen.items():
        k = len(np.unique(target))
        clean = [np.mean([scores(target, fit(views, k, s))[0] for s in range(seeds)]) for fit in METHODS.values()]
        yield f"| {name.split(':')[0]}: clean | {' | '.join(f'{value:.3f}' for value in clean)} |"
        for what, corrupt in CORRUPTIONS.items():
            found = np.zeros((seeds, len(METHODS)))
            for seed in range(seeds):
                spoilt, scored = corrupt(views, np.random.default_rng(1000 + seed))
                for column, fit in enumerate(METHODS.values()):
                    found[seed, column] = scores(target[scored], fit(spoilt, k, seed)[scored])[0]
            loss = np.array(clean) - found.mean(0)
            shown = [
                f"{value:.3f} ({-lost:+.3f})" if lost > loss.min() else f"{value:.3f} (**{-lost:+.3f}**)"
                for value, lost in zip(found.mean(0), loss, strict=True)
            ]
            yield f"| {name.split(':')[0]}: {what} | {' | '.join(shown)} |"


def clocked(run: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def enlarged(n: int, seed: int) -> Views:
    """Six views of n digits: resampled UCI digits with a third of a standard deviation of noise."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(2000, size=n)
    return {
        name: view[rows] + 0.33 * view.std(0) * rng.standard_normal((n, view.shape[1]))
        for name, view in load_mfeat().views.items()
    }


def speed(repeats: int) -> Lines:
    """Cost of a default fit, in units of one KMeans(n_init=10) of the same run."""
    views = load_mfeat().views
    table = side_by_side(views)
    yield f"n = 2,000, six views, 649 columns; {repeats} alternating repeats, median ratio. To reach: <= 1.5."
    yield "On a busy machine OpenMP threads wait for each other: there only the row of one thread is a fair ratio.\n"
    yield from header("threads", "KMeans(n_init=10), s", "ours, s", "ratio of wall time", "ratio of CPU time")
    for threads in (1, 2):
        with threadpool_limits(threads):
            pairs = []
            for seed in range(repeats):
                peer = clocked(lambda seed=seed: KMeans(10, n_init=10, random_state=seed).fit(table))
                own = clocked(lambda seed=seed: SelfPacedMultiViewKMeans(10, random_state=seed).fit(views))
                pairs.append((peer[0], own[0], own[0] / peer[0], own[1] / peer[1]))
        peer_s, own_s, wall, cpu = np.median(pairs, axis=0)
        yield f"| {threads} | {peer_s:.2f} | {own_s:.2f} | {wall:.2f} | {cpu:.2f} |"
    yield "\nGrowth with n, one thread, six views of noisy resampled digits, CPU seconds.\n"
    yield from header("n", "ours, s", "ours, microseconds per sample", "KMeans(n_init=10), s", "ratio")
    sizes = [1_000, 2_000, 5_000, 10_000] if repeats < 3 else [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000]
    with threadpool_limits(1):
        for n in sizes:
            views = enlarged(n, 0)
            _, own = clocked(lambda views=views: SelfPacedMultiViewKMeans(10, random_state=0).fit(views))
            line = f"| {n:,} | {own:.2f} | {1e6 * own / n:.0f}"
            if n > 20_000:  # the peer takes minutes from here on
                yield f"{line} | | |"
                continue
            table = side_by_side(views)
            _, peer = clocked(lambda table=table: KMeans(10, n_init=10, random_state=0).fit(table))
            yield f"{line} | {peer:.2f} | {own / peer:.2f} |"


def public(seeds: int) -> Lines:
    """Public sets, on which the rule for the number of clusters was chosen: accuracy, a shuffled view, the number."""
    yield f"ACC, mean over {seeds} seeds. `k-means` gets unit rows side by side, `spectral` the better of unit rows and"
    yield "z-scores (by ACC, which no user knows). `behind` names the peers that are ahead of the default by more than"
    yield ".005. `shuffled` are the weights of the first view, its rows shuffled, and of the others on average.\n"
    columns = "k-means", "spectral", "ours", "ours (embedding)", "behind", "shuffled: first / others", "true", "auto"
    yield from header("data", *columns)
    for name, target, views in public_sets():
        k, unit = len(np.unique(target)), np.hstack([normalize(block) for block in views.values()])
        peers = [KMeans(k, n_init=10, random_state=s).fit_predict(unit) for s in range(seeds)]
        found = {"k-means": np.mean([scores(target, labels)[0] for labels in peers])}
        graph = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=0)
        found["spectral"] = max(scores(target, spectral(views, k, 0))[0], scores(target, graph.fit_predict(unit))[0])
        for who, setting in (("ours", {}), ("ours (embedding)", {"embedding": "spectral"})):
            found[who] = np.mean([scores(target, ours(**setting)(views, k, s))[0] for s in range(seeds)])
        behind = [who for who in ("k-means", "spectral") if found[who] > found["ours"] + 0.005]
        first = next(iter(views))
        mixed = {**views, first: views[first][np.random.default_rng(0).permutation(len(target))]}
        weight = SelfPacedMultiViewKMeans(k, random_state=0).fit(mixed).view_weight_
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SelfPacedMultiViewKMeans("auto", n_init=1, n_keep=1, random_state=0).fit(views)
        shown = " | ".join(f"{value:.3f}" for value in found.values())
        count = f"{model.n_clusters_}{' (unsure)' * (model.n_clusters_status_ == 'unsure')}"
        weights = f"{weight[0]:.2f} / {weight[1:].mean():.2f}"
        yield f"| {name} | {shown} | {', '.join(behind) or '-'} | {weights} | {k} | {count} |"


def ablation(seeds: int) -> Lines:
    """What each mechanism earns: accuracy with it less accuracy without it."""
    yield f"Mean and standard error over {seeds} seeds; noise: 10 sd in all views of a fifth of the samples.\n"

    def nothing(views: Any, clusters: int, *_: Any) -> list[np.ndarray]:
        return [np.empty((0, clusters, block.shape[1]), views.dtype) for block in views.blocks]

    switches = {
        "self-paced path": {"regularizer": None},
        "agreement of views": patch.object(estimator, "view_trust", lambda data, *_: np.ones(len(data.blocks))),
        "robust start": patch.object(paced, "START_WIDTH", 1e9),
        "spectral starts": patch.object(paced, "spectral_centers", nothing),
        "pruned restarts": {"n_keep": 20},
    }
    yield from header("data", "ACC", *switches)
    data = load_mfeat()
    chosen = {"UCI digits": (data.views, data.target)} | dict(list(other_sets().items())[:4])
    chosen |= {name: (views, target) for name, target, views in public_sets() if len(target) < 650}
    for name, (views, target) in chosen.items():
        for what in ("clean", "noise"):
            X, scored = gross(views, np.random.default_rng(1), scale=10) if what == "noise" else (views, slice(None))
            k, found = len(np.unique(target)), {switch: [] for switch in ("", *switches)}  # type: ignore[var-annotated]
            for seed in range(seeds):
                for switch in found:
                    off = switches.get(switch, {})
                    with nullcontext() if isinstance(off, dict) else off:
                        fit = ours(**(off if isinstance(off, dict) else {}))
                        found[switch].append(scores(target[scored], fit(X, k, seed)[scored])[0])
            whole = np.array(found.pop(""))
            gains = [whole - np.array(values) for values in found.values()]
            shown = (f"{gain.mean():+.3f} ± {gain.std() / max(seeds - 1, 1) ** 0.5:.3f}" for gain in gains)
            yield f"| {name.split(':')[0]}, {what} | {whole.mean():.3f} | {' | '.join(shown)} |"


SECTIONS = {  # name: (function, full count, quick count)
    "paper": (paper, 10, 2),
    "rules": (rules, 5, 2),
    "embedding": (embedding, 5, 2),
    "sets": (sets, 5, 2),
    "scaling": (scaling, 5, 1),
    "public": (public, 3, 1),
    "ablation": (ablation, 3, 1),
    "count": (count, 3, 1),
    "score": (score, 3, 1),
    "holes": (holes, 3, 1),
    "corruption": (corruption, 3, 1),
    "speed": (speed, 5, 2),
}


def part(name: str) -> Callable[[bool], None]:
    """A section as a part of the page."""
    function, full, quick = SECTIONS[name]

    def run(few: bool) -> None:
        say(f"## {name}: {(function.__doc__ or '').splitlines()[0]}\n")
        for line in function(quick if few else full):
            say(line)

    return run


if __name__ == "__main__":
    main("clustering", "Multi-view clustering", __doc__, {name: part(name) for name in SECTIONS})
