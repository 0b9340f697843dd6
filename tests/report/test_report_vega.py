"""The drawing library: bundled once, kept in the cache, never half written."""

import pytest

from selfpaced.report import page as module

vl_convert = pytest.importorskip("vl_convert", reason="the report needs vl-convert-python")


@pytest.fixture
def bundles(monkeypatch, tmp_path):
    """Counts how often the script is bundled, into a cache of its own."""
    calls = []

    def bundle(snippet):
        calls.append(snippet)
        return f"/* the library */ {snippet}"

    monkeypatch.setenv("SELFPACED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    return calls


def fresh():
    """As in a new process."""
    return module.vega.__wrapped__()


def test_bundled_once_and_kept(bundles, tmp_path):
    first = fresh()
    assert "window.vegaEmbed = vegaEmbed;" in first
    assert fresh() == first
    assert len(bundles) == 1
    (kept,) = (tmp_path / "cache").rglob("vega-*.js")
    assert kept.read_text(encoding="utf-8") == first


def test_a_cache_that_cannot_be_written_costs_only_time(bundles, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert fresh() == fresh()
    assert len(bundles) == 2


def test_without_the_package_the_extra_is_named(bundles, monkeypatch):
    def missing(name):
        raise module.PackageNotFoundError(name)

    monkeypatch.setattr(module, "version", missing)
    with pytest.raises(ImportError, match=r"selfpaced\[report\]"):
        fresh()
