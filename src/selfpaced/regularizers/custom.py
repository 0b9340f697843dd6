"""Write phi, get everything: a regularizer from a user's own robust loss."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import array_api_compat
import numpy as np

from .base import Array, Regularizer

# cost: losses and paces at which a user's formula is looked at, three decades and one to each side of 1
_PROBES = np.geomspace(1e-3, 1e3, 25)
_LAMS = np.geomspace(0.1, 10, 9)
_LARGEST = 1e150  # numerical safety: an infinite loss inside a user's formula, whose own limits are not known


@dataclass(frozen=True)
class FromLoss(Regularizer):
    """A regularizer made by :func:`from_loss`; ``derivative`` says how the weight is computed."""

    phi: Callable[[Any, Any], Any]
    form: Literal["loss", "quadratic"] = "loss"
    derivative: Literal["complex step", "autodiff", "finite differences"] = "complex step"
    opens: int = 1
    relative_direction: int = 1
    name: str = "custom"

    @property
    def relative_opens(self) -> int:
        return self.relative_direction

    def _max_weight(self, lam: Any) -> Any:
        return self.max_weight(lam)

    def _call(self, loss: Array, lam: Any) -> Array:
        return self.phi(loss if self.form == "loss" else loss**0.5, lam)

    def _latent(self, xp: Any, loss: Array, lam: Any) -> Array:
        if xp is not np:
            return self._call(loss, lam)
        finite = np.minimum(loss.astype(np.float64, copy=False), _LARGEST)
        if self.derivative == "autodiff":
            return _through_framework(self._call, finite, lam).astype(loss.dtype)
        return np.asarray(self._call(finite, lam), dtype=loss.dtype)

    def _weight(self, xp: Any, loss: Array, lam: Any) -> Array:
        if xp is not np:
            return _autodiff(self._call, xp.clip(loss, min=self._smallest(loss.dtype == xp.float32)), lam)
        finite = np.clip(loss.astype(np.float64, copy=False), self._smallest(), _LARGEST)
        if self.derivative == "complex step":
            # Im phi(l + ih) / h has no subtraction, so h can be so small that the result is exact.
            step = 1e-20 * np.maximum(finite, 1e-80)
            weight = np.imag(self._call(finite + 1j * step, lam)) / step
        elif self.derivative == "autodiff":
            weight = _through_framework(lambda x, lam: _autodiff(self._call, x, lam), finite, lam)
        else:
            step = 1e-6 * np.maximum(finite, 1e-6)
            low = np.maximum(finite - step, 0)
            high = finite + step
            weight = (self._call(high, lam) - self._call(low, lam)) / (high - low)
        return np.asarray(weight, dtype=loss.dtype)

    def _smallest(self, single: bool = False) -> float:
        """In the quadratic form the weight at 0 is a limit; this close to it the limit is reached."""
        if self.form == "loss":
            return 0.0
        return 1e-30 if single else 1e-100


def from_loss(
    phi: Callable[[Any, Any], Any], form: Literal["loss", "quadratic"] = "loss", *, name: str | None = None
) -> FromLoss:
    """Turn a robust loss ``phi(loss, lam)`` into a regularizer.

    Parameters
    ----------
    phi : callable
        Elementwise; of the loss (``form="loss"``) or of the residual sqrt(loss) (``form="quadratic"``). Written
        with NumPy functions, or with those of torch or JAX.
    form : {"loss", "quadratic"}
        The argument of ``phi``.
    name : str, optional
        Shown in tables; the function's name by default.

    Returns
    -------
    FromLoss
        Its weight is the exact derivative: by complex step for NumPy functions, by automatic differentiation for
        torch and JAX. Finite differences are a last resort, with a warning. The direction in which ``lam`` opens
        is detected. Run :func:`selfpaced.regularizers.check` on the result.

    Examples
    --------
    >>> import numpy as np
    >>> rule = from_loss(lambda loss, lam: lam**2 * np.log1p(loss / lam**2))
    >>> float(rule.weight(1.0, lam=1.0)), rule.opens, rule.derivative
    (0.5, 1, 'complex step')
    """
    if form not in ("loss", "quadratic"):
        raise ValueError(f"form must be 'loss' or 'quadratic', got {form!r}")
    if not callable(phi):
        raise TypeError(f"phi must be callable as phi(loss, lam), got {phi!r}")
    name = name or getattr(phi, "__name__", "custom").strip("<>")
    derivative = _choose_derivative(phi, form)
    opens, relative = _directions(FromLoss(phi, form, derivative))
    return FromLoss(phi, form, derivative, opens, relative, name)


def _choose_derivative(phi: Any, form: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            value = phi(_PROBES, 1.0)
        except TypeError:
            if "torch" not in sys.modules:
                raise
            value = None  # not a NumPy function: torch's, most likely
        if not isinstance(value, np.ndarray):
            return "autodiff"
        numeric = FromLoss(phi, form, "finite differences")._weight(np, _PROBES, 1.0)
        try:
            exact = FromLoss(phi, form, "complex step")._weight(np, _PROBES, 1.0)
        except TypeError:
            exact = np.full_like(numeric, np.nan)
    # A kink may part the two at single probes; a formula that drops the imaginary part differs at most of them.
    if np.mean(np.isclose(exact, numeric, rtol=1e-3, atol=1e-7)) > 0.7:
        return "complex step"
    warnings.warn(
        "phi does not accept complex arguments (does it use abs or float?), so its weight is computed by finite "
        "differences, good to about 1e-6; write it with analytic NumPy functions for an exact weight",
        UserWarning,
        stacklevel=3,
    )
    return "finite differences"


def _directions(rule: FromLoss) -> tuple[int, int]:
    """The signs of d weight / d lam, raw and relative to the maximum."""
    raw, relative = 0.0, 0.0
    with np.errstate(all="ignore"):
        weights = np.stack([rule._weight(np, _PROBES, float(lam)) for lam in _LAMS])
        largest = np.stack([rule._weight(np, np.zeros(1), float(lam)) for lam in _LAMS])
        raw = float(np.nansum(np.sign(np.diff(weights, axis=0))))
        ratio = weights / largest
        relative = float(np.nansum(np.sign(np.diff(np.where(np.isfinite(ratio), ratio, 0.0), axis=0))))
    return (1 if raw >= 0 else -1), (1 if relative >= 0 else -1)


def _autodiff(function: Any, loss: Array, lam: Any) -> Array:
    if array_api_compat.is_torch_array(loss):
        import torch

        with torch.enable_grad():
            follow = loss.requires_grad
            point = loss if follow else loss.detach().requires_grad_()
            (slope,) = torch.autograd.grad(function(point, lam).sum(), point, create_graph=follow)
        return slope
    if array_api_compat.is_jax_array(loss):
        import jax

        return jax.grad(lambda x: function(x, lam).sum())(loss)
    raise TypeError(f"no automatic differentiation for arrays of type {type(loss).__name__}")


def _through_framework(function: Any, loss: Any, lam: Any) -> Any:
    """Evaluate a torch or JAX function on a NumPy array."""
    if "torch" in sys.modules:
        import torch

        try:
            return function(torch.from_numpy(np.atleast_1d(loss)), lam).detach().numpy().reshape(np.shape(loss))
        except TypeError:
            pass  # not a torch function
    import jax.numpy as jnp

    return np.asarray(function(jnp.asarray(loss), lam))
