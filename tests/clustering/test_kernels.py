"""One sweep against the same computed sample by sample, and the fused costs against the registry."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from selfpaced.clustering import kernels
from selfpaced.clustering.kernels import Cost, Views, sweep
from selfpaced.regularizers import REGISTRY, Regularizer, get


def problem(n=57, widths=(5, 3), restarts=3, clusters=4, seed=0):
    rng = np.random.default_rng(seed)
    blocks = tuple(rng.standard_normal((n, d)).astype(np.float32) for d in widths)
    centers = [rng.standard_normal((restarts, clusters, d)).astype(np.float32) for d in widths]
    return blocks, centers


def by_hand(views, centers, cost):
    """Labels, losses, objective and next centres with loops and float64."""
    restarts, clusters = centers[0].shape[:2]
    n, present = views.n, views.present
    present = np.ones((len(centers), n), bool) if present is None else present
    weight = np.ones(n) if views.weight is None else views.weight
    blocks = [np.asarray(b.todense() if sp.issparse(b) else b, np.float64) for b in views.blocks]
    labels, objective, new = np.empty((restarts, n), int), np.zeros(restarts), [c.copy() for c in centers]
    for r in range(restarts):
        gap = np.array(
            [((b[:, None] - c[r]) ** 2).sum(2) * p[:, None] for b, c, p in zip(blocks, centers, present, strict=True)]
        )
        price = cost.latent(gap.reshape(-1)).reshape(gap.shape).sum(0)
        labels[r] = price.argmin(1)
        objective[r] = (price.min(1) * weight).sum()
        loss = gap[:, np.arange(n), labels[r]]
        v = cost.weight(loss.reshape(-1)).reshape(loss.shape) * weight * present
        for i, block in enumerate(blocks):
            for k in range(clusters):
                here = (labels[r] == k) & (v[i] > 0)
                if here.any():
                    new[i][r, k] = np.average(block[here], axis=0, weights=v[i][here])
    return labels, objective, new


@pytest.mark.parametrize("chunk", [64, 1 << 17])
@pytest.mark.parametrize("kind", ["plain", "welsch", "linear", "weighted", "missing", "sparse"])
def test_sweep_equals_loops(monkeypatch, kind, chunk):
    monkeypatch.setattr(kernels, "CHUNK", chunk)
    blocks, centers = problem(n=200)
    rng = np.random.default_rng(1)
    present = rng.random((2, 200)) < 0.8
    present[0] |= ~present.any(axis=0)
    weight = rng.random(200).astype(np.float32)
    if kind == "missing":
        blocks = tuple(np.where(p[:, None], b, 0).astype(np.float32) for p, b in zip(present, blocks, strict=True))
    if kind == "sparse":
        blocks = (sp.csr_matrix(blocks[0]), blocks[1])
    views = Views(blocks, present if kind == "missing" else None, weight if kind == "weighted" else None)
    cost = Cost() if kind == "plain" else Cost(get("linear"), 40.0) if kind == "linear" else Cost(get("welsch"), 3.0)
    found = sweep(views, views.norms(), centers, cost)
    labels, objective, new = by_hand(views, centers, cost)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_allclose(found.objective, objective, rtol=1e-5)
    for got, expected in zip(found.centers, new, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lam", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("name", [name for name, rule in REGISTRY.items() if issubclass(rule, Regularizer)])
def test_the_cost_is_the_rule_s(name, lam):
    rule = get(name)
    lam = min(lam, 0.9 * rule.pace_range[1])
    distance = np.geomspace(1e-3, 1e3, 50).astype(np.float32)
    expected = rule.latent(distance.astype(np.float64), lam) / float(rule.max_weight(lam))
    before = distance.copy()
    np.testing.assert_allclose(Cost(rule, lam).latent(distance), expected, rtol=2e-5, atol=1e-6 * max(lam, 1) ** 2)
    np.testing.assert_array_equal(distance, before)


@pytest.mark.parametrize("name", ["welsch", "logistic", "tukey"])
def test_unit_rescales_distances(name):
    rule = get(name)
    distance = np.linspace(0.1, 9, 20)
    np.testing.assert_allclose(Cost(rule, 1.5, unit=3.0).weight(distance), rule.relative_weight(distance / 3, 1.5))
    slope = np.diff(Cost(rule, 1.5, unit=3.0).latent(np.array([0.0, 1e-6]))) / 1e-6
    np.testing.assert_allclose(slope, 1, rtol=1e-4)


def test_saturated_samples_go_to_the_nearest_centre():
    block = np.array([[0.0], [10.0], [1e6], [-1e6]], np.float32)
    views = Views((block,))
    for name in ("welsch", "hard", "tukey"):
        found = sweep(views, views.norms(), [np.array([[[0.0], [10.0]]], np.float32)], Cost(get(name), 1.0))
        assert found.labels.tolist() == [[0, 1, 1, 0]]


def test_a_cluster_without_weight_keeps_its_centre():
    views = Views((np.array([[0.0], [100.0]], np.float32),))
    found = sweep(views, views.norms(), [np.array([[[0.0], [60.0]]], np.float32)], Cost(get("hard"), 1.0))
    assert found.centers[0].ravel().tolist() == [0.0, 60.0]
    assert not found.empty.any()


def test_chunks_cover_every_sample_once():
    parts = np.concatenate([np.arange(p.start, p.stop) for p in kernels.chunks(1000, 500)])
    np.testing.assert_array_equal(parts, np.arange(1000))


def test_gaps_are_squared_distances_and_scale_up_for_missing_views():
    blocks, _ = problem(n=20)
    views = Views(blocks)
    got = kernels.gaps(views, views.norms(), np.array([3, 7]), Cost())
    expected = sum(((b[[3, 7]][:, None] - b) ** 2).sum(2) for b in blocks)
    np.testing.assert_allclose(got, expected, atol=1e-4)
    present = np.ones((2, 20), bool)
    present[1, 5] = False
    got = kernels.gaps(Views(blocks, present), views.norms(), np.array([3]), Cost())
    np.testing.assert_allclose(got[0, 5], 2 * ((blocks[0][3] - blocks[0][5]) ** 2).sum(), rtol=1e-4)


def test_seeds_are_distinct_samples_and_spread_over_clusters():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    block = (np.eye(3)[y] * 50 + rng.standard_normal((90, 3))).astype(np.float32)
    views = Views((block,))
    seeds = kernels.plus_plus(views, views.norms(), 3, 5, Cost(), np.random.default_rng(0))[0]
    for start in seeds:
        assert sorted(start.argmax(axis=1).tolist()) == [0, 1, 2]


def test_gross_outliers_do_not_move_the_usual_gap():
    rng = np.random.default_rng(0)
    block = rng.standard_normal((200, 5)).astype(np.float32)
    spoilt = block.copy()
    spoilt[:40] *= 50
    clean, dirty = (
        kernels.usual_gap(views, views.norms(), 2, np.random.default_rng(0))
        for views in (Views((block,)), Views((spoilt,)))
    )
    assert 0 < clean < 10
    assert dirty < 2 * clean
