"""The page as text: self-contained, escaped, written whole or not at all."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest

import selfpaced.report
from selfpaced.report import render, report, summarise

EVIL = "<script>alert('x')</script> & </script>"


class Page(HTMLParser):
    """Tags, visible text and the embedded data of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.scripts, self._open = [], [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs)) if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, data):
        if self._open is None:
            self.words.append(data)
        elif self._open[0] == "script":
            self.scripts.append((self._open[1], data))

    @property
    def data(self):
        return next(json.loads(text) for attrs, text in self.scripts if attrs.get("id") == "data")


@pytest.fixture(scope="module")
def page(classified):
    return Page(render(summarise(classified.model, classified.X, classified.y)))


def test_nothing_is_loaded_from_anywhere(page):
    for tag, attrs in page.tags:
        for name in ("src", "href", "action", "srcset"):
            assert attrs.get(name, "data:").startswith("data:"), (tag, attrs)
    assert not [tag for tag, _ in page.tags if tag in ("iframe", "object", "embed")]


def test_the_sentence_and_sections_are_there(page):
    words = " ".join(page.words)
    for part in (
        "400 rows, weighted by",
        "Held-out accuracy on the given labels",
        "The candidates",
        "Rows to check",
        "Parameters",
    ):
        assert part in words


def test_the_data_is_whole(page, classified):
    columns = {c["key"]: c["values"] for c in page.data["table"]}
    assert sorted(columns["row"]) == np.flatnonzero(classified.model.assessment_.levels()).tolist()
    assert set(page.data["charts"]) == set()
    assert sum("(chosen)" in word for word in page.words) == 1


def test_markup_is_escaped_everywhere(classified):
    table = {"row": [0], "given": [EVIL], EVIL: [1]}
    text = render(summarise(classified.model, suspects=table, title=EVIL, note=EVIL))
    made = Page(text)
    assert "<script>alert" not in text
    assert {c["key"]: c["values"] for c in made.data["table"]}["given"] == [EVIL]
    assert EVIL in "".join(made.words)
    assert sum(tag == "script" for tag, _ in made.tags) == 3


def test_infinite_and_missing_numbers_are_valid_json(classified):
    table = {"row": [0, 1], "weight": [np.nan, 0.5], "loss": [np.inf, 1.0]}
    data = Page(render(summarise(classified.model, suspects=table))).data
    assert {c["key"]: c["values"] for c in data["table"]}["weight"] == [None, 0.5]


def test_written_whole_or_not_at_all(classified, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    assert report(classified.model, path=target) == target
    before = target.read_text(encoding="utf-8")
    assert before.startswith("<!doctype html>")
    assert before.rstrip().endswith("</html>")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        report(classified.model, title="another", path=target)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert target.read_text(encoding="utf-8") == before


def test_a_missing_folder_is_named(classified, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        report(classified.model, path=tmp_path / "nowhere" / "report.html")


def test_the_package_can_be_called(classified, tmp_path):
    target = selfpaced.report(classified.model, path=tmp_path / "a.html")
    assert target == tmp_path / "a.html"
    assert selfpaced.report.report is report


def test_a_notebook_shows_the_page(classified, tmp_path):
    made = report(classified.model, path=tmp_path / "a.html")
    frame = Page(made._repr_html_()).tags
    assert [tag for tag, _ in frame] == ["iframe"]
    assert frame[0][1]["srcdoc"] == made.read_text(encoding="utf-8")
    assert frame[0][1]["sandbox"] == "allow-scripts allow-downloads"


def test_a_page_without_figures_needs_no_library():
    from selfpaced.report.data import Summary

    text = render(Summary("Nothing", "samples", "Nothing to see."))
    assert len(text) < 50_000
