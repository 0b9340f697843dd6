"""Tables that are read once into a scratch file and passed over there."""

import logging
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, parquet

from selfpaced import SelfPacedLogisticRegression, suspects
from selfpaced.distributed import MemoryTable, scratch, spool, write_suspects

polars = pytest.importorskip("polars", reason="lazy frames need polars")


def frame(n=1500, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X[:, 0] + 0.5 * rng.standard_normal(n) > 0
    y ^= rng.random(n) < 0.2
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    table["label"] = np.where(y, "yes", "no")
    return table


def parts(table, folder, n_files=3):
    for i, rows in enumerate(np.array_split(np.arange(len(table)), n_files)):
        parquet.write_table(pa.Table.from_pandas(table.iloc[rows], preserve_index=False), folder / f"{i}.parquet")


def pieces(table, rows=400):
    return (table.iloc[start : start + rows] for start in range(0, len(table), rows))


def all_sources(table, folder):
    parts(table, folder)
    csv.write_csv(pa.Table.from_pandas(table, preserve_index=False), folder / "all.csv")
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    return {
        "dataset": dataset.dataset(str(folder), format="parquet", exclude_invalid_files=True),
        "pattern": str(folder / "*.parquet"),
        "csv": str(folder / "all.csv"),
        "lazy": polars.from_pandas(table).lazy(),
        "frames": pieces(table),
        "polars frames": (polars.from_pandas(piece) for piece in pieces(table)),
        "record batches": iter(arrow.to_batches(max_chunksize=333)),
    }


def test_every_source_gives_the_same_model(tmp_path):
    table = frame()
    X, y = table.drop(columns="label"), table["label"].to_numpy().astype(str)
    memory = SelfPacedLogisticRegression().fit(X, y)
    for name, source in all_sources(table, tmp_path).items():
        model = SelfPacedLogisticRegression().fit(source, "label")
        np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-10, err_msg=name)
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
        assert model.predict(X).tolist() == memory.predict(X).tolist()


def test_batches_of_arrays_with_weights():
    table = frame()
    X, y = table.drop(columns="label").to_numpy(), (table["label"] == "yes").to_numpy().astype(int)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    memory = SelfPacedLogisticRegression().fit(X, y, weight)
    tuples = ((X[a : a + 100], y[a : a + 100], weight[a : a + 100]) for a in range(0, len(y), 100))
    model = SelfPacedLogisticRegression().fit(tuples)
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-9)
    table["w"] = weight
    named = SelfPacedLogisticRegression().fit(pieces(table), "label", "w")
    np.testing.assert_allclose(named.coef_, memory.coef_, rtol=1e-9)


def test_rows_come_back_as_they_were():
    table = frame(200_000)
    with spool(pieces(table, 30_000), "label") as spooled:
        blocks = [(block.X.copy(), block.y.copy()) for block in spooled.blocks()]
        assert len(blocks) > 2
        np.testing.assert_array_equal(np.concatenate([X for X, _ in blocks]), table.iloc[:, :4].to_numpy())
        np.testing.assert_array_equal(spooled.classes[np.concatenate([y for _, y in blocks])], table["label"])
        some = np.array([3, 700, 701, 149_999])
        taken = spooled.take(some)
        np.testing.assert_array_equal(taken.X, table.iloc[some, :4].to_numpy())
        np.testing.assert_array_equal(spooled.classes[taken.y], table["label"][some])
        assert spooled.mass.tolist() == table["label"].value_counts().sort_index().tolist()


def test_labels_that_do_not_come_in_their_order():
    labels, rows = ["c", "a", "b", "a", "d"], np.zeros((900_000, 1), dtype=np.float32)  # codes are sorted in two pieces
    with spool((rows, np.full(len(rows), label)) for label in labels) as table:
        some = np.arange(450_000, len(labels) * len(rows), len(rows))
        np.testing.assert_array_equal(table.classes[table.take(some).y], labels)
        assert table.mass.tolist() == [1_800_000.0, 900_000.0, 900_000.0, 900_000.0]


def test_values_and_single_precision():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)).astype(np.float32), rng.standard_normal(50)
    with spool(iter([(X[:20], y[:20]), (X[20:], y[20:])]), labels=False) as table:
        assert table.dtype == np.float32
        assert table.classes is None
        np.testing.assert_array_equal(table.take(np.arange(50)).y, y)
        assert table.mass.tolist() == [50.0]


def test_suspects_of_rows_of_one_class(tmp_path):
    table = frame()
    X, y = table.drop(columns="label"), table["label"].to_numpy().astype(str)
    model, some = SelfPacedLogisticRegression().fit(X, y), y == "yes"
    with spool(pieces(table[some]), "label") as spooled:
        write_suspects(model, spooled, tmp_path / "suspects.parquet")
    found = parquet.read_table(tmp_path / "suspects.parquet").to_pandas()
    assert set(found["given"]) == {"yes"}
    assert found["row"].tolist() == sorted(suspects(model, X[some], y[some])["row"])
    odd = (X.to_numpy(), np.where(some, "yes", "maybe"))
    with spool(iter([odd])) as spooled, pytest.raises(ValueError, match="labels of the fit, .*, got 'maybe'"):
        write_suspects(model, spooled, tmp_path / "other.parquet")


def test_suspects_are_streamed(tmp_path):
    table = frame()
    X, y = table.drop(columns="label"), table["label"].to_numpy().astype(str)
    memory = SelfPacedLogisticRegression().fit(X, y)
    expected = suspects(memory).drop(columns="stability")  # of the fit, and not of rows that come by
    expected = expected.sort_values("row").reset_index(drop=True)
    with spool(pieces(table), "label") as spooled:
        model = SelfPacedLogisticRegression().fit(spooled)
        counts = write_suspects(model, spooled, tmp_path / "suspects.parquet")
        write_suspects(model, spooled, tmp_path / "all.parquet", threshold=0.0)
    found = parquet.read_table(tmp_path / "suspects.parquet").to_pandas()
    np.testing.assert_array_equal(counts, np.bincount(memory.assessment_.levels(), minlength=3))
    assert parquet.read_table(tmp_path / "all.parquet").num_rows == counts.sum() == len(y)
    assert counts[1:].sum() == len(found) == len(expected) > 50
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.parquet", "suspects.parquet"]


@pytest.mark.parametrize("kind", ["parquet", "frames", "numbers"])
def test_rows_without_a_label_are_left_out_and_counted(tmp_path, caplog, kind):
    table, gaps = frame(), np.arange(0, 1500, 30)
    if kind == "numbers":
        table["label"] = pd.array((table["label"] == "yes").astype(int), dtype="Int64")
    table.loc[gaps, "label"] = pd.NA if kind == "numbers" else None
    parts(table, tmp_path)
    source = pieces(table) if kind == "frames" else str(tmp_path / "?.parquet")
    kept = np.setdiff1d(np.arange(1500), gaps)
    X, y = table.iloc[kept, :4], table["label"][kept].tolist()
    memory = SelfPacedLogisticRegression().fit(X, y)
    with spool(source, "label") as spooled:
        assert spooled.n_unlabelled == 50
        model = SelfPacedLogisticRegression().fit(spooled)
        write_suspects(model, spooled, tmp_path / "suspects.parquet")
    assert "50 of 1500 rows have no label and are left out" in caplog.text
    assert model.classes_.tolist() == memory.classes_.tolist()
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-9)
    expected = kept[np.sort(suspects(memory, X, y)["row"])].tolist()
    assert parquet.read_table(tmp_path / "suspects.parquet")["row"].to_pylist() == expected
    assert sorted(suspects(model)["row"]) == expected


# ---------------------------------------------------------------------------------------------------- errors


def broken(column, value):
    table = frame(100)
    table[column] = table[column].astype(object)
    table.loc[57, column] = value
    if column != "label":
        table[column] = table[column].astype(float if isinstance(value, float) else object)
    return pieces(table, 40)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (lambda: broken("x2", np.nan), "label", "nan in row 57, column 'x2'"),
        (lambda: broken("x2", np.inf), "label", "inf in row 57, column 'x2'"),
        (lambda: broken("x1", "much"), "label", "features must be numbers, got object in column 'x1'"),
        (lambda: pieces(frame()), "lable", "y must name a column"),
        (lambda: pieces(frame()), None, "y must name the column"),
        (lambda: iter([frame(), frame(d=3)]), "label", "must have the same columns"),
        (lambda: iter([(np.eye(3), np.zeros(2))]), None, r"must have shape \(3,\)"),
        (lambda: iter([(np.zeros(3), np.zeros(3))]), None, "a batch must be a table, or a tuple"),
        (lambda: iter([(np.eye(3), np.zeros(3))]), None, "at least 2 classes"),
        (lambda: iter([]), "label", "no rows"),
    ],
)
def test_what_is_wrong_is_named(source, target, message):
    with pytest.raises(ValueError, match=message):
        SelfPacedLogisticRegression().fit(source(), target)


def test_tables_hold_their_labels():
    table = MemoryTable(np.eye(4), np.array([0, 1, 0, 1]), classes=np.arange(2))
    with pytest.raises(ValueError, match="y and sample_weight must be None if X is a table"):
        SelfPacedLogisticRegression().fit(table, np.zeros(4))
    with pytest.raises(ValueError, match="X must be a table of labels"):
        SelfPacedLogisticRegression().fit(MemoryTable(np.eye(4), np.zeros(4)))
    with pytest.raises(ValueError, match="y must name a column if X comes in batches, got ndarray"):
        SelfPacedLogisticRegression().fit(pieces(frame()), np.zeros(4))


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
def test_a_disk_that_is_full(tmp_path):
    code = (
        "import numpy as np, resource, signal\n"
        "from selfpaced.distributed import spool\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"spool(iter([(np.eye(100), np.arange(100))]), scratch={str(tmp_path)!r})\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60, capture_output=True, text=True)
    assert "cannot be written: File too large; choose another folder (scratch)" in ended.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_that_are_not_alike(tmp_path, kind):
    def write(name, table):
        getattr(table, f"to_{kind}")(tmp_path / f"{name}.{kind}", index=False)

    table, pattern = frame(), str(tmp_path / f"*.{kind}")
    write("a", table[:900])
    write("b", table[900:].iloc[:, ::-1])  # another order will do
    with spool(pattern, "label") as spooled:
        np.testing.assert_array_equal(spooled.take(np.arange(1500)).X, table.iloc[:, :4])
    write("c", table[:0])
    write("d", table.drop(columns="x1"))
    with pytest.raises(ValueError, match=rf"same columns: '.*d.{kind}' lacks the column 'x1'"):
        spool(pattern, "label")
    write("d", table.rename(columns={"label": "y"}))
    with pytest.raises(ValueError, match=rf"same columns: '.*d.{kind}' has other columns: \['x0', .*'y'\]"):
        spool(pattern, "label")
    write("d", table.assign(x1=table["x1"].astype(str) + "!"))
    with pytest.raises(
        ValueError, match=rf"same types: '.*d.{kind}' has .*string in the column 'x1', and others double"
    ):
        spool(pattern, "label")
    with pytest.raises(ValueError, match="X must name files, got the folder"):
        spool(str(tmp_path), "label")


def test_memory_is_a_number_of_bytes():
    assert scratch.parse_bytes("1.5 GB") == 1_500_000_000
    for text in ("much", "1 XB", "1KB", "1.2.3GB"):
        with pytest.raises(ValueError, match="memory must be"):
            scratch.parse_bytes(text)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file matches"):
        SelfPacedLogisticRegression().fit(str(tmp_path / "*.parquet"), "label")
    with pytest.raises(TypeError, match="a table in batches must be"):
        spool(3, "label")


# ----------------------------------------------------------------------------------------- ends of every kind


def open_scratch(folder):
    """Scratch files of this process, which have no name."""
    links = (os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd"))
    return [os.readlink(link) for link in links if os.path.lexists(link) and str(folder) in os.readlink(link)]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are listed by Linux only")
def test_nothing_stays_after_an_error_or_an_interrupt(tmp_path):
    def interrupted():
        yield frame()
        assert open_scratch(tmp_path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool(interrupted(), "label", scratch=tmp_path)
    with pytest.raises(ValueError, match="row 57"):
        spool(broken("x2", np.nan), "label", scratch=tmp_path)
    assert open_scratch(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_nothing_stays_after_a_kill(tmp_path):
    code = (
        "import numpy as np, os, signal\n"
        "from selfpaced.distributed import spool\n"
        f"table = spool(iter([(np.eye(3), np.arange(3))]), scratch={str(tmp_path)!r})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_fit_keeps_a_model(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("selfpaced.linear._logistic_fit.choose", interrupt)
    model = SelfPacedLogisticRegression()
    with pytest.raises(KeyboardInterrupt, match="the plain model is kept"):
        model.fit(pieces(frame()), "label")
    assert np.isfinite(model.coef_).all()
    assert model.lam_ == np.inf
    assert set(model.predict(frame().drop(columns="label"))) == set(model.classes_)


def test_passes_are_told(caplog, monkeypatch):
    monkeypatch.setattr("selfpaced.linear._folds.SAMPLED_ROWS", 400)
    with caplog.at_level(logging.INFO, logger="selfpaced"):
        SelfPacedLogisticRegression(verbose=1).fit(pieces(frame()), "label")
    told = " ".join(caplog.messages)
    assert "read 1500 rows" in told or "read 1200 rows" in told
    assert "pass 2, gradient: 1500 rows" in told


def test_hints_about_labels():
    with pytest.raises(ValueError, match="are they values"):
        spool(iter([(np.ones((10_001, 1)), np.arange(10_001))]))


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        (np.array([1, 2] * 5), np.array(["1", "2"] * 5), ("1 (int)", "'1' (str)")),
        (np.array(["a", "b"] * 5), np.array([1.5, 2.5] * 5), ("1.5 (float)", "'a' (str)")),
        (np.array([1, "1"] * 5, dtype=object), np.array([1] * 10, dtype=object), ("1 (int)", "'1' (str)")),
        (np.array([2**70, 1] * 5, dtype=object), np.array([1, 2] * 5), ("64 bits", str(2**70))),
        (np.array([2**53, 2**53 + 1] * 5), np.array([0.5, 1.5] * 5), (str(2**53), str(2**53 + 1))),
    ],
)
def test_labels_of_two_kinds_are_refused_by_name(first, second, named):
    with (
        pytest.raises(ValueError, match="y must hold") as refused,
        spool(iter([(np.eye(10), first), (np.eye(10), second)])),
    ):
        pass
    assert all(part in str(refused.value) for part in named)


def test_numbers_of_several_types_are_one_kind():
    with spool(iter([(np.eye(4), np.array([0, 1, 0, 1])), (np.eye(4), np.array([0.0, 1.0, 2.0, 2.0]))])) as table:
        assert table.classes.tolist() == [0.0, 1.0, 2.0]
