"""Names and files that a command cannot use: a sentence and the right exit code, and nothing half-written."""

import os

import pytest

from selfpaced.cli import main

FIT = ["fit", "shop.csv", "--target", "will buy", "--quiet"]


def run(arguments):
    try:
        return main(arguments)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([*FIT, "--encoding", "nope"], 3, "encoding must be one that Python knows"),
        ([*FIT, "--encoding", "zip"], 3, "encoding must be one that Python knows"),
        ([*FIT, "--out", ""], 2, "must name a folder, got nothing"),
        (["fit", "pipe", "--target", "will buy", "--quiet"], 3, "is a pipe or a device"),
        ([*FIT, "--out", "old", "--force"], 2, "is a folder where a file is to go"),
    ],
)
def test_what_cannot_be_used_is_said(shop_csv, folder, capsys, arguments, code, words):
    os.mkfifo("pipe")
    os.makedirs("old/report.html")
    assert run(arguments) == code
    assert words in " ".join(capsys.readouterr().err.split())
    assert sorted(os.listdir()) == ["old", "pipe", "shop.csv"]
    assert os.listdir("old") == ["report.html"]


@pytest.mark.parametrize("text", ['"selfpaced"', '["selfpaced"]', '{"about": "selfpaced"}', '{"selfpaced": 3}', "{"])
def test_files_of_others_are_not_replaced(shop_csv, folder, capsys, text):
    os.mkdir("run")
    (folder / "run/metrics.json").write_text(text, encoding="utf-8")
    assert run([*FIT, "--out", "run"]) == 2
    assert "was not written by selfpaced" in " ".join(capsys.readouterr().err.split())
    assert (folder / "run/metrics.json").read_text(encoding="utf-8") == text
