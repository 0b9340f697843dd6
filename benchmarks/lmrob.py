"""The peer of robust regression: `lmrob` of R's robustbase, run on the very rows that the library is given.

Debian has both: `apt install r-cran-robustbase`. Without `Rscript` and the package :func:`available` is False and the
benchmarks leave the peer out.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

SCRIPT = """
suppressMessages(library(robustbase))
folder <- commandArgs(trailingOnly = TRUE)[1]
for (file in list.files(folder, pattern = "[.]csv$", full.names = TRUE)) {
  rows <- read.csv(file)
  set.seed(0)
  found <- tryCatch(suppressWarnings({
    fit <- lmrob(y ~ ., data = rows, control = lmrob.control(max.it = 500, k.max = 2000, maxit.scale = 2000))
    bounds <- confint(fit)
    c(fit$scale, coef(fit), bounds[, 1], bounds[, 2])
  }), error = function(e) NA)
  writeLines(format(found, digits = 17), sub("[.]csv$", ".out", file))
}
"""


class Fit(NamedTuple):
    """Scale, intercept and coefficients, and the bounds of their 95 % intervals; NaN where lmrob failed."""

    scale: float
    params: np.ndarray
    low: np.ndarray
    high: np.ndarray


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether R and robustbase are here."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(robustbase)"], capture_output=True, check=False).returncode == 0


def fit_all(problems: list[tuple[np.ndarray, np.ndarray]]) -> list[Fit]:
    """lmrob with its defaults (more iterations allowed) on every (X, y), in one run of R."""
    with tempfile.TemporaryDirectory() as folder:
        for number, (X, y) in enumerate(problems):
            names = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])
            table = np.column_stack([X, y])
            np.savetxt(Path(folder) / f"{number:05d}.csv", table, "%.17g", ",", header=names, comments="")
        script = Path(folder) / "fit.R"
        script.write_text(SCRIPT)
        subprocess.run(["Rscript", str(script), folder], check=True)
        return [_read(Path(folder) / f"{number:05d}.out", X.shape[1] + 1) for number, (X, _) in enumerate(problems)]


def _read(file: Path, k: int) -> Fit:
    values = np.array([float(line) if line.strip() != "NA" else np.nan for line in file.read_text().split()])
    if values.size != 1 + 3 * k:
        values = np.full(1 + 3 * k, np.nan)
    return Fit(float(values[0]), *np.split(values[1:], 3))
