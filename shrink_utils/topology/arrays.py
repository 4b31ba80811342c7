"""Between tensors and NumPy: input checks, one wait per call, numba where it is installed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cache, wraps

import numpy as np
import torch
from torch import Tensor

SAFE = 2.0**-64, 2.0**64  # for a sum of squares in float32
HALF = (torch.float16, torch.bfloat16)


def check_matrix(points: Tensor, *, name: str = "points") -> Tensor:
    """Return `points` as a real (n, d) tensor, or raise a ``ValueError`` that names it."""
    points = as_tensor(points, name)
    if points.ndim != 2 or points.is_complex():
        raise ValueError(
            f"{name} must be a real (n, d) matrix, one row per point; "
            f"got shape {tuple(points.shape)}, {points.dtype}"
        )
    return points


def as_tensor(values: object, name: str) -> Tensor:
    """Return anything that holds numbers (lists, arrays, data frames) as a tensor."""
    kind = type(values).__name__
    if isinstance(values, np.ma.MaskedArray) and (n := int(np.ma.count_masked(values))):
        raise ValueError(  # NumPy would unmask them
            f"{name} is a masked array of shape {values.shape} with {n} masked value(s); leave "
            "these rows out or fill them first"
        )
    try:
        if not isinstance(values, Tensor | list | tuple):
            values = np.require(values, requirements="W")  # a frame's memory may be read-only
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} must hold numbers; got a {kind}") from error


def coordinates(
    points: Tensor, *beside: Tensor, name: str = "points"
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Values of a finite point cloud on the host, and those of tensors wanted along with it.

    Returns
    -------
    array : ndarray, shape (n, d)
        Contiguous; float32 for float32 and half precision, else float64: nothing is rounded.
    beside : list of ndarray

    Raises
    ------
    ValueError
        NaN or infinite values; the message names the first such row.
    """
    wide = points.float() if points.dtype in HALF else points
    if wide.dtype != torch.float32:
        wide = wide.double()
    array, *others = to_host(wide, *beside)
    if not math.isfinite(_sum_of_squares(array)) and not np.isfinite(array).all():
        raise ValueError(not_finite(array, name))
    return array, others


def in_unit(array: np.ndarray) -> tuple[np.ndarray, float]:
    """A finite cloud over a power of two, which is exact, and that power.

    It is 1 where squares are far from overflowing and from vanishing.
    """
    if SAFE[0] < _sum_of_squares(array) < SAFE[1]:  # and so is all that is squared later
        return array, 1.0
    largest = float(np.abs(array).max(initial=0.0))
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
    return array / unit, unit


def _sum_of_squares(array: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.vdot(array, array))


def not_finite(array: np.ndarray, name: str) -> str:
    """What to tell somebody whose matrix holds NaN or infinite values."""
    bad_rows = ~np.isfinite(array).all(axis=1)  # (n,)
    return (
        f"{name} of shape {array.shape} holds NaN or infinite values in "
        f"{bad_rows.sum()} rows, the first of them row {bad_rows.argmax()}; "
        "drop or repair these rows first"
    )


def check_lengths(lengths: Tensor) -> Tensor:
    """Return bar lengths as a tensor, or raise a ``ValueError``: a real, finite, ≥ 0 vector."""
    lengths = as_tensor(lengths, "lengths")
    if lengths.ndim != 1 or lengths.is_complex():
        raise ValueError(
            f"lengths must be a real (m,) vector; got shape {tuple(lengths.shape)}, {lengths.dtype}"
        )
    bad = ~(torch.isfinite(lengths) & (lengths >= 0))
    if bad.any():
        raise ValueError(
            f"lengths of shape {tuple(lengths.shape)} must be finite and not negative; "
            f"found {lengths[bad][0].item()} at index {int(bad.int().argmax())}: "
            "leave infinite bars out, and pass death − birth, not birth − death"
        )
    return lengths


def result_dtype(tensor: Tensor) -> torch.dtype:
    """Dtype of what is computed from `tensor`: its own, and float32 for anything narrower."""
    return tensor.dtype if tensor.dtype in (torch.float32, torch.float64) else torch.float32


def to_host(*tensors: Tensor) -> list[np.ndarray]:
    """Values of tensors as contiguous arrays; those on one GPU come together, with one wait."""
    gpu = next((tensor.device for tensor in tensors if tensor.is_cuda), None)
    if gpu is not None:
        pinned = [torch.empty(t.shape, dtype=t.dtype, pin_memory=True) for t in tensors]
        for copy, tensor in zip(pinned, tensors, strict=True):
            copy.copy_(tensor.detach(), non_blocking=True)
        torch.cuda.current_stream(gpu).synchronize()
        return [copy.numpy() for copy in pinned]
    return [np.ascontiguousarray(tensor.detach().cpu().numpy()) for tensor in tensors]


def to_device(array: np.ndarray, like: Tensor) -> Tensor:
    """An array as a tensor beside `like`; a copy to a GPU is not waited for."""
    tensor = torch.from_numpy(array)
    if like.is_cuda:
        return tensor.pin_memory().to(like.device, non_blocking=True)
    return tensor if like.is_cpu else tensor.to(like.device)


try:
    import numba
except ImportError:  # an optional dependency: `pip install shrink-utils[fast]`
    numba = None

COMPILED = numba is not None


def compiled(function: Callable) -> Callable:
    """Compile `function` with numba, or leave it as it is where numba is missing.

    It is compiled once per dtype and kept on disk, runs in one thread and releases the
    interpreter's lock. Sums may be taken in any order; nothing else of IEEE arithmetic is given
    up. numba looks at the time stamp of the module that holds a function, not of those it calls
    into: let compiled functions call only compiled functions of their own module.
    """
    if numba is None:
        return function
    options = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to keep it
        _warn_of_compiling()
        return numba.njit(**options)(function)


@cache  # once per process
def _warn_of_compiling() -> None:
    warnings.warn(
        "numba can write no cache: the first call in every process takes some 8 s; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        RuntimeWarning,
        stacklevel=4,
    )


def eager(function: Callable) -> Callable:
    """Keep `function` out of the graphs of ``torch.compile``, which cannot read compiled code.

    ``torch.compiler.disable`` does so; it loads the compiler, for a second, and so waits until
    something is being compiled.
    """

    @wraps(function)
    def outside(*args, **options):
        if torch.compiler.is_compiling():
            return torch.compiler.disable(function)(*args, **options)
        return function(*args, **options)

    return outside
