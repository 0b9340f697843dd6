"""A messy table with wrong labels, and a way to run commands in this process."""

import csv
import json
import shutil

import numpy as np
import pytest

pytest.importorskip("pandas", reason='the command line needs the extra "io"')
pytest.importorskip("pyarrow", reason='the command line needs the extra "io"')
pytest.importorskip("skops", reason='the command line needs the extra "io"')

from selfpaced.cli import main


@pytest.fixture(scope="session")
def shop():
    """Records of a shop: header, rows, and which labels are wrong."""
    rng = np.random.default_rng(1)
    n = 400
    age, income = rng.normal(45, 12, n), np.exp(rng.normal(10, 0.5, n))
    city = rng.choice(["Rome", "Oslo", "Lima"], n, p=[0.5, 0.3, 0.2])
    z = (age - 45) / 6 + 2 * (np.log(income) - 10) + 3.0 * (city == "Oslo") - 3.0 * (city == "Lima")
    label = np.where(z + rng.logistic(0, 0.3, n) > 0, "yes", "no")
    wrong = rng.random(n) < 0.15
    given = np.where(wrong, np.where(label == "yes", "no", "yes"), label)
    header = ["age", "income", "city", "note", "will buy"]
    rows = []
    for i in range(n):
        note = (
            f'said "maybe",\nthen left, as client {i} of the shop'
            if i % 40 == 0
            else f"nothing to say of client {i} today"
        )
        rows.append(["" if i % 33 == 5 else f"{age[i]:.1f}", f"{income[i]:,.0f}", city[i], note, given[i]])
    return header, rows, wrong


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shop_csv(shop, folder):
    """The table as a CSV file with a blank line in it."""
    return write_shop(shop, folder / "shop.csv")


def write_shop(shop, path):
    header, rows, _ = shop
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([header, *rows[:200]])
        stream.write("\n")
        writer.writerows(rows[200:])
    return path


@pytest.fixture(scope="session")
def shop_fit(shop, tmp_path_factory):
    """The folder of a fit of the table, without a report; for tests of what comes after."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_shop(shop, "shop.csv")
        words = ["fit", "shop.csv", "--target", "will buy", "--model", "logistic", "--no-report", "--quiet"]
        assert main(words) == 0
    return folder / "run"


@pytest.fixture
def shop_run(shop_fit, shop_csv):
    """The table and a fit of it in the folder ``run``."""
    shutil.copytree(shop_fit, shop_csv.parent / "run")
    return shop_csv.parent / "run"


@pytest.fixture
def price_tsv(folder):
    """A regression with 12 prices ten times too high."""
    rng = np.random.default_rng(2)
    area = rng.uniform(30, 200, 240)
    price = 1000 * area + rng.normal(0, 3000, 240)
    wrong = np.arange(240) % 20 == 7
    lines = ["area\tfloor\tprice"]
    lines += [
        f"{a:.1f}\t{i % 5}\t{p * (10 if bad else 1):.2f}"
        for i, (a, p, bad) in enumerate(zip(area, price, wrong, strict=True))
    ]
    (folder / "price.tsv").write_text("\n".join(lines) + "\n")
    return folder / "price.tsv", np.flatnonzero(wrong)


@pytest.fixture
def selfpaced(capfd):
    """Run a command; gives exit code, standard output and standard error."""

    def run(*words):
        code = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.fixture
def as_json(selfpaced):
    """Run a command with --json --quiet and give back its object."""

    def run(*words, code=0):
        got, out, err = selfpaced(*words, "--json", "--quiet")
        assert got == code, err
        assert code or not err
        return json.loads(out)

    return run
