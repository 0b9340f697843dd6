"""The page in a real browser: the table filters, nothing is loaded, nothing goes wrong."""

import csv

import numpy as np
import pytest

from selfpaced.assessment import Assessment, AssessmentMixin, TrainedNetwork, Values
from selfpaced.report import report
from selfpaced.report.data import ReportColumn, ReportTable, Summary
from selfpaced.report.page import render
from selfpaced.selection import Candidate

from .conftest import downloaded, wait

By = pytest.importorskip("selenium.webdriver.common.by", reason="the browser tests need Selenium").By

EVIL = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


def show(browser, path):
    browser.get(path.as_uri())
    wait(browser, lambda b: b.execute_script("return document.documentElement.dataset.drawn") == "yes")
    return browser


def text(browser, id):
    return browser.find_element(By.ID, id).text


def rows(browser):
    script = "return [...document.querySelectorAll('#table tbody tr:not(.cells, .level)')].map((r) => "
    return browser.execute_script(script + "[...r.cells].map((c) => c.innerText))")


def search(browser, words):
    """Type into the search field and wait until the table shows what was asked for, not what was there in between."""
    field = browser.find_element(By.ID, "search")
    field.clear()
    field.send_keys(words)
    wait(browser, lambda b: b.find_element(By.ID, "table").get_attribute("data-searched") == words.strip())


def assert_clean(browser):
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    resources = browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)")
    assert [name for name in resources if not name.startswith(("data:", "blob:"))] == []


@pytest.fixture
def page(browser, classified, tmp_path):
    case = classified
    return show(browser, report(case.model, case.X, case.y, tmp_path / "report.html"))


def test_the_table_filters_sorts_and_turns_pages(page, classified):
    found = np.flatnonzero(classified.model.assessment_.levels())
    assert text(page, "position") == f"1–25 of {len(found)}"
    search(page, f"{found[-1]}")
    assert 0 < int(text(page, "position").split(" of ")[-1]) < len(found)
    assert any(str(found[-1]) in " ".join(row) for row in rows(page))
    search(page, "nothing like this")
    assert text(page, "position") == "nothing found"
    assert rows(page) == []
    search(page, " ")
    header = page.find_elements(By.CSS_SELECTOR, "#table th button")[0]
    assert header.text == "Row"
    header.click()
    assert [int(row[1]) for row in rows(page)] == found[:25].tolist()
    page.find_elements(By.CSS_SELECTOR, "#table th button")[0].click()
    page.find_element(By.ID, "last").click()
    assert [int(row[1]) for row in rows(page)] == found[: len(found) % 25][::-1].tolist()
    assert not page.find_element(By.ID, "next").is_enabled()
    assert_clean(page)


def test_both_levels_have_a_heading_until_the_table_is_sorted(browser, classified, tmp_path):
    table = {"row": [5, 3, 9], "level": ["likely error", "worth a look", "worth a look"], "given": ["no", "yes", "no"]}
    table |= {"expected": ["yes", "no", "yes"], "noise_probability": [0.9, 0.4, 0.3]}
    path = report(classified.model, classified.X, classified.y, tmp_path / "levels.html", suspects=table)
    page = show(browser, path)

    def headings():
        return [row.text for row in page.find_elements(By.CSS_SELECTOR, "#table tr.level")]

    assert [heading.split()[0] for heading in headings()] == ["1", "2"]
    assert "likely error" in headings()[0]
    assert "worth a look" in headings()[1]
    assert [int(row[1]) for row in rows(page)] == [5, 3, 9]
    page.find_elements(By.CSS_SELECTOR, "#table th button")[0].click()
    assert headings() == []
    assert [int(row[1]) for row in rows(page)] == [3, 5, 9]
    assert_clean(page)


def shown_cells(page, place):
    """Names and texts of the cells below a row of the table, and whether all of them are shown."""
    script = "const r = [...document.querySelectorAll('#table .cells')][arguments[0]]; const of = (t) => "
    script += "[...r.querySelectorAll(t)].map((e) => e.innerText); return [of('dt'), of('dd'), !r.matches('.brief')]"
    return page.execute_script(script, place)


def test_every_row_shows_its_cells_and_the_current_one_all_of_them(page, classified):
    def numbers(place):
        row = classified.X[int(rows(page)[place][1])]
        names, texts, whole = shown_cells(page, place)
        expected = [row[int(name.removeprefix("x"))] for name in names]
        assert np.allclose(np.array(texts, dtype=float), expected, rtol=1e-3)
        return len(names), whole

    assert numbers(0) == (6, True)
    assert numbers(1) == (6, False)
    page.find_elements(By.CSS_SELECTOR, "#table .open")[1].click()
    assert numbers(1) == (6, True)
    page.find_elements(By.CSS_SELECTOR, "#table .open")[1].click()
    assert numbers(1) == (6, False)


def test_one_list_can_be_shown_alone(browser, classified, tmp_path):
    table = {"row": [5, 3, 9], "level": ["likely error", "worth a look", "worth a look"], "given": ["no", "yes", "no"]}
    table |= {"expected": ["yes", "no", "yes"], "noise_probability": [0.9, 0.04, 0.03]}
    table["probability_if_noisy"] = [0.95, 0.4, 0.3]
    path = report(classified.model, classified.X, classified.y, tmp_path / "lists.html", suspects=table)
    page = show(browser, path)
    buttons = page.find_elements(By.CSS_SELECTOR, "#lists button")
    assert [button.text for button in buttons] == ["Both lists", "1 likely error", "2 rows worth a look"]
    buttons[2].click()
    assert [int(row[1]) for row in rows(page)] == [3, 9]
    assert "40 %" in rows(page)[0][4]  # not the 4 % that any are wrong and this one is
    page.find_elements(By.CSS_SELECTOR, "#lists button")[1].click()
    assert [int(row[1]) for row in rows(page)] == [5]
    press = page.find_element(By.TAG_NAME, "body").send_keys
    press("l")
    assert len(rows(page)) == 2  # rows worth a look
    press("l")
    assert len(rows(page)) == 3  # both lists again
    press("f")
    assert page.switch_to.active_element.get_attribute("id") == "by-state"
    assert_clean(page)


def test_export_writes_the_filtered_rows(page, tmp_path):
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    search(page, "0.9")
    count = int(text(page, "position").split(" of ")[1])
    page.find_element(By.ID, "export").click()
    target = tmp_path / "suspects.csv"
    downloaded(page, target)
    with target.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == count
    assert {"row", "given", "weight"} <= set(table[0])


def test_export_marks_what_a_spreadsheet_would_run(browser, tmp_path):
    n, evil = 4, '=HYPERLINK("http://evil.example","x")'
    table = ReportTable(
        (
            ReportColumn("row", "Row", "integer", list(range(n))),
            ReportColumn("given", "Given", "text", [evil, "-5", "@x", "fine"]),
        ),
        n,
    )
    page = tmp_path / "page.html"
    page.write_text(render(Summary("t", "labels", "s", suspects=table)), encoding="utf-8")
    show(browser, page)
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    browser.find_element(By.ID, "export").click()
    downloaded(browser, tmp_path / "suspects.csv")
    with (tmp_path / "suspects.csv").open(encoding="utf-8", newline="") as file:
        assert [row["given"] for row in csv.DictReader(file)] == [f"'{evil}", "-5", "'@x", "fine"]


def test_the_page_runs_no_script_but_its_own_and_loads_nothing(page):
    policy = page.find_element(By.CSS_SELECTOR, "meta[http-equiv='Content-Security-Policy']").get_attribute("content")
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    page.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s);"
        "const i = document.createElement('img'); i.src = 'https://evil.example/x.png'; document.body.append(i);"
    )
    blocked = wait(
        page, lambda b: [e["message"] for e in b.get_log("browser") if "Content Security Policy" in e["message"]]
    )
    assert blocked
    assert page.execute_script("return window.hacked === undefined")


def test_a_network_shows_its_epochs_and_pictures_of_its_suspects(browser, tmp_path):
    n, rng = 40, np.random.default_rng(0)
    wrong = np.linspace(0, 1, n)
    assessment = Assessment("values", Values(wrong, np.zeros(n), wrong), wrong, lam=0.5, rule="welsch")
    numbers = {"rate": 0.3, "lower": 0.2, "upper": 0.4, "trusted": 0.6, "lam": 0.5}
    phases = ["look", "look", "paced", "paced"]
    epochs = tuple({"epoch": k + 1, "phase": p, "agreement": 0.5 + k / 10, **numbers} for k, p in enumerate(phases))
    pictures = tuple(rng.random((1, 12, 9)) for _ in range(30))
    network = TrainedNetwork("Sequential", assessment, epochs, "wrong labels were found", pictures=pictures)
    show(browser, report(network, path=tmp_path / "network.html"))
    for k in range(4):
        points = browser.find_elements(By.CSS_SELECTOR, f"#chart-history-{k} .mark-symbol.role-mark path")
        assert len(points) == 4
        assert len({point.get_attribute("fill") for point in points}) == 2  # one colour for each phase
    assert browser.find_elements(By.CSS_SELECTOR, "#chart-history-1 .mark-area path")
    sizes = "return [...document.querySelectorAll('#table img')].map((i) => [i.naturalWidth, i.naturalHeight])"
    wait(browser, lambda b: b.execute_script(sizes) == [[9, 12]] * 25)
    browser.find_element(By.ID, "next").click()
    wait(browser, lambda b: b.execute_script(sizes) == [[9, 12]] * 5)  # ten rows more have no picture
    assert len(rows(browser)) == 15
    assert_clean(browser)


def test_light_and_dark(page):
    def ground():
        return page.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = ground()
    page.find_element(By.ID, "theme").click()
    assert ground() != light
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    dark = ground()
    page.execute_script("delete document.documentElement.dataset.theme")
    assert ground() == dark
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert_clean(page)


def test_no_sideways_scrolling_on_a_phone(browser, regressed, factorized, tmp_path):
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for name, case in (("a", regressed), ("b", factorized)):
            show(browser, report(case.model, path=tmp_path / f"{name}.html"))
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
            smallest = browser.execute_script(
                "return Math.min(...[...document.querySelectorAll('svg text')].map("
                "(t) => parseFloat(getComputedStyle(t).fontSize)))"
            )
            assert smallest >= 10
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_kind_is_drawn(browser, regressed, factorized, clustered, tmp_path):
    expected = {
        "regressed": ["chart-scatter"],
        "factorized": ["chart-residual", "chart-entry-weight"],
        "clustered": [],
    }
    cases = {"regressed": regressed, "factorized": factorized, "clustered": clustered}
    for name, charts in expected.items():
        show(browser, report(cases[name].model, path=tmp_path / f"{name}.html"))
        for chart in charts:
            assert browser.find_elements(
                By.CSS_SELECTOR, f"#{chart} svg .mark-rect path, #{chart} svg .mark-symbol path"
            )
        assert_clean(browser)


def test_markup_in_the_data_stays_text(browser, tmp_path):
    class Fitted(AssessmentMixin):
        assessment_ = Assessment("labels", Values(*np.eye(3)), losses=np.array([3.0, 0.1, 0.2]), lam=1.0, rule="welsch")
        lam_, noise_rate_, noise_rate_interval_, n_features_in_ = 1.0, 0.1, (0.0, 0.2), 1
        termination_ = EVIL
        _assess = None
        path_ = (Candidate(1.0, 0.5, 0.1, 0.6, chosen=True, label=EVIL),)

    table = {"row": [0, 1, 2], "given": [EVIL, "b", "c"], EVIL: [1, 2, 3], "weight": [0.1, 0.9, 1.0]}
    made = report(Fitted(), path=tmp_path / "evil.html", suspects=table, title=EVIL, note=EVIL)
    show(browser, made)
    assert rows(browser)[0][1] == EVIL
    assert browser.find_element(By.TAG_NAME, "h1").text == EVIL
    assert EVIL in browser.find_element(By.ID, "path").text
    assert browser.execute_script("return window.hacked") is None
    assert_clean(browser)


def test_a_hundred_thousand_rows(browser, tmp_path):
    n = 100_000
    rng = np.random.default_rng(0)
    weight = np.sort(rng.random(n)).round(4)
    columns = (
        ReportColumn("row", "Row", "integer", rng.permutation(n).tolist()),
        ReportColumn("given", "Given", "text", [f"label {k % 7}" for k in range(n)]),
        ReportColumn("weight", "Weight", "weight", weight.tolist()),
    )
    path = tmp_path / "large.html"
    path.write_text(
        render(Summary("Large", "samples", "Many rows.", suspects=ReportTable(columns, n))), encoding="utf-8"
    )
    browser.get(path.as_uri())
    wait(browser, lambda b: text(b, "position") == "1–25 of 100,000")
    search(browser, "label 3")
    found = sum(k % 7 == 3 for k in range(n))
    assert text(browser, "position") == f"1–25 of {found:,}"
    header = browser.find_elements(By.CSS_SELECTOR, "#table th button")[2]
    header.click()
    browser.find_elements(By.CSS_SELECTOR, "#table th button")[2].click()
    assert float(rows(browser)[0][2]) == pytest.approx(max(weight[3::7]), abs=1e-3)
    browser.find_element(By.ID, "last").click()
    assert text(browser, "position").endswith(f"–{found:,} of {found:,}")
    assert_clean(browser)
