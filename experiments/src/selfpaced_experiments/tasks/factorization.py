"""Factorize one realization of the paper's synthetic matrix by one method."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from selfpaced.datasets import make_low_rank
from selfpaced_experiments.paper import RULES

__all__ = ["FIXED", "LAMS", "STAGES", "half_quadratic", "run", "tendency"]

RANK = 4
# the paper's: the rank is known, no means, one ridge for all rules
PAPER_MODEL: dict[str, Any] = {"rank": RANK, "center": None, "ridge": 0.005}
Factor = NDArray[np.float64]
#: The fixed pace of the half-quadratic rows: near the best of figure 2b, which is a favour to them.
FIXED = 1.0
#: Fixed paces of figure 2b.
LAMS = (0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.5, 7.0)
#: Stages drawn in figure 3.
STAGES = 70
_NAMES = {label: name for name, label in RULES.items()}


def _errors(truth: NDArray[np.float64], estimate: NDArray[np.float64]) -> dict[str, float]:
    gap = truth - estimate
    return {"RMSE": float(np.sqrt(np.mean(gap**2))), "MAE": float(np.mean(np.abs(gap)))}


def run(*, method: str, bare: bool, seed: int, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """RMSE and MAE against the true matrix; the seeds of data and model are apart.

    ``bare`` is the path alone: no rescue of rows and columns and no final polish, which the paper does not have.
    """
    made = make_low_rank(random_state=seed)
    model = None if method == "oracle" else _model(method, 5_000 + seed)
    if bare and model is not None:
        model.set_params(rescue=False, polish=0)
    start = time.process_time()
    estimate = _oracle(made) if model is None else _estimate(model, made)
    return {"errors": _errors(made.truth, estimate), "seconds": time.process_time() - start}


def _estimate(model: Any, made: Bunch) -> NDArray[np.float64]:
    factors = model.fit_transform(made.data)
    return np.asarray(model.inverse_transform(factors))


def _model(method: str, seed: int) -> Any:
    from selfpaced import PRMF, SelfPacedMF
    from selfpaced.pacing import Fixed

    if method == "PRMF":
        return PRMF(rank=RANK, random_state=seed)
    if method == "SelfPacedMF()":
        return SelfPacedMF(random_state=seed)
    if method == "PRMF, fixed ridge":
        return PRMF(rank=RANK, continuation=False, random_state=seed)
    if method == "no pacing":
        return PRMF(rank=RANK, rescue=True, polish=8, random_state=seed)
    if method.startswith("half-quadratic"):
        init = "warm" if method.endswith("warm") else "random"
        return SelfPacedMF(regularizer="welsch", pace=Fixed(FIXED), init=init, random_state=seed, **PAPER_MODEL)
    return SelfPacedMF(regularizer=_NAMES[method], random_state=seed, **PAPER_MODEL)


def _oracle(made: Bunch, sweeps: int = 60, ridge: float = 0.05) -> NDArray[np.float64]:
    """Least squares on the entries that are known to be clean: what no method can be asked to beat."""
    mask = np.isfinite(made.data) & ~made.outlier_mask
    filled = np.where(mask, made.data, 0.0)
    rng = np.random.default_rng(1)
    U, V = rng.standard_normal((100, RANK)), rng.standard_normal((100, RANK))
    for _ in range(sweeps):
        U = _solve(filled, mask, V, ridge)
        V = _solve(filled.T, mask.T, U, ridge)
    return U @ V.T


def _solve(values: Factor, mask: NDArray[np.bool_], fixed: Factor, ridge: float) -> Factor:
    gram = np.einsum("ij,jk,jl->ikl", mask, fixed, fixed, optimize=True) + ridge * np.eye(fixed.shape[1])
    return np.linalg.solve(gram, (values @ fixed)[:, :, None])[:, :, 0]


class _Recorder:
    """Error against the truth after every stage of a path, by the estimator's callback."""

    def __init__(self, truth: NDArray[np.float64]) -> None:
        self.truth = truth
        self.lams: list[float] = []
        self.errors: list[dict[str, float]] = []

    def __call__(self, stage: Any, solution: Any) -> None:
        self.lams.append(float(stage.lam))
        self.errors.append(_errors(self.truth, solution.model.U @ solution.model.V.T))


def half_quadratic(*, seed: int, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """RMSE at each fixed lam from cold and from warm factors, and along a path over the same range."""
    from selfpaced import SelfPacedMF
    from selfpaced.pacing import Fixed, Geometric, Stages

    made = make_low_rank(random_state=seed)
    bare: dict[str, Any] = {**PAPER_MODEL, "regularizer": "welsch", "rescue": False, "polish": 0}
    bare["random_state"] = 5_000 + seed
    found: dict[str, list[float]] = {"random": [], "warm": []}
    for init in found:
        for lam in LAMS:
            model = SelfPacedMF(pace=Fixed(lam), init=init, **bare)
            found[init].append(_errors(made.truth, _estimate(model, made))["RMSE"])
    recorder = _Recorder(made.truth)
    count = int(np.ceil(np.log(LAMS[-1] / LAMS[0]) / np.log(1.05))) + 1
    pace = Geometric(mu=1.05, lam=LAMS[0], stop=Stages(count))
    SelfPacedMF(pace=pace, callback=recorder, **bare).fit(made.data)
    along = np.interp(np.log(LAMS), np.log(recorder.lams), [error["RMSE"] for error in recorder.errors])
    return {**found, "path": [float(value) for value in along]}


def tendency(*, rule: str, seed: int, data_dir: str | None) -> dict[str, Any]:  # noqa: ARG001
    """RMSE and MAE after every stage of the paper's pace (mu = 1.05), without rescue and polish."""
    from selfpaced import PRMF, SelfPacedMF
    from selfpaced.pacing import Geometric, Stages

    made = make_low_rank(random_state=seed)
    if rule == "PRMF":
        errors = _errors(made.truth, _estimate(PRMF(rank=RANK, random_state=5_000 + seed), made))
        return {"RMSE": [errors["RMSE"]], "MAE": [errors["MAE"]]}
    recorder = _Recorder(made.truth)
    pace = Geometric(mu=1.05, stop=Stages(STAGES))
    options = {"regularizer": rule, "rescue": False, "polish": 0, "random_state": 5_000 + seed, **PAPER_MODEL}
    SelfPacedMF(pace=pace, callback=recorder, **options).fit(made.data)
    return {name: [error[name] for error in recorder.errors] for name in ("RMSE", "MAE")}
