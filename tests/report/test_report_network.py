"""A network on the page: its epochs, its suspects, and their pictures."""

import base64
import io
import math

import numpy as np
import pytest

from selfpaced.assessment import Assessment, TrainedNetwork, Values
from selfpaced.report import render, summarise
from selfpaced.report.tables import SIDE, THUMBNAIL_BYTES, thumbnails

Image = pytest.importorskip("PIL.Image", reason="pictures need Pillow")


def training(phases=("look", "look", "paced", "paced"), n=30, **rest):
    """Row k is the more suspicious the larger k is."""
    wrong = np.linspace(0.0, 1.0, n)
    assessment = Assessment("values", Values(wrong, np.zeros(n), wrong), wrong, lam=0.5, rule="welsch")
    rate = {"rate": 0.3, "lower": 0.2, "upper": 0.4}
    early = {"rate": math.nan, "lower": math.nan, "upper": math.nan}
    epochs = tuple(
        {
            "epoch": k + 1,
            "phase": phase,
            "agreement": 0.5 + 0.1 * k,
            "trusted": 0.6,
            "lam": 0.5,
            **(rate if k else early),
        }
        for k, phase in enumerate(phases)
    )
    return TrainedNetwork("Sequential", assessment, epochs, "wrong labels were found", **rest)


def pixels(url):
    """What a decoder sees: height, width, channels."""
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/png;base64,")))))
    return shown if shown.ndim == 3 else shown[:, :, None]


def test_the_epochs_are_the_path():
    summary = summarise(training())
    assert summary.kind == "network"
    assert summary.sentence.startswith("Sequential was trained for 4 epochs on 30 samples, paced from epoch 3 on; ")
    assert summary.termination == "wrong labels were found"
    history = summary.history
    assert history.index == (1, 2, 3, 4)
    assert history.phases == ("look", "look", "paced", "paced")
    assert list(history.series) == ["accuracy on the given labels", "rate of wrong labels", "trusted share", "pace λ"]
    assert history.bands == {"rate of wrong labels": ((None, 0.2, 0.2, 0.2), (None, 0.4, 0.4, 0.4))}
    facts = {fact.label: (fact.value, fact.note) for fact in summary.facts}
    assert facts["estimated label-error rate"] == ("30 %", "20 % to 40 %")
    assert facts["pace"] == ("λ = 0.5", "")


def test_the_suspects_are_those_of_the_assessment():
    table = summarise(training()).suspects
    assert list(table.columns[0].values) == list(range(29, -1, -1))
    named = summarise(training(names=np.array([f"scan {k}" for k in range(30)]))).suspects
    assert named.columns[0].values[0] == "scan 29"


def test_a_plain_training_says_so():
    summary = summarise(training(("look", "plain")))
    assert "all samples have full weight" in summary.sentence
    assert next(fact.value for fact in summary.facts if fact.label == "pace") == "plain"


def test_epochs_with_phases_are_also_a_table():
    page = render(summarise(training()))
    assert "The epochs as a table" in page
    assert "<td>paced</td>" in page


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3), (5, 7, 4), (3, 5, 7), (1, 5, 7)])
def test_bytes_are_shown_as_they_are(shape):
    picture = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    shown = pixels(thumbnails([picture])[0])
    first = picture.ndim == 3 and shape[0] in (1, 3)
    np.testing.assert_array_equal(shown.squeeze(), (np.moveaxis(picture, 0, -1) if first else picture).squeeze())


def test_other_values_share_one_scale():
    dark, bright = np.full((4, 4), -2.0), np.full((4, 4), 2.0)
    bright[0, 0] = np.nan
    first, second = (pixels(url)[:, :, 0] for url in thumbnails([dark, bright]))
    assert (first == 0).all()
    assert (second[0, 0], second[1, 1]) == (0, 255)
    grey = pixels(thumbnails([np.full((4, 4), 0.5)])[0])
    assert (grey == 128).all()  # values in [0, 1] keep their place


def test_large_pictures_shrink():
    picture = np.zeros((3 * SIDE, SIDE + 1), dtype=np.uint8)
    picture[:30, :30] = 90
    shown = pixels(thumbnails([picture])[0])
    assert shown.shape == (SIDE, -(-(SIDE + 1) // 3), 1)
    assert shown[5, 5, 0] == 90
    assert shown[15:].max() == 0


def test_a_page_holds_so_many_bytes_of_pictures_and_no_more():
    noise = np.random.default_rng(0).integers(0, 256, (150, SIDE, SIDE, 3)).astype(np.uint8)
    shown = thumbnails(noise)
    assert 20 < len(shown) < 150
    assert THUMBNAIL_BYTES - 20_000 < sum(map(len, shown)) <= THUMBNAIL_BYTES


def test_what_is_no_picture_is_refused():
    with pytest.raises(ValueError, match=r"a picture must be .* got \(7, 9, 9\)"):
        thumbnails([np.zeros((7, 9, 9))])
