"""The part of `engines.py` on Dask: the automatic path beside a plain fit by the same passes, by 1 and 2 workers."""

from functools import partial
from pathlib import Path

import numpy as np
from engine_clock import Clock, each

from selfpaced import SelfPacedLogisticRegression
from selfpaced.linear._lbfgs import minimize
from selfpaced.linear._loss import Latent, Objective, TableObjective, gradient
from selfpaced.regularizers import get

BYTES = 8  # of a feature
DESCRIBED = 20_000  # rows whose curvature a plain fit starts from, as the automatic one does


def on_dask(paths, scratch):
    """Workers of one thread each, blocks read from the files and persisted."""
    walls = {}
    for workers in (1, 2):
        walls[workers] = yield from _by(workers, paths, Path(scratch) / "coef.npy")
    for what, first in walls[1].items():
        second = walls[2][what]
        yield f"{what}, Dask, 1 and 2 workers", second, f"wall; {first:.3g} by one, {first / second:.2f} x quicker"


def _by(workers, paths, saved):
    """Lines of the table; the wall times are returned."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from selfpaced.dask import table

    clock, name = Clock(), f"{workers} worker{'s' * (workers > 1)}"
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        frame = dd.read_parquet(paths, split_row_groups=True)
        a_pass(table(frame.partitions[: 2 * workers], "label"))  # packages are imported by all, and not timed
        reading, rows = clock.timed(lambda: table(frame, "label"), repeat=1)
        cost = partial(each, rows=rows.n, size=rows.n * rows.n_features * BYTES)
        one, _ = clock.timed(lambda: a_pass(rows), repeat=3)
        rows.passes = 0
        plain, _ = clock.timed(lambda: plain_fit(rows))
        plainly, rows.passes = rows.passes // 2, 0
        fit, model = clock.timed(lambda: SelfPacedLogisticRegression().fit(rows))
        yield reading.line(f"read the Parquet and persist, Dask, {name}", cost(reading))
        yield one.line(f"one gradient pass, Dask, {name}", cost(one))
        yield plain.line(f"plain fit by the same passes, Dask, {name}", f"{plainly} passes")
        yield fit.line(f"automatic fit, Dask, {name}", f"{rows.passes // 2} passes, {fit.over(plain, 'the plain fit')}")
        if saved.exists():
            gap = float(np.abs(np.load(saved) - model.coef_).max())
            yield f"largest difference of a coefficient, Dask, {name}", gap, "to the scratch file"
    return {"read": reading.wall, "one gradient pass": one.wall, "automatic fit": fit.wall}


def a_pass(table):
    """One sum of gradients."""
    point, latent = np.linspace(-1, 1, table.n_features + 1), Latent(get("welsch"), 1.0)
    return table.reduce(gradient, point, latent, 2, True)


def plain_fit(table):
    """The plain model from zero, in the geometry of some rows, by the same block function and minimiser."""
    some = table.take(np.linspace(0, table.n - 1, DESCRIBED).astype(np.intp))
    thin = Objective(some.X, some.y, 2, ridge=1.0 / table.n)
    whole = TableObjective(table, 2, float(table.n), ridge=1.0 / table.n)
    return minimize(whole, np.zeros(whole.size), metric=thin.curvature(), tol=1e-4 * thin.unit)


__all__ = ["a_pass", "on_dask", "plain_fit"]
