"""What every ``fit`` needs besides mathematics: checks of its arguments, progress, callbacks, a clean Ctrl-C."""

from __future__ import annotations

import copy
import functools
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from .parameters import check_parameters, speaking_of
from .regularizers import GroupRegularizer, Regularizer, get

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin  # for estimators
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # pragma: no cover - depends on the installed scikit-learn

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in where the installed scikit-learn has no callbacks."""

    def _with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Stand-in where the installed scikit-learn has no callbacks."""
        return method


logger = logging.getLogger("selfpaced")
ONE_THREAD_ROWS = 10_000  # cost: rows up to which OpenMP's threads wait for each other longer than they work
Floats = NDArray[np.float64]

# Sizes within which losses (squares), and products of them, are numbers.
SINGLE = (1e-18, 1e17)  # numerical safety: of 32 bits
DOUBLE = (1e-100, 1e100)  # numerical safety: of 64 bits
Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(fit: Method) -> Method:
    """scikit-learn's decorator of a ``fit`` that takes callbacks; it has no types, this one has."""
    decorated: Method = _with_callbacks(fit)
    return decorated


# ---------------------------------------------------------------------------------------------------- checks


def check_weight(sample_weight: Any, n_rows: int, *, relative: bool = False) -> Floats | None:
    """The parameter ``sample_weight`` of ``fit`` as one float per row; None if it says nothing (all ones).

    ``relative`` weights, beside which nothing has the same unit, may be of any size: beyond the usual ones they are
    divided by a power of two.

    >>> check_weight(2.0, 3), check_weight([1, 1], 2)
    (array([2., 2., 2.]), None)
    >>> check_weight([2.0**-1000, 2.0**-1001], 2, relative=True)
    array([1. , 0.5])
    """
    if sample_weight is None:
        return None
    with speaking_of("sample_weight", "None, a number or one number for each row"):
        weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weight.ndim}D array.")
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), one value per row, got {weight.shape}")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight must be finite, got NaN or infinity")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must be >= 0, got {float(weight.min())!r}")
    if not weight.any():
        raise ValueError("sample_weight must not be zero for every row: no row is left to learn from")
    largest = float(weight.max())
    if relative and not DOUBLE[0] <= largest <= DOUBLE[1]:
        weight = np.ldexp(weight, 1 - int(np.frexp(largest)[1]))
    check_size("sample_weight", weight)
    return None if np.all(weight == 1.0) else weight


def check_values(y: Any) -> NDArray[Any]:
    """The target of a regression as an array of numbers; texts, dates and several columns are refused.

    >>> check_values(np.array(["2020-01-01"], dtype="M8[D]"))
    Traceback (most recent call last):
    ValueError: y must be numbers for a regression, got datetime64[D]: convert it, for example to days since a date
    """
    with speaking_of("y", "numbers, one for each row"):
        target = np.asarray(y)
    if target.dtype.kind in "US" or (
        target.dtype.kind == "O" and any(isinstance(value, str) for value in target.ravel()[:100])
    ):
        raise ValueError(
            f"y must be numbers for a regression, got text ({target.ravel()[0]!r}, ...); use a classifier for labels"
        )
    if target.dtype.kind in "mM":
        raise ValueError(
            f"y must be numbers for a regression, got {target.dtype}: convert it, for example to days since a date"
        )
    if target.ndim > 2 or (target.ndim == 2 and target.shape[1] > 1):
        raise ValueError(
            f"y must have one column, got shape {target.shape}: outliers differ between targets, so fit one model per "
            "target (sklearn.multioutput.MultiOutputRegressor does)"
        )
    if target.dtype.kind == "O":
        with speaking_of("y", "numbers, one for each row"):
            target = target.astype(np.float64)
    return target


def check_groups(groups: Any, n: int) -> NDArray[np.intp] | None:
    """Return the number of each row's group, or None."""
    if groups is None:
        return None
    given = np.asarray(groups)
    if given.ndim != 1:
        raise ValueError(f"groups must have one value per row, got an array of shape {given.shape}")
    missing = [type(value).__name__ in ("NoneType", "NAType") or value != value for value in given.tolist()]
    if any(missing):
        raise ValueError(f"groups must not have missing values, got one in row {missing.index(True)}")
    codes = np.unique(given.astype(str) if given.dtype.kind == "O" else given, return_inverse=True)[1].reshape(-1)
    if len(codes) != n:
        raise ValueError(f"groups must have one value per row, got {len(codes)} for {n} rows")
    if codes.max() < 1:
        raise ValueError("groups must have at least two different values, got one")
    return np.asarray(codes, dtype=np.intp)


def check_trusted(trusted: Any, n_rows: int) -> NDArray[np.bool_] | None:
    """The parameter ``trusted`` of ``fit``, the rows that a person has confirmed, as a mask; None if there are none.

    >>> check_trusted([True, False], 2), check_trusted([0, 0], 2)
    (array([ True, False]), None)
    """
    if trusted is None:
        return None
    mask = np.asarray(trusted)
    if mask.shape != (n_rows,):
        raise ValueError(f"trusted must have shape ({n_rows},), true or false for each row, got {mask.shape}")
    if mask.dtype.kind != "b":
        if not np.isin(mask, (0, 1)).all():
            raise ValueError(f"trusted must be true or false for each row, got {mask[~np.isin(mask, (0, 1))][0]!r}")
        mask = mask.astype(bool)
    return mask if mask.any() else None


def trusting(weights: Any, trusted: NDArray[np.bool_] | None) -> Any:
    """Weights of a rule, with full weight for the rows that a person has confirmed.

    >>> trusting(np.array([0.2, 0.3]), np.array([True, False]))
    array([1. , 0.3])
    """
    return weights if trusted is None else np.where(trusted, 1.0, weights)


def reach(dtype: Any) -> tuple[float, float]:
    """The sizes within which squares, and products of them, are numbers of this type."""
    return SINGLE if np.dtype(dtype).itemsize < 8 else DOUBLE


def check_size(name: str, values: Any) -> None:
    """Refuse numbers whose squares overflow or vanish; zeros alone and gaps (NaN) are not refused.

    >>> check_size("y", np.array([1e200, 1.0]))
    Traceback (most recent call last):
    ValueError: y must have a largest absolute value between 1e-100 and 1e+100, got 1e+200: change its unit
    """
    known = np.asarray(values.data if hasattr(values, "tocsr") else values)
    if known.dtype.kind != "f" or not known.size:
        return
    low, high = reach(known.dtype)
    size = float(max(np.fmax.reduce(known, axis=None), -np.fmin.reduce(known, axis=None)))
    if 0 < size < low or high < size < np.inf:
        raise ValueError(
            f"{name} must have a largest absolute value between {low:g} and {high:g}, got {size:g}: change its unit"
        )


def refuse_dates(X: Any) -> None:
    """Columns of dates in a data frame are no numbers, and NumPy's own error does not say which they are."""
    kinds = getattr(X, "dtypes", ()) if hasattr(X, "columns") else ()
    dates = [name for name, kind in zip(getattr(X, "columns", ()), kinds, strict=False) if "date" in str(kind).lower()]
    if dates:
        raise ValueError(
            f"X must be numbers, got dates in the columns {dates!r}: turn them into numbers first, "
            "as selfpaced.tables does"
        )


def is_dask(X: Any) -> bool:
    """Whether it is a Dask array or data frame.

    >>> is_dask([[1.0]])
    False
    """
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def is_source(X: Any) -> bool:
    """Whether rows come in batches, and not all at once."""
    lazy = type(X).__module__.startswith("polars") and type(X).__name__ == "LazyFrame"
    return lazy or is_dataset(X) or isinstance(X, Iterator | str | Path)


def is_dataset(X: Any) -> bool:
    """Whether it is a dataset of pyarrow."""
    return hasattr(X, "to_batches") and hasattr(X, "scanner") and hasattr(X, "schema")


def refuse_dask(X: Any) -> None:
    """Say what to use instead if rows on a cluster would silently be brought into memory."""
    if is_dask(X):
        raise TypeError(
            "X must be in memory, got a Dask collection: selfpaced.dask.CrossFitClassifier and CrossFitRegressor wrap "
            "estimators that train on a cluster, and the linear estimators take Dask collections as they are"
        )


def check_rule(regularizer: Any) -> Regularizer:
    """The parameter ``regularizer`` of an estimator whose rows have no groups."""
    rule: Regularizer | GroupRegularizer = get(regularizer)
    if isinstance(rule, GroupRegularizer):
        raise ValueError(
            f"regularizer must be an elementwise rule, got {regularizer!r}, whose weights depend on groups of samples"
        )
    return rule


# ---------------------------------------------------------------------------------------------------- Ctrl-C


class FitInterrupted(KeyboardInterrupt):
    """Ctrl-C during a fit that had a complete model by then: ``estimator`` keeps that model.

    Parameters
    ----------
    message : str
        What was kept.
    estimator : estimator, optional
        The one that keeps it. An estimator around it has no complete model of its own.
    """

    def __init__(self, message: str = "", estimator: Any = None) -> None:
        super().__init__(message)
        self.estimator = estimator


def all_or_nothing(fit: Method) -> Method:
    """Make a ``fit`` change its estimator only once it has a complete model; check its parameters before it begins.

    On an error, and on Ctrl-C before there is a complete model, the estimator is as it was before: unfitted, or with
    its old model. After that, Ctrl-C leaves the best complete model on the estimator. The interrupt is raised in both
    cases, and its message says what was kept.
    """

    @functools.wraps(fit)
    def whole(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        trial = copy.copy(self)
        try:
            check_parameters(self)
            fit(trial, *args, **kwargs)
        except KeyboardInterrupt as stop:
            if getattr(stop, "estimator", None) is trial:
                self.__dict__ = trial.__dict__
            else:
                stop.args = (
                    f"{type(self).__name__}.fit was interrupted before it had a complete model; the estimator is as it "
                    "was before",
                )
            raise
        self.__dict__ = trial.__dict__
        return self

    return whole  # type: ignore[return-value]


class Interruptible:
    """A part of a fit that Ctrl-C may end, because there is already a model to keep.

    The fit has to look at ``interrupted`` and to end with `raise_interrupted` once the estimator has its model.

    >>> with Interruptible() as guard:
    ...     raise KeyboardInterrupt
    >>> guard.interrupted
    True
    """

    def __init__(self) -> None:
        self.interrupted = False

    def __enter__(self) -> Interruptible:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        stopped = kind is not None and issubclass(kind, KeyboardInterrupt)
        self.interrupted = self.interrupted or stopped
        return stopped


def interrupted_sentence(kept: str) -> str:
    """How ``termination_`` speaks of an interrupted fit."""
    return f"Interrupted from outside: {kept} is kept."


def raise_interrupted(estimator: Any) -> NoReturn:
    """End an interrupted ``fit`` whose estimator has its model: raise FitInterrupted."""
    raise FitInterrupted(f"{type(estimator).__name__}.fit: {estimator.termination_}", estimator)


def warn_unpaced(reason: str) -> None:
    """The warning that no stage of a pace which was asked for could be kept."""
    warnings.warn(f"the plain model is used: {reason}", ConvergenceWarning, stacklevel=7)


# -------------------------------------------------------------------------------------------------- progress


class Progress:
    """Report the progress of a fit to the log, to lines or a bar of ``verbose``, and to scikit-learn's callbacks.

    Parameters
    ----------
    owner : estimator
        The one being fitted; its ``verbose`` and its callbacks are used.
    X, y : array-like
        Shown to callbacks.
    total : int, optional
        How many ticks are expected: with ``verbose`` they move a bar on the error stream.
    """

    def __init__(self, owner: Any, X: Any = None, y: Any = None, *, total: int | None = None) -> None:
        self.owner, self.X, self.y = owner, X, y
        self.verbose = int(getattr(owner, "verbose", 0) or 0)
        self.bar = Bar(total) if total is not None and self.verbose else None
        self.context: Any = None
        if isinstance(owner, CallbackSupportMixin) and hasattr(owner, "_init_callback_context"):
            self.context = owner._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=owner, X=X, y=y)

    def tick(self, label: str) -> None:
        """One of many equal pieces of work is done."""
        if self.bar is not None:
            self.bar.move(label)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Report the begin and the end of one stage of the fit."""
        task = None if self.context is None else self.context.subcontext(task_name=name)
        if task is not None:
            task.call_on_fit_task_begin(estimator=self.owner, X=self.X, y=self.y)
        began = time.perf_counter()
        yield
        message = f"{type(self.owner).__name__}: {name} ({time.perf_counter() - began:.2f} s)"
        logger.log(logging.INFO if self.verbose else logging.DEBUG, message)
        if task is not None:
            task.call_on_fit_task_end(estimator=self.owner, X=self.X, y=self.y)

    @contextmanager
    def running(self) -> Iterator[Progress]:
        """The whole fit; with ``verbose`` its lines go to stderr unless logging is configured."""
        handler, level = None, logger.level
        if self.verbose and self.bar is None and not logger.isEnabledFor(logging.INFO):
            handler = logging.StreamHandler()
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
        try:
            yield self
        finally:
            if self.bar is not None:
                self.bar.close()
            if handler is not None:
                logger.removeHandler(handler)
                logger.setLevel(level)
            if self.context is not None:
                self.context.call_on_fit_task_end(estimator=self.owner, X=self.X, y=self.y)


class Bar:
    """Counts on the error stream: ``warm start [#####...............] 12/47  3.1 s``; stretches beyond its total."""

    width = 24

    def __init__(self, total: int) -> None:
        self.total, self.done, self.began = total, 0, time.perf_counter()

    def move(self, label: str) -> None:
        """One more."""
        self.done += 1
        self.total = max(self.total, self.done)
        filled = self.width * self.done // self.total
        bar = "#" * filled + "." * (self.width - filled)
        seconds = time.perf_counter() - self.began
        sys.stderr.write(f"\r{label:<10s} [{bar}] {self.done}/{self.total} sweeps {seconds:7.1f} s")
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.done:
            sys.stderr.write("\n")
            sys.stderr.flush()


def few_threads(n_rows: int) -> AbstractContextManager[Any]:
    """One OpenMP thread where rows are few: on a busy machine boosted trees stall in threads that wait for each other.

    Nothing is changed while torch is loaded, whose threads would be held back as well.
    """
    if n_rows > ONE_THREAD_ROWS or "torch" in sys.modules:
        return nullcontext()
    limit: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1, user_api="openmp")
    return limit


@functools.lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:  # noqa: ARG001 - what the answer is kept for
    """What runs threads, looked for again where more has been imported: to look takes longer than to ask."""
    return ThreadpoolController()
