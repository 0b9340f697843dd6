import math
from dataclasses import replace

import numpy as np
import pytest

from selfpaced.selection import Candidate, Decision, Trial, behind, end_in_words, gap, mean_and_error, path_of, sentence

PLAIN = Trial(math.inf, "plain", scores=np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0]))
BETTER = Trial(2.0, "welsch lam=2", np.array([1.0, 1.0, 1.0, 0.0, 1.0, 1.0]), weight=np.array([1, 1, 0.5, 0, 1, 1.0]))
WORSE = Trial(1.0, "welsch lam=1", np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), weight=np.full(6, 0.25))


def test_the_gap_is_paired():
    difference = BETTER.scores - PLAIN.scores
    found = gap(BETTER, PLAIN)
    assert found.mean == pytest.approx(difference.mean())
    assert found.error == pytest.approx(difference.std() / math.sqrt(6))
    assert found.z == pytest.approx(found.mean / found.error)


def test_equal_candidates_are_no_standard_errors_apart():
    assert gap(PLAIN, PLAIN).z == 0


def test_behind_counts_from_the_best_paced_candidate():
    z = behind([PLAIN, WORSE, BETTER])
    assert z[2] == 0
    assert z[1] > z[0] > 0
    assert behind([PLAIN]).tolist() == [0.0]


def test_a_plain_model_that_is_ahead_is_behind_by_less_than_nothing():
    assert behind([PLAIN, WORSE])[0] < 0


def test_weights_count_rows_in_mean_and_error():
    values, weight = np.array([0.0, 1.0, 5.0]), np.array([1.0, 2.0, 0.0])
    found = mean_and_error(values, weight)
    assert found.mean == pytest.approx(2 / 3)
    assert found == mean_and_error(np.array([0.0, 1.0, 1.0]))


def test_the_path_shows_the_scores_that_were_compared():
    path = path_of([PLAIN, WORSE, BETTER], Decision(2, "it is better"))
    assert [candidate.chosen for candidate in path] == [False, False, True]
    assert path[2].score - path[0].score == pytest.approx(gap(BETTER, PLAIN).mean)
    assert path[0].mean_weight == 1.0
    assert path[2].mean_weight == pytest.approx(4.5 / 6)


def test_a_candidate_without_scores_cannot_be_compared():
    path = path_of([Trial(math.inf, "plain")], Decision(0, "too few rows"))
    assert math.isnan(path[0].score)
    with pytest.raises(ValueError, match="'plain' must have scores"):
        gap(BETTER, Trial(math.inf, "plain"))


def test_the_sentence_says_what_and_why():
    trials = [PLAIN, WORSE, BETTER]
    assert sentence(trials, Decision(0, "no pace is better")) == "The plain model is used: no pace is better."
    assert sentence(trials, Decision(2, "it is better")) == "Welsch lam=2 was chosen: it is better."


def test_the_end_has_the_mean_weight_of_the_chosen_candidate():
    """A label may be part of another one, and words of a candidate may be part of the sentence: nothing is replaced."""
    plain = Candidate(math.inf, label="plain", mean_weight=1.0)
    first = Candidate(1.0, label="welsch lam=1", mean_weight=0.74, chosen=True)
    other = Candidate(1.41, label="welsch lam=1.41", mean_weight=0.97)
    why = "Welsch lam=1 was chosen: averaged with welsch lam=1.41 (31%), plain (2%)."
    told = end_in_words(why, [plain, first, other], "entries")
    assert told.startswith(why)
    assert "The mean weight of the entries is 0.74." in told
    assert "0.97" not in told
    kept = "The plain model is used: welsch lam=1 is no better."
    assert end_in_words(kept, [replace(plain, chosen=True), replace(first, chosen=False)]) == kept
