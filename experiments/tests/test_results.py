"""Results are plain data: JSON and back, and nothing else gets in."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from selfpaced_experiments import paper
from selfpaced_experiments.claims import assess
from selfpaced_experiments.render import results_page
from selfpaced_experiments.results import Published, Results, Score, load, save


def test_json_round_trip_keeps_everything(results, tmp_path):
    assessed = assess(results)
    once = Results.from_json(assessed.to_json())
    assert once.to_json() == assessed.to_json()
    assert Results.from_json(once.to_json()) == once
    assert once.table("table5-20").row("LR").scores["Breast"].by_seed == (93.0, 93.1)
    assert load(save(assessed, tmp_path)) == once


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d["run"].pop("command"), r"results\.run"),
        (lambda d: d["run"].update(extra=1), r"results\.run"),
        (lambda d: d["run"].update(quick="yes"), r"results\.run\.quick"),
        (lambda d: d["tables"][0]["rows"][1].update(group="mine"), r"results\.tables\[0\]\.rows\[1\]\.group"),
        (lambda d: d.update(schema=99), "schema"),
    ],
)
def test_a_wrong_file_is_refused_by_the_name_of_the_field(results, change, named):
    data = json.loads(results.to_json())
    change(data)
    with pytest.raises(ValueError, match=named):
        Results.from_json(json.dumps(data))


def test_infinite_values_survive(results):
    from dataclasses import replace

    odd = replace(results, run=replace(results.run, seconds=math.inf))
    assert Results.from_json(odd.to_json()).run.seconds == math.inf


def test_score_pools_folds_and_keeps_seeds():
    score = Score.of({4: [5.0, 7.0], 2: [1.0, 3.0]})
    assert score.mean == 4.0
    assert score.n == 4
    assert score.by_seed == (2.0, 6.0)
    assert score.seeds == (2, 4)
    np.testing.assert_allclose([score.std, score.seed_std], [np.std([1, 3, 5, 7]), 2.0])


def test_objects_do_not_reach_the_file(results):
    from dataclasses import replace

    with pytest.raises(TypeError, match="plain values"):
        replace(results, skipped=(object(),)).to_json()


@pytest.mark.parametrize("name", ["Breast", "Spambase", "Svmguide1"])
def test_the_paper_s_bold_figures_are_the_best_of_their_rows(name):
    best = {rate: max(table, key=lambda m: table[m][name].mean) for rate, table in paper.CLASSIFICATION.items()}
    assert best == {0.0: "SPL-IR-huber" if name == "Breast" else "SPL-IR-welsch", 0.2: "SPL-IR-welsch"}


def test_the_paper_s_tables_are_complete_and_spot_checked():
    assert len(paper.CLUSTERING) == 14
    assert all(list(row) == list(paper.METRICS) for row in paper.CLUSTERING.values())
    assert paper.CLUSTERING["MSPL"]["F-score"] == Published(0.776, 0.057)
    assert paper.CLUSTERING["SPL-IR-welsch"]["ACC"] == Published(0.862, 0.071)
    assert paper.FACTORIZATION["PRMF"] == {"RMSE": Published(0.1528), "MAE": Published(0.0994)}
    assert paper.CLASSIFICATION[0.2]["SPL-mixture"]["Svmguide1"] == Published(93.81, 0.79)
    best = {m: min(paper.FACTORIZATION, key=lambda k: paper.FACTORIZATION[k][m].mean) for m in ("RMSE", "MAE")}
    assert set(best.values()) == {"SPL-IR-welsch"}


def test_sections_that_are_not_run_stay_and_say_so(results):
    earlier = replace(
        results,
        tables=(replace(results.tables[0], key="table2"), replace(results.tables[1], key="table5-0")),
        run=replace(results.run, date="2026-01-01", seeds={"table2": 50, "table5": 5}, kept=""),
    )
    table = replace(results.tables[0], key="table5-0", title="anew")
    run = replace(results.run, seeds={"table5": 2})
    alone = replace(results, tables=(table,), theory=(), figures=(), run=run)
    both = alone.beside(earlier, ("table5",))
    assert [table.key for table in both.tables] == ["table2", "table5-0"]
    assert both.table("table5-0").title == "anew"
    assert both.run.seeds == {"table2": 50, "table5": 2}
    assert (both.theory, both.figures) == (earlier.theory, earlier.figures)
    assert both.run.kept == "table1, table2, table3, figure1, figure2, figure3 of 2026-01-01"
    assert f"> Kept from earlier runs, not computed by this one: {both.run.kept}." in results_page(both)
    assert alone.beside(both, ("table5",)).run.kept == both.run.kept
