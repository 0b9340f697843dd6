"""Probabilities in blocks: on Dask, in Arrow batches and in files the audit is that of memory."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from selfpaced import audit_labels

NAMES = ["cat", "dog", "elk"]


def rows(n, seed=0, k=3):
    """Given labels, a tenth of them wrong, held-out probabilities, and weights."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.standard_normal((n, k))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    true = (probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    given = np.where(rng.random(n) < 0.1, rng.integers(0, k, n), true)
    probs[:5, 0] = 0.0  # as a forest would vote
    return np.array(NAMES[:k])[given], probs / probs.sum(axis=1, keepdims=True), rng.integers(1, 4, n).astype(float)


def on_dask(labels, probs, weight, n_blocks=7):
    da = pytest.importorskip("dask.array", reason='audits on a cluster need the extra "dask"')
    size = -(-len(labels) // n_blocks)
    return da.from_array(labels, size), da.from_array(probs, (size, probs.shape[1])), da.from_array(weight, size)


def arrow(labels, probs, weight):
    columns = {name: probs[:, j] for j, name in enumerate(NAMES)}
    return pa.table({**columns, "label": labels.tolist(), "weight": weight})


@pytest.fixture(autouse=True)
def here():
    """Without a client, passes run in this thread."""
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        yield


def same(found, memory, listed, tol=1e-9):
    assert found.classes.tolist() == memory.classes.tolist()
    assert found.noise_rate == pytest.approx(memory.noise_rate, rel=tol)
    np.testing.assert_allclose(found.noise_rate_interval, memory.noise_rate_interval, rtol=tol)
    np.testing.assert_allclose(found.transition_matrix, memory.transition_matrix, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.clean_share, memory.clean_share, rtol=1e-6)
    assert found.summary() == memory.summary()
    known = memory.suspects().sort_values("row").reset_index(drop=True)
    listed = listed.reset_index(drop=True)
    assert len(known) > 100
    assert listed["row"].tolist() == known["row"].tolist()
    for name in ("level", "given", "expected"):
        assert listed[name].tolist() == known[name].tolist()
    np.testing.assert_allclose(listed["noise_probability"], known["noise_probability"], rtol=1e-6, atol=1e-9)
    assert found.level_counts[1:].sum() == len(known)


@pytest.fixture
def few_are_many(monkeypatch):
    """Above 4,000 rows a sample is fitted."""
    monkeypatch.setattr("selfpaced.audit._blocks.AUDITED_ROWS", 4_000)


@pytest.mark.parametrize(
    ("n", "n_blocks", "weighted"),
    [(1_500, 1, True), (1_500, 7, False), (1_500, 60, True), (6_000, 7, False), (6_000, 7, True)],
)
def test_dask_is_memory(n, n_blocks, weighted, few_are_many):
    labels, probs, weight = rows(n)
    memory = audit_labels(labels, probs, sample_weight=weight if weighted else None)
    y, p, w = on_dask(labels, probs, weight, n_blocks)
    found = audit_labels(y, p, sample_weight=w if weighted else None)
    assert type(found.suspects()).__module__.startswith("dask")
    same(found, memory, found.suspects().compute())
    issues, known = found.label_issues().compute(), memory.label_issues()
    assert issues["row"].tolist() == list(range(n))
    assert issues["is_label_issue"].tolist() == known["is_label_issue"].tolist()
    assert issues["predicted_label"].tolist() == known["predicted_label"].tolist()


@pytest.mark.parametrize(
    ("n", "kind"),
    [(3_000, "table"), (3_000, "arrays"), (3_000, "reader"), (3_000, "files"), (3_000, "dataset"), (6_000, "reader")],
)
def test_arrow_is_memory(n, kind, tmp_path, few_are_many):
    labels, probs, weight = rows(n)
    memory = audit_labels(labels, probs, sample_weight=weight)
    table = arrow(labels, probs, weight)
    if kind == "arrays":
        found = audit_labels(labels.tolist(), table.select(NAMES), sample_weight=weight)
    else:
        for i in range(3):
            parquet.write_table(table.slice(i * n // 3, n // 3), tmp_path / f"{i}.parquet")
        source = {
            "table": lambda: table,
            "reader": lambda: pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(997))),
            "files": lambda: str(tmp_path / "?.parquet"),
            "dataset": lambda: pa.dataset.dataset([str(tmp_path / f"{i}.parquet") for i in range(3)]),
        }[kind]()
        found = audit_labels("label", source, sample_weight="weight")
    listed = found.suspects()
    assert isinstance(listed, pa.RecordBatchReader)
    same(found, memory, listed.read_all().to_pandas())
    assert found.label_issues().read_all().num_rows == n
    page = found.report(tmp_path / "audit.html")
    assert "Estimated label-error rate" in (tmp_path / page).read_text()


def test_a_frame_with_names_rows_without_labels_and_one_column():
    dd = pytest.importorskip("dask.dataframe")
    labels, probs, _ = rows(3_000)
    gaps = np.arange(0, 3_000, 50)
    given = labels.astype(object)
    given[gaps] = None
    memory = audit_labels(given, pd.DataFrame(probs, columns=NAMES))
    frame = pd.DataFrame(probs[:, ::-1], columns=NAMES[::-1]).assign(label=given)
    found = audit_labels("label", dd.from_pandas(frame, npartitions=4, sort=False))
    assert found.n_unlabelled == memory.n_unlabelled == 60
    assert found.classes.tolist() == NAMES[::-1]
    assert found.noise_rate == pytest.approx(memory.noise_rate, rel=1e-6)
    listed, known = found.suspects().compute(), memory.suspects()
    assert sorted(listed["row"]) == sorted(known["row"])
    assert not set(found.label_issues().compute()["row"]) & set(gaps)
    labels, probs, weight = rows(3_000, k=2)
    one = on_dask(labels, probs[:, 1:], weight)
    memory = audit_labels(labels, probs[:, 1])
    np.testing.assert_allclose(audit_labels(*one[:2]).noise_rate_interval, memory.noise_rate_interval, rtol=1e-9)


def test_what_comes_to_the_client_does_not_grow_with_the_table(monkeypatch, few_are_many):
    dask = pytest.importorskip("dask")
    seen, compute = [], dask.compute

    def watched(*args, **kwargs):
        found = compute(*args, **kwargs)
        seen[-1] = max(seen[-1], sum(len(pickle.dumps(part)) for part in found))
        return found

    monkeypatch.setattr(dask, "compute", watched)
    monkeypatch.setattr(dask.base, "compute", watched)
    for n in (20_000, 40_000):
        seen.append(0)
        labels, probs, weight = rows(n, k=2)
        y, p, _ = on_dask(labels, probs, weight, n // 2_000)
        audit_labels(y, p).suspects()
    assert seen[1] <= 1.1 * seen[0]


def test_what_is_wrong_is_named():
    labels, probs, weight = rows(1_000)
    y, p, _ = on_dask(labels, probs, weight)
    with pytest.raises(ValueError, match=r"must be probabilities that sum to 1, got .* in row 700"):
        audit_labels(y, (p + (np.arange(1_000) == 700)[:, None] * 0.2).rechunk(p.chunks))
    with pytest.raises(ValueError, match="groups must be left out"):
        audit_labels(y, p, groups=labels)
    with pytest.raises(TypeError, match="pred_probs must be a Dask collection"):
        audit_labels(y, probs)
    with pytest.raises(ValueError, match="n must be None"):
        audit_labels(y, p).suspects(5)
    with pytest.raises(ValueError, match="classes must name the 3 columns"):
        audit_labels(y, p, classes=["a", "b"])
    with pytest.raises(TypeError, match="labels must name a column"):
        audit_labels(labels, iter([pa.table({"cat": probs[:, 0]})]))
    with pytest.warns(UserWarning, match="look in-sample"):
        audit_labels(y, on_dask(labels, np.eye(3)[np.searchsorted(NAMES, labels)], weight)[1])
