"""Search order, checksums and errors of the data files, on a small file of our own."""

from __future__ import annotations

import hashlib
import importlib
import sys
import types

import numpy as np
import pytest
from platformdirs import user_cache_path

from selfpaced.datasets import cache_directory
from selfpaced_experiments.data import CorruptDataError, DataNotFoundError
from selfpaced_experiments.data.fetch import read_table
from selfpaced_experiments.data.registry import MFEAT, SPAMBASE, SVMGUIDE1, DataFile

fetch = importlib.import_module("selfpaced_experiments.data.fetch")
TEXT = b"1 2 3\n4 5 6\n"
VALUES = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def _file(name="sub/small", kind="whitespace", openml=None, url="https://example.invalid/small"):
    return DataFile(
        name,
        hashlib.sha256(TEXT).hexdigest(),
        hashlib.sha256(VALUES.astype("<f8").tobytes()).hexdigest(),
        (2, 3),
        kind,
        openml,
        url,
    )


@pytest.fixture
def places(tmp_path, monkeypatch):
    """An explicit, an environment and a cache directory, all empty."""
    made = {name: tmp_path / name for name in ("explicit", "environment", "cache")}
    for path in made.values():
        (path / "sub").mkdir(parents=True)
    monkeypatch.setenv("SELFPACED_DATA", str(made["environment"]))
    monkeypatch.setenv("SELFPACED_CACHE", str(made["cache"]))
    return made


def test_explicit_directory_then_environment_then_cache(places):
    for place in ("cache", "environment", "explicit"):
        (places[place] / "sub" / "small").write_bytes(TEXT)
        values, source = read_table(_file(), places["explicit"])
        np.testing.assert_array_equal(values, VALUES)
        assert source == str(places[place] / "sub" / "small")


def test_a_file_without_its_folder_is_found(places):
    (places["environment"] / "small").write_bytes(TEXT)
    assert read_table(_file())[1] == str(places["environment"] / "small")


def test_other_spacing_and_line_endings_are_the_same_data(places):
    (places["explicit"] / "small").write_bytes(b"  1.0  2 3\r\n 4 5 6e0\r\n")
    np.testing.assert_array_equal(read_table(_file(), places["explicit"])[0], VALUES)


@pytest.mark.parametrize("damaged", [b"1 2 3\n4 5 7\n", b"1 2 3\n", b"1 2 3\n4 5\n", b"", b"\xff\xfe", b"a b c\n"])
@pytest.mark.filterwarnings("ignore:loadtxt")
def test_a_corrupt_file_is_refused_by_name_and_not_skipped(places, damaged):
    path = places["explicit"] / "small"
    path.write_bytes(damaged)
    (places["environment"] / "small").write_bytes(TEXT)
    with pytest.raises(CorruptDataError, match="not the published 'sub/small'") as caught:
        read_table(_file(), places["explicit"])
    assert str(path) in str(caught.value)


def test_the_error_says_what_to_put_where(places, monkeypatch):
    with pytest.raises(DataNotFoundError) as caught:
        read_table(_file(), places["explicit"], download=False)
    for part in (
        "sub/small",
        _file().sha256,
        "SELFPACED_DATA",
        str(places["explicit"]),
        "https://example.invalid",
    ):
        assert part in str(caught.value)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataNotFoundError, match=r"pip install pooch"):
        read_table(_file())


def _pooch(text):
    def retrieve(url, known_hash, fname, path):
        (path / fname).write_bytes(text)
        return str(path / fname)

    return types.SimpleNamespace(retrieve=retrieve)


def test_a_download_is_verified_and_cached(places, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", _pooch(TEXT))
    np.testing.assert_array_equal(read_table(_file())[0], VALUES)
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert read_table(_file())[1] == str(places["cache"] / "sub" / "small")


def test_a_corrupt_download_is_refused_and_leaves_nothing(places, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", _pooch(b"<html>moved</html>"))
    with pytest.raises(CorruptDataError, match="sub/small"):
        read_table(_file())
    assert not list((places["cache"] / "sub").iterdir())


def test_openml_is_asked_by_id_and_its_shape_checked(places, monkeypatch):
    asked = []

    def fetch_openml(*, data_id, as_frame, parser, data_home):
        asked.append(data_id)
        return types.SimpleNamespace(data=VALUES[:, :2], target=np.array(["3", "6"], dtype=object))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    values, source = read_table(_file(kind="csv", openml=7))
    np.testing.assert_array_equal(values, VALUES)
    assert source == "openml:7"
    assert asked == [7]
    wide = DataFile("wide", "0", "0", (2, 9), "csv", 7)
    with pytest.raises(CorruptDataError, match="should have shape"):
        read_table(wide)


@pytest.mark.parametrize(("order", "fine"), [(np.repeat(np.arange(10), 2), True), (np.tile(np.arange(10), 2), False)])
def test_openml_views_must_keep_the_published_row_order(places, monkeypatch, order, fine):
    data = np.ones((20, 3))
    answer = types.SimpleNamespace(data=data, target=(order + 1).astype(str).astype(object))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **kwargs: answer)
    file = DataFile("view", "0", "0", (20, 3), "whitespace", 5)
    if fine:
        assert read_table(file)[0].shape == (20, 3)
    else:
        with pytest.raises(CorruptDataError, match="row order"):
            read_table(file)


def test_an_offline_openml_ends_in_the_instructions(places, monkeypatch):
    def fetch_openml(**kwargs):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    with pytest.raises(DataNotFoundError, match="no network") as caught:
        read_table(SPAMBASE)
    assert "spambase.data" in str(caught.value)
    assert SPAMBASE.sha256 in str(caught.value)


def test_svmlight_rows_may_leave_zeros_out(places):
    text = b"1 1:2.5 2:3\n0 2:-1\n"
    values = np.array([[2.5, 3.0, 1.0], [0.0, -1.0, 0.0]])
    file = DataFile("tiny", hashlib.sha256(text).hexdigest(), "0", (2, 3), "svmlight")
    (places["explicit"] / "tiny").write_bytes(text)
    np.testing.assert_array_equal(read_table(file, places["explicit"])[0], values)
    for damaged in (b"1 3:2.5\n0 2:1\n", b"1 0:2.5\n0 2:1\n", b"1 a:2.5\n", b"1 1:\xff\n", b""):
        (places["explicit"] / "tiny").write_bytes(damaged)
        with pytest.raises(CorruptDataError, match="cannot be parsed"):
            read_table(file, places["explicit"])


def test_cache_directory_is_the_platform_s_unless_the_environment_names_one(monkeypatch, tmp_path):
    monkeypatch.delenv("SELFPACED_CACHE", raising=False)
    assert cache_directory() == user_cache_path("selfpaced", appauthor=False)
    monkeypatch.setenv("SELFPACED_CACHE", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"


def test_registered_names_and_checksums_are_distinct():
    files = [SPAMBASE, *SVMGUIDE1, *MFEAT.values()]
    assert len({f.sha256 for f in files}) == len({f.values_sha256 for f in files}) == len(files) == 9
    assert all(len(f.sha256) == len(f.values_sha256) == 64 and (f.openml or f.url) for f in files)
