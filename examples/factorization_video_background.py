"""Restore the background of a video: half of the pixels are missing, objects move, and many pixels are wrong.

Frames are rows, pixels are columns. A still scene under changing light is a matrix of rank two. Moving objects and
wrong pixels are outliers. Only the rank is given: the model finds the noise scale and the outliers.

    python examples/factorization_video_background.py [picture.png]
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

from selfpaced import SelfPacedMF

FRAMES, SHOWN = 60, (8, 33)


def scene() -> tuple[np.ndarray, np.ndarray]:
    """A photograph in grey, about 100 pixels wide, and the shade that evening throws on it."""
    photo = load_sample_image("china.jpg").mean(axis=2)[:424, :640] / 255
    small = photo.reshape(106, 4, 160, 4).mean(axis=(1, 3))
    across = np.linspace(0, 1, small.shape[1])[None, :]
    return small, small * (0.2 + 0.8 * across)


def film(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The scene under changing light, and what the camera saw: two balls pass, specks fall, there is noise."""
    day, evening = scene()
    time = np.linspace(0, 1, FRAMES)
    light, shade = 0.55 + 0.3 * np.cos(2 * np.pi * time), 0.3 + 0.25 * np.sin(3 * np.pi * time)
    background = light[:, None, None] * day + shade[:, None, None] * evening
    seen = background + 0.02 * rng.standard_normal(background.shape)
    y, x = np.mgrid[: day.shape[0], : day.shape[1]]
    for k, t in enumerate(time):
        for centre, height, radius, shine in ((t * 190 - 15, 70, 17, 1.0), (150 - t * 170, 40, 12, 0.0)):
            ball = (x - centre) ** 2 + (y - height - 8 * np.sin(9 * t)) ** 2 < radius**2
            seen[k][ball] = shine
    specks = rng.random(seen.shape) < 0.15
    seen[specks] = rng.integers(0, 2, int(specks.sum()))
    return background, seen


def main() -> None:
    target = sys.argv[1] if len(sys.argv) > 1 else "factorization_video_background.png"
    rng = np.random.default_rng(0)
    background, seen = film(rng)
    given = np.where(rng.random(seen.shape) < 0.5, np.nan, seen)
    frames = given.reshape(FRAMES, -1)
    model = SelfPacedMF(rank=2, random_state=0).fit(frames)
    restored = model.reconstruct().reshape(background.shape)
    weights = model.entry_weight_.reshape(background.shape)
    # the common remedy: the mean of what was seen of a pixel, and the two leading singular vectors around it
    filled = np.where(np.isnan(frames), np.nanmean(frames, axis=0), frames)
    left, values, right = np.linalg.svd(filled, full_matrices=False)
    usual = (left[:, : model.rank_] * values[: model.rank_] @ right[: model.rank_]).reshape(background.shape)

    def off(image: np.ndarray) -> float:
        return float(np.sqrt(np.mean((image - background) ** 2)))

    print(model.termination_)
    print(f"RMSE: mean-filled SVD of the same rank {off(usual):.4f}, SelfPacedMF {off(restored):.4f} (noise 0.02)")
    columns = [
        ("what the model was given", given),
        (f"mean-filled SVD, rank {model.rank_}\nRMSE {off(usual):.3f}", usual),
        (f"SelfPacedMF, rank {model.rank_}\nRMSE {off(restored):.3f}", restored),
        ("the true background", background),
        ("weight of each pixel\n(black: an outlier, blue: missing)", weights),
    ]
    figure, axes = plt.subplots(len(SHOWN), len(columns), figsize=(13, 4.1), layout="constrained")
    for row, frame in zip(axes, SHOWN, strict=True):
        for axis, (title, images) in zip(row, columns, strict=True):
            colours = plt.get_cmap("gray").with_extremes(bad="#3b6ea5")
            axis.imshow(images[frame], cmap=colours, vmin=0, vmax=1, interpolation="nearest")
            axis.set_xticks([])
            axis.set_yticks([])
            if frame == SHOWN[0]:
                axis.set_title(title, fontsize=10)
        row[0].set_ylabel(f"frame {frame + 1} of {FRAMES}", fontsize=9)
    figure.savefig(target, dpi=64)
    Image.open(target).convert("RGB").quantize(96).save(
        target, optimize=True
    )  # noise does not compress: few greys keep the file small


if __name__ == "__main__":
    main()
