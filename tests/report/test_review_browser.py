"""Deciding about suspects in a real browser: by key and by button, alone and served, from the first key to the file."""

import csv
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from selfpaced.cli.review import serve
from selfpaced.report import report
from selfpaced.tables import apply_decisions

from .conftest import downloaded, wait

By = pytest.importorskip("selenium.webdriver.common.by", reason="the browser tests need Selenium").By
from selenium.webdriver import ActionChains, Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402


def press(browser, *keys):
    ActionChains(browser).send_keys(*keys).perform()


def progress(browser):
    return browser.find_element(By.ID, "progress-text").text


def current(browser):
    """The row under the cursor, and its pressed button."""
    row = browser.find_element(By.CSS_SELECTOR, "#table tr.current")
    pressed = row.find_elements(By.CSS_SELECTOR, "[aria-pressed=true]")
    return row, pressed[0].text if pressed else ""


def no_errors(browser):
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.fixture
def run_folder(classified, tmp_path):
    """A folder as `selfpaced fit` leaves it, and its table."""
    folder = tmp_path / "run"
    folder.mkdir()
    table = pd.DataFrame(classified.X, columns=list("abcdef")).assign(label=classified.y)
    from selfpaced import suspects
    from selfpaced.tables import row_marks

    found = suspects(classified.model, classified.X, classified.y)
    marked = found.assign(line=found["row"] + 2, why="", against="", target="label")
    marked = marked.assign(fingerprint=row_marks(table, found["row"].to_numpy()))
    marked.assign(decision="").to_csv(folder / "suspects.csv", index=False)
    shown = marked[["row", "line", "level", "given", "expected", "noise_probability", "target", "fingerprint"]]
    report(classified.model, classified.X, classified.y, folder / "report.html", suspects=shown, cells=table)
    return folder, table, found


@contextmanager
def served(browser, folder):
    server, address = serve(folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield address
    finally:
        if browser is not None:
            browser.get("about:blank")  # no page is left that asks a server which is gone
        server.shutdown()
        server.server_close()
        thread.join()


def test_from_the_first_key_to_the_file_on_disk(browser, run_folder):
    folder, table, found = run_folder
    n, rows, path = len(found), found["row"].tolist(), folder / "decisions.csv"
    with served(browser, folder) as address:
        browser.get(address)
        wait(browser, lambda b: progress(b) == f"0 of {n} decided")
        press(browser, "1")
        wait(browser, lambda _: path.exists())
        press(browser, "2", "3")
        wait(browser, lambda _: len(pd.read_csv(path)) == 3)
        press(browser, "j", "k", "u")  # the last one is taken back
        wait(browser, lambda _: len(pd.read_csv(path)) == 2)
        press(browser, "4")
        press(browser, "yes", Keys.ENTER)
        wait(browser, lambda _: len(pd.read_csv(path)) == 3)
        assert progress(browser) == f"3 of {n} decided"
        no_errors(browser)
    made = pd.read_csv(path)
    assert made["row"].tolist() == rows[:3]
    assert made["decision"].tolist() == ["keep", f"relabel to {found['expected'][1]}", "relabel to yes"]
    reviewed = apply_decisions(table, path)
    assert reviewed.replaced.tolist() == sorted(rows[1:3])
    assert reviewed.table["label"].iloc[rows[1]] == found["expected"][1]


def test_an_answer_that_comes_late_does_not_take_the_field_away(browser, run_folder):
    folder, _, found = run_folder
    n, path = len(found), folder / "decisions.csv"
    with served(browser, folder) as address:
        browser.get(address)
        wait(browser, lambda b: progress(b) == f"0 of {n} decided")
        press(browser, "4", "ye")
        base, token = address.split("/?token=")
        elsewhere = f'{{"row": "{found["row"][5]}", "decision": "keep"}}'.encode()
        headers = {"X-Token": token, "Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{base}/decisions", elsewhere, headers)).close()
        browser.execute_script("window.dispatchEvent(new Event('focus'))")  # on coming back the page asks the folder
        wait(browser, lambda b: progress(b) == f"1 of {n} decided")
        press(browser, "s", Keys.ENTER)
        wait(browser, lambda _: len(pd.read_csv(path)) == 2)
        assert set(pd.read_csv(path)["decision"]) == {"keep", "relabel to yes"}
        no_errors(browser)


def test_two_tabs_do_not_lose_each_others_decisions(browser, run_folder):
    folder, _, found = run_folder
    n, path = len(found), folder / "decisions.csv"
    with served(browser, folder) as address:
        browser.get(address)
        wait(browser, lambda b: progress(b) == f"0 of {n} decided")
        first = browser.current_window_handle
        browser.switch_to.new_window("tab")
        second = browser.current_window_handle
        try:
            browser.get(address)
            wait(browser, lambda b: progress(b) == f"0 of {n} decided")
            press(browser, "1")
            wait(browser, lambda _: path.exists())
            browser.switch_to.window(first)
            press(browser, "j", "j", "3")  # another row, from a tab that has not seen the first decision
            wait(browser, lambda _: len(pd.read_csv(path)) == 2)
            wait(browser, lambda b: progress(b) == f"2 of {n} decided")
            assert set(pd.read_csv(path)["row"]) == {found["row"][0], found["row"][2]}
            browser.refresh()
            wait(browser, lambda b: progress(b) == f"2 of {n} decided")
        finally:
            browser.switch_to.window(second)
            browser.close()
            browser.switch_to.window(first)


def test_only_the_page_itself_is_answered(run_folder):
    folder, _, found = run_folder
    row = str(found["row"][0])
    with served(None, folder) as address:
        base, token = address.split("/?token=")

        def status(path, method="GET", body=None, **headers):
            request = urllib.request.Request(base + path, body, headers, method=method)
            try:
                with urllib.request.urlopen(request) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                return error.code

        sent = f'{{"row": "{row}", "decision": "keep"}}'.encode()
        mine = {"X-Token": token, "Content-Type": "application/json"}
        assert base.startswith("http://127.0.0.1:")
        assert status(f"/?token={token}") == 200
        assert status("/") == status("/?token=wrong") == status("/decisions") == 403
        for path in ("/metrics.json", "/suspects.csv", "/../shop.csv", "/report.html", "/decisions.csv"):
            assert status(path, **mine) == 404
        strangers = ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"})
        for headers in strangers:
            assert status("/decisions", "POST", sent, **mine | headers) == 403
        for bad in (b"[]", b"{", b'{"row": "x", "decision": "keep"}', sent.replace(b"keep", b"guess"), b" " * 20_000):
            assert status("/decisions", "POST", bad, **mine) == 400
        assert status("/decisions", "POST", sent, **mine | {"Content-Type": "text/plain"}) == 400
        assert status("/elsewhere", "POST", sent, **mine) == 404
        assert status("/decisions", "PUT", sent, **mine) == 501
        assert not (folder / "decisions.csv").exists()
        assert status("/decisions", "POST", sent, **mine) == 200
        assert (folder / "decisions.csv").exists()


def test_decisions_survive_a_reload_and_are_exported(browser, run_folder, tmp_path):
    folder, table, found = run_folder
    n = len(found)
    browser.get((folder / "report.html").as_uri())
    wait(browser, lambda b: progress(b) == f"0 of {n} decided")
    press(browser, "2", "3")
    browser.find_elements(By.CSS_SELECTOR, "#table tr.current .decision button")[0].click()
    assert progress(browser) == f"3 of {n} decided"
    browser.refresh()
    wait(browser, lambda b: progress(b) == f"3 of {n} decided")
    row, pressed = current(browser)
    assert pressed == f"Relabel {found['expected'][0]}"
    again = "window.dispatchEvent(new Event('focus')); return arguments[0].isConnected"
    assert browser.execute_script(again, row)  # nothing new: what somebody is about to click on is not drawn anew
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    browser.find_element(By.ID, "export-decisions").click()
    downloaded(browser, tmp_path / "decisions.csv")
    with open(tmp_path / "decisions.csv", newline="", encoding="utf-8") as stream:
        made = list(csv.DictReader(stream))
    assert [one["decision"] for one in made] == [f"relabel to {found['expected'][0]}", "drop", "keep"]
    reviewed = apply_decisions(table, tmp_path / "decisions.csv")
    assert reviewed.dropped.tolist() == [found["row"][1]]
    no_errors(browser)
    browser.execute_script("localStorage.clear()")


def test_enter_shows_and_hides_the_cells_of_the_current_row(browser, run_folder):
    folder, table, _ = run_folder

    def whole():
        return browser.execute_script(
            "return !document.querySelector('#table tr.current').nextSibling.classList.contains('brief')"
        )

    browser.get((folder / "report.html").as_uri())
    wait(browser, lambda b: progress(b).startswith("0 of"))
    assert whole()
    cells = browser.find_elements(By.CSS_SELECTOR, "#table tr.current + .cells dd")
    assert len(cells) == table.shape[1] - 1  # all but the label, which is given
    press(browser, Keys.ENTER)
    assert not whole()
    press(browser, "j")
    assert whole()  # the next row is open
    press(browser, "k")
    assert not whole()
    press(browser, Keys.ENTER, "/")
    assert whole()
    assert browser.switch_to.active_element.get_attribute("id") == "search"
    no_errors(browser)


def test_no_control_is_wider_than_a_phone(browser, classified, tmp_path):
    long = "a label of more than eighty letters, which no phone shows in one line, and then some more"
    table = {
        "row": [5, 3],
        "level": ["likely error", "worth a look"],
        "given": [long, "yes"],
        "expected": ["yes", long],
    }
    table |= {"noise_probability": [0.9, 0.1], "against": ["a_column_with_a_long_name_and_no_spaces_in_it", ""]}
    cells = pd.DataFrame(classified.X).rename(columns=lambda k: f"a_column_with_a_long_name_and_no_spaces_{k}")
    path = report(classified.model, classified.X, classified.y, tmp_path / "p.html", suspects=table, cells=cells)
    size = {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get(path.as_uri())
        wait(browser, lambda b: b.execute_script("return document.documentElement.dataset.drawn") == "yes")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        wide = "[...document.querySelectorAll('button, input, select, progress, label, #table td')].filter("
        wide += "(e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML)"
        assert browser.execute_script(f"return {wide}") == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    no_errors(browser)


def test_filters_and_the_way_back(browser, run_folder):
    folder, _, found = run_folder
    browser.get((folder / "report.html").as_uri())
    wait(browser, lambda b: progress(b).startswith("0 of"))
    pair = Select(browser.find_element(By.ID, "by-pair"))
    pair.select_by_value("yes → no")
    shown = int(browser.find_element(By.ID, "position").text.split(" of ")[1])
    assert shown == int(np.sum((found["given"] == "yes") & (found["expected"] == "no")))
    browser.execute_script("document.activeElement.blur()")
    press(browser, "1", "1")
    Select(browser.find_element(By.ID, "by-state")).select_by_value("open")
    assert browser.find_element(By.ID, "position").text.endswith(f" of {shown - 2}")
    Select(browser.find_element(By.ID, "by-state")).select_by_value("decided")
    assert browser.find_element(By.ID, "position").text.endswith(" of 2")
    browser.execute_script("document.activeElement.blur()")
    press(browser, "u", "u", "u")
    assert progress(browser).startswith("0 of")
    browser.find_element(By.ID, "keys").click()
    browser.execute_script("document.activeElement.blur()")
    press(browser, "1")
    assert progress(browser).startswith("0 of")
    no_errors(browser)


def test_values_are_set(browser, regressed, tmp_path):
    path = report(regressed.model, regressed.X, regressed.y, tmp_path / "values.html")
    browser.get(path.as_uri())
    wait(browser, lambda b: progress(b).startswith("0 of"))
    press(browser, "4")
    press(browser, "much", Keys.ENTER)
    assert progress(browser).startswith("0 of")
    field = browser.find_element(By.CSS_SELECTOR, "#table .decision input")
    field.clear()
    field.send_keys("2.5", Keys.ENTER)
    wait(browser, lambda b: progress(b).startswith("1 of"))
    press(browser, "k")
    assert current(browser)[1] == "2.5"
    browser.execute_script("localStorage.clear()")
    no_errors(browser)


def test_a_page_without_suspects_says_so(browser, tmp_path):
    from selfpaced import SelfPacedLogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    browser.get(report(SelfPacedLogisticRegression().fit(X, y), X, y, tmp_path / "clean.html").as_uri())
    wait(browser, lambda b: b.execute_script("return document.documentElement.dataset.drawn") == "yes")
    assert browser.find_element(By.ID, "sentence").text.startswith("No likely error")
    assert "There are none" in browser.find_element(By.ID, "suspects").text
    no_errors(browser)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(browser, run_folder, regressed, theme, tmp_path):
    axe = pytest.importorskip("axe_core_python.base", reason="the check of accessibility needs axe-core-python")
    folder, _, _ = run_folder
    other = report(regressed.model, regressed.X, regressed.y, tmp_path / "values.html")
    for path in (folder / "report.html", other):
        browser.get(path.as_uri())
        wait(browser, lambda b: b.execute_script("return document.documentElement.dataset.drawn") == "yes")
        browser.execute_script(f"document.documentElement.dataset.theme = '{theme}'")
        browser.execute_script(axe.AXE_SCRIPT)
        result = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
        assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in result["violations"]] == []
