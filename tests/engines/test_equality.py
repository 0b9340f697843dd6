"""Memory, files and Dask give the same rate, interval, levels and row numbers for the same rows."""

import numpy as np
import pandas as pd
import pytest

from selfpaced import SelfPacedLogisticRegression, suspects
from selfpaced.distributed import spool, write_suspects

NAMES = [f"x{j}" for j in range(5)]


@pytest.fixture(scope="module", autouse=True)
def few_are_many():
    """Above 2,000 rows a sample decides, and files are read in blocks of 64 kB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("selfpaced.linear._folds.SAMPLED_ROWS", 2_000)
        patch.setattr("selfpaced.distributed.scratch.READ_BYTES", 1 << 16)
        yield


@pytest.fixture(scope="module", params=[1_800, 4_001, 20_000])
def case(request, few_are_many):
    """Rows with weights and string labels, a fifth of them wrong; their model and suspects in memory."""
    rng = np.random.default_rng(request.param)
    X = rng.standard_normal((request.param, 5))
    right = X @ [2.0, -1.0, 0.5, 0.0, 0.0] + 0.3 * rng.logistic(size=len(X)) > 0
    label = np.where(right ^ (rng.random(len(X)) < 0.2), "yes", "no")
    frame = pd.DataFrame(X, columns=NAMES).assign(label=label, w=rng.integers(1, 4, len(X)).astype(float))
    model = SelfPacedLogisticRegression().fit(frame[NAMES], label, frame["w"])
    listed = suspects(model, frame[NAMES], label)
    assert (listed["level"] == "likely error").sum() > 100
    return frame, model, dict(zip(listed["row"].tolist(), listed["level"].tolist(), strict=True))


def same(model, memory, found, expected, order):
    """The estimate, and the level of every listed row by its number in memory."""
    tol = 1e-8
    assert model.noise_rate_ == pytest.approx(memory.noise_rate_, rel=tol)
    np.testing.assert_allclose(model.noise_rate_interval_, memory.noise_rate_interval_, rtol=tol)
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=tol, atol=tol)
    rows = order[found["row"].to_numpy()].tolist()
    assert dict(zip(rows, found["level"].tolist(), strict=True)) == expected


def test_files(case, tmp_path):
    frame, memory, expected = case
    order = np.random.default_rng(1).permutation(len(frame))
    for i, rows in enumerate(np.array_split(order, 7)):
        frame.iloc[rows].to_parquet(tmp_path / f"{i}.parquet", index=False)
    with spool(str(tmp_path / "?.parquet"), "label", weight="w") as table:
        model = SelfPacedLogisticRegression().fit(table)
        write_suspects(model, table, tmp_path / "found.parquet")
    same(model, memory, pd.read_parquet(tmp_path / "found.parquet"), expected, order)


@pytest.mark.parametrize("n_blocks", [1, 7, 60])
def test_dask(case, n_blocks):
    da = pytest.importorskip("dask.array", reason='tables on a cluster need the extra "dask"')
    import dask

    frame, memory, expected = case
    order = np.random.default_rng(1).permutation(len(frame))
    shuffled, size = frame.iloc[order], -(-len(frame) // n_blocks)
    X = da.from_array(shuffled[NAMES].to_numpy(), (size, 5))
    y = da.from_array(shuffled["label"].to_numpy().astype(str), size)
    weight = da.from_array(shuffled["w"].to_numpy(), size)
    with dask.config.set(scheduler="synchronous"):
        model = SelfPacedLogisticRegression().fit(X, y, weight)
        found = suspects(model, X, y).compute()
    same(model, memory, found, expected, order)
