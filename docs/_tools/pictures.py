"""Draw the pictures of the documentation; the screenshots need Chromium and Selenium."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selfpaced import SelfPacedLogisticRegression, plot, report
from selfpaced.datasets import flip_symmetric

IMAGES = Path(__file__).parents[1] / "images"


def fitted() -> tuple[Any, Any, Any]:
    """The model of the quickstart."""
    data = load_breast_cancer(as_frame=True)
    noisy, _ = flip_symmetric(data.target_names[data.target], 0.2, random_state=0)
    return make_pipeline(StandardScaler(), SelfPacedLogisticRegression()).fit(data.data, noisy), data.data, noisy


def figures(model: Any, X: Any, y: Any) -> None:
    """Rules, and the displays of a fitted model."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    rules = ["huber", "cauchy", "welsch", "tukey", "mixture", "hard"]
    for ax, quantity in zip(axes, ("weight", "latent"), strict=True):
        plot.regularizers(rules, quantity=quantity, ax=ax)
        ax.axvline(1, color="0.8", zorder=0)
    figure.savefig(IMAGES / "plot_rules.png", dpi=100)
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    plot.path(model, ax=axes[0])
    plot.weights(model, y, ax=axes[1])
    plot.suspects(model, X, y, n=12, ax=axes[2])
    figure.savefig(IMAGES / "plot_displays.png", dpi=80)


def network(path: Path) -> Path:
    """The page of a network that was trained on digits, 40 % of their labels wrong."""
    import torch
    from sklearn.datasets import load_digits
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from selfpaced.torch import SelfPacedLoss, review

    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    images, labels = (
        torch.tensor(X / 16).float().reshape(-1, 1, 8, 8),
        torch.tensor(flip_symmetric(y, 0.4, random_state=0)[0]),
    )
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    criterion, optimizer = SelfPacedLoss(n=len(images)), torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(30):
        for rows in torch.randperm(len(images)).split(128):
            optimizer.zero_grad()
            criterion(net(images[rows]), labels[rows]).backward()
            optimizer.step()
    seen = review(net, DataLoader(TensorDataset(images, labels), batch_size=500), criterion)
    return report(seen, path=path, title="Digits, 40 % of the labels wrong")


def shelter(folder: Path) -> Path:
    """The page of the table of the tutorial."""
    from selfpaced.cli import main
    from selfpaced.datasets import make_shelter

    table = make_shelter(random_state=0)
    table["kind"], _ = flip_symmetric(table["kind"].to_numpy(dtype=str), 1 / 12, random_state=0)
    table.to_csv(folder / "shelter.csv", index=False)
    main(["fit", str(folder / "shelter.csv"), "--target", "kind", "--out", str(folder / "run"), "--quiet"])
    return folder / "run" / "report.html"


def screenshots() -> None:
    """The report in light and dark, and that of a network."""
    from selenium import webdriver
    from selenium.webdriver.support.ui import WebDriverWait

    with tempfile.TemporaryDirectory() as folder:
        page, net = shelter(Path(folder)), network(Path(folder) / "network.html")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"):
            options.add_argument(argument)
        options.add_argument(f"--user-data-dir={folder}/profile")
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        shots = [(page, "light", "report_page.png", 1300), (page, "dark", "report_dark.png", 1300)]
        for shown, scheme, name, height in [*shots, (net, "light", "torch_report.png", 2750)]:
            size = {"width": 1200, "height": height, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            wish = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)
            browser.get(shown.as_uri())
            WebDriverWait(browser, 30).until(
                lambda b: b.execute_script("return document.documentElement.dataset.drawn") == "yes"
            )
            browser.save_screenshot(str(IMAGES / name))
        browser.quit()


if __name__ == "__main__":
    made = fitted()
    figures(*made)
    screenshots()
