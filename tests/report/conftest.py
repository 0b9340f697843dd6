"""Small fitted models of every kind, and a real browser where there is one."""

import shutil
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

from selfpaced import SelfPacedLinearRegression, SelfPacedLogisticRegression, SelfPacedMF, SelfPacedMultiViewKMeans

pytest.importorskip("jinja2", reason="the report needs Jinja2")


@dataclass
class Case:
    """A fitted model with its data and the rows that were spoiled."""

    model: Any
    X: Any
    y: Any
    wrong: Any


@pytest.fixture(scope="session")
def classified():
    shape = {"n_informative": 4, "n_redundant": 0, "n_clusters_per_class": 1, "class_sep": 2.0, "flip_y": 0}
    X, y = make_classification(400, 6, **shape, random_state=0)
    wrong = np.random.default_rng(0).random(400) < 0.2
    labels = np.array(["no", "yes"])[np.where(wrong, 1 - y, y)]
    return Case(SelfPacedLogisticRegression().fit(X, labels), X, labels, wrong)


@pytest.fixture(scope="session")
def regressed():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=200)
    wrong = np.arange(200) < 40
    y[wrong] += 15
    return Case(SelfPacedLinearRegression().fit(X, y), X, y, wrong)


@pytest.fixture(scope="session")
def factorized():
    rng = np.random.default_rng(2)
    Y = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30)) + 0.05 * rng.normal(size=(40, 30))
    wrong = rng.random(Y.shape) < 0.1
    Y[wrong] += 10
    Y[rng.random(Y.shape) < 0.2] = np.nan
    return Case(SelfPacedMF(rank=2, backend="numpy", random_state=0).fit(Y), Y, None, wrong & ~np.isnan(Y))


@pytest.fixture(scope="session")
def clustered():
    rng = np.random.default_rng(3)
    centres = 6 * rng.normal(size=(3, 2))
    labels = np.arange(150) % 3
    views = {"shape": centres[labels] + rng.normal(size=(150, 2)), "sound": rng.normal(size=(150, 4))}
    views["sound"][:, 0] += 5 * labels
    return Case(SelfPacedMultiViewKMeans(3, n_init=3, random_state=0).fit(views), views, None, None)


PATIENCE = 120  # seconds: a machine may be busy, and what fails does so at once
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-sync",
    "--disable-component-update",
    "--window-size=1200,900",
)


@pytest.fixture
def browser(chromium):
    """The browser on an empty page, with nothing in its log of what an earlier page has left behind."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    yield chromium
    chromium.get("about:blank")


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Headless Chromium of the system, driven by Selenium."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="the browser tests need Selenium")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("the browser tests need chromium and chromedriver on the PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    chrome.set_script_timeout(PATIENCE)
    yield chrome
    chrome.quit()


def wait(browser, condition):
    """What a condition gives once it holds; an element that is drawn anew meanwhile is looked for again."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    stale = [StaleElementReferenceException]
    return WebDriverWait(browser, PATIENCE, poll_frequency=0.05, ignored_exceptions=stale).until(condition)


def downloaded(browser, path):
    """Wait until a file has come whole: the browser writes it under another name."""
    wait(browser, lambda _: path.exists() and path.stat().st_size > 0)
