"""How long a report takes and how large the page is, against the number of samples.

The fit is one SelfPacedLogisticRegression on 20 features, a fifth of the labels flipped; the page has the table of
suspects (at most 5,000 rows) and the columns that contribute to the first of them. It is opened in headless Chromium:
the time until every figure and the first rows are drawn, start of the browser apart.

    python benchmarks/report.py [--quick] [--save]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from selfpaced import SelfPacedLogisticRegression
from selfpaced.datasets import flip_symmetric
from selfpaced.report import render, summarise

RESULT = Path(__file__).parent / "results" / "report.md"


def measure(n: int) -> str:
    """One line of the table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    y, _ = flip_symmetric(np.where(X[:, :5].sum(axis=1) > 0, "yes", "no"), 0.2, random_state=0)
    start = time.perf_counter()
    model = SelfPacedLogisticRegression().fit(X, y)
    fitted = time.perf_counter()
    summary = summarise(model, X, y)
    summarised = time.perf_counter()
    page = render(summary)
    rendered = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "report.html"
        target.write_text(page, encoding="utf-8")
        size, opened = target.stat().st_size / 1e6, opening(target)
    seconds = (fitted - start, summarised - fitted, rendered - summarised)
    rows = len(summary.suspects) if summary.suspects else 0
    return f"| {n:,} | {rows:,} | " + " | ".join(f"{s:.2f}" for s in seconds) + f" | {size:.1f} | {opened} |"


def opening(page: Path) -> str:
    """Seconds until a browser has drawn the page; a dash where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None or find_spec("selenium") is None:
        return "–"
    from selenium import webdriver
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        browser.get("about:blank")
        start = time.perf_counter()
        browser.get(page.as_uri())
        drawn = "return document.documentElement.dataset.drawn === 'yes' && !!document.querySelector('#table tbody tr')"
        WebDriverWait(browser, 120, poll_frequency=0.02).until(lambda b: b.execute_script(drawn))
        return f"{time.perf_counter() - start:.2f}"
    finally:
        browser.quit()


def main() -> None:
    """Print the table, and keep it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 samples")
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}")
    args = parser.parse_args()
    lines = [
        "| samples | rows in the table | fit, s | summarise, s | render, s | page, MB | opens in, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for n in (1_000, 10_000) if args.quick else (1_000, 10_000, 100_000, 1_000_000):
        lines.append(measure(n))
    text = "\n".join(lines)
    print(text)
    if args.save:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(f"# Report\n\n`python benchmarks/report.py`\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
