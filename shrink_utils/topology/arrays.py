"""The door for arrays, of topology and geometry alike; and numba, where it is installed."""

import math
import warnings
from collections.abc import Callable
from functools import wraps

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

Array = ArrayLike | Tensor  # what the door reads
HALF = (torch.float16, torch.bfloat16)
NO_VALUES = (
    "{name}: shrink reads values, which torch.func, vmap, forward-mode differentiation, "
    "torch.export and torch.jit.trace do not pass on; call it outside of them, and differentiate "
    "by loss.backward() or torch.autograd.functional"
)


def as_tensor(values: object, name: str) -> Tensor:
    """Return anything that holds real numbers as a dense tensor, or raise a ``ValueError``.

    Tensors keep their dtype, device and graph; what NumPy can view keeps its dtype, too.
    """
    if isinstance(values, list | tuple) and values and all(isinstance(v, Tensor) for v in values):
        values = torch.stack(list(values))
    if not isinstance(values, Tensor):
        values = _from_numpy(values, name)
    if (kind := _unread_kind(values)) is not None:
        raise ValueError(f"{name} must hold real numbers, got {kind}")
    values = values.resolve_neg()  # as the imaginary part of a conjugate is negated lazily
    if values.is_floating_point() and values.element_size() == 1:
        raise ValueError(f"{name} is {values.dtype}, too coarse to measure: pass {name}.float()")
    return values


def _unread_kind(values: Tensor) -> str | None:
    """What keeps the numbers of a tensor from being read, and what to do; None if nothing does."""
    if values.is_nested:
        return "a nested tensor: pass the parts one by one, or join them by torch.cat"
    shape = tuple(values.shape)
    if values.is_complex():
        return f"dtype {values.dtype}, shape {shape}"
    if values.is_quantized:
        return f"a quantized tensor of shape {shape}: pass .dequantize()"
    if values.is_mkldnn:
        return f"an MKL-DNN tensor of shape {shape}: pass .to_dense()"
    if values.layout != torch.strided:
        return f"a sparse tensor: make it dense, shape {shape}"
    return (
        f"a tensor of shape {shape} on the meta device, without values" if values.is_meta else None
    )


def _from_numpy(values: object, name: str) -> Tensor:
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} is not a matrix of numbers: {error}") from error
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers, got dtype {array.dtype}, shape {array.shape}"
        )
    wide = np.dtype(np.float64) if array.dtype == np.longdouble else array.dtype
    # A copy: torch takes no read-only array, no negative strides and no other byte order.
    return torch.from_numpy(np.array(array, dtype=wide.newbyteorder("="), order="C"))


def refuse_masked(values: object, name: str) -> None:
    """A ``ValueError`` for a masked array with masked entries, which NumPy would unmask."""
    if isinstance(values, np.ma.MaskedArray) and (n := int(np.ma.count_masked(values))):
        raise ValueError(
            f"{name} is a masked array of shape {values.shape} with {n} masked value(s); leave "
            "these rows out or fill them first"
        )


def as_matrix(
    points: object, *, min_rows: int = 0, min_columns: int = 0, name: str = "points"
) -> Tensor:
    """Return real numbers as a tensor (n, d), one row per point, in their graph and dtype."""
    points = as_tensor(points, name)
    _refuse_proxies(points, name)
    shape = tuple(points.shape)
    if len(shape) != 2:
        raise ValueError(f"{name} must have two axes (rows, features), got shape {shape}")
    if shape[0] < min_rows or shape[1] < min_columns:
        raise ValueError(
            f"{name} needs at least {min_rows} row(s) and {min_columns} column(s), "
            f"got shape {shape}"
        )
    return points


def _refuse_proxies(points: Tensor, name: str) -> None:
    """A ``ValueError`` where a transformation of torch stands for values that have to be read.

    torch.func and torch.export pass tensors without memory, forward-mode differentiation pairs of
    them; a trace would keep the choices of its example, such as the edges of a tree.
    """
    if torch.jit.is_tracing() or not _in_memory(points) or unpack_dual(points).tangent is not None:
        raise ValueError(NO_VALUES.format(name=name))


def _in_memory(points: Tensor) -> bool:
    try:
        return points.numel() == 0 or points.data_ptr() != 0
    except RuntimeError:
        return False


def as_rows(x: object, *, min_rows: int = 1, min_columns: int = 1, name: str = "x") -> Tensor:
    """Read a finite float64 matrix (n, d) whose rows are samples, outside of autograd.

    It stays on its device and may share memory with `x`: never write to it. What is no such matrix
    is a ``ValueError`` that gives the shape.
    """
    x = on_float64_device(as_matrix(x, min_rows=min_rows, min_columns=min_columns, name=name))
    x = x.detach().to(torch.float64)
    if not math.isfinite(x.sum()) and not torch.isfinite(x).all():  # a sum needs no copy
        raise _not_finite(x.cpu().numpy(), name)
    return x


def on_float64_device(x: Tensor) -> Tensor:
    """The same tensor, on the CPU where its device has no float64 (Apple's MPS)."""
    return x.cpu() if x.device.type == "mps" else x


def to_host(points: Tensor) -> np.ndarray:
    """Values (n, d) as a contiguous array: float32 for it and half precision, else float64."""
    if points.dtype not in (torch.float32, torch.float64):
        points = points.detach()
        points = points.float() if points.dtype in HALF else points.double()
    return np.ascontiguousarray(points.numpy(force=True))


def host_values(points: Tensor, name: str = "points") -> np.ndarray:
    """As `to_host`; NaN or infinity are a ``ValueError``."""
    return values_and_squares(points, name)[0]


def values_and_squares(points: Tensor, name: str) -> tuple[np.ndarray, float]:
    """As `host_values`, with the `sum_of_squares`."""
    array = to_host(points)
    squares = sum_of_squares(array)
    if not math.isfinite(squares) and not np.isfinite(array).all():
        raise _not_finite(array, name)
    return array, squares


def sum_of_squares(array: np.ndarray) -> float:
    """Of all entries, and cheap: it vouches for a cloud without NaN, infinity or extreme sizes."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.vdot(array, array))


def _not_finite(array: np.ndarray, name: str) -> ValueError:
    bad = ~np.isfinite(array).all(axis=1)  # (n,)
    return ValueError(
        f"{name} of shape {array.shape} has NaN or infinity in {bad.sum()} row(s), the first of "
        f"them row {bad.argmax()}; drop or repair these rows first"
    )


def power_of_two(x: np.ndarray | Tensor) -> float:
    """The largest power of two up to the largest absolute entry, 1 for zeros.

    Dividing by it is exact, and squares of the quotients neither overflow nor vanish.
    """
    largest = float(abs(x).max()) if len(x) and x.shape[1] else 0.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0


def rounding_of_rows(points: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """How far each row (n, d) of this dtype may lie from its copy by rounding alone, (n,).

    A vector of half precision was rounded once: eps of its length. One that a network computed in
    float32 has gathered errors of several units in the last place: 16 eps. Cast to float64, it
    keeps them; other float64 rows, and whole numbers, need not come from there, and a shift must
    not count: for them the length of the row less the mean row is taken, where that is shorter.
    """
    precision = torch.finfo(dtype).eps if dtype in HALF else 16 * torch.finfo(torch.float32).eps
    lengths = _lengths(points)
    if dtype not in HALF and not _of_float32(points, dtype):
        unit = power_of_two(points)
        shifted = points / unit - points[0] / unit
        lengths = np.minimum(lengths, unit * _lengths(shifted - shifted.mean(axis=0)))
    return precision * lengths


def _lengths(points: np.ndarray) -> np.ndarray:
    """‖x_i‖, (n,); no square leaves float64."""
    largest = np.abs(points).max(axis=1, initial=0.0).astype(np.float64)
    scaled = points / np.where(largest > 0, largest, 1.0)[:, None]
    return largest * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))


def _of_float32(points: np.ndarray, dtype: torch.dtype) -> bool:
    """Whether rows are of float32 or, in float64, hold fractions that float32 holds exactly."""
    if dtype != torch.float64:
        return dtype == torch.float32
    with np.errstate(over="ignore"):
        held = (points.astype(np.float32) == points).all()
    return bool(held and (points != np.rint(points)).any())


def unit_rows(x: Tensor, *, name: str = "x") -> Tensor:
    """Rows (n, d) of a float64 matrix scaled to length one, in its graph.

    A zero row, which has no cosine, is a ``ValueError``.
    """
    if not x.numel() and x.shape[1]:
        return x
    largest = x.detach().abs().amax(dim=1, keepdim=True) if x.shape[1] else x.new_zeros(len(x), 1)
    zero = (largest == 0).flatten()
    if zero.any():
        raise ValueError(
            f"{name} of shape {tuple(x.shape)} has {int(zero.sum())} zero row(s), the first at row "
            f"{int(zero.nonzero()[0])}: they have no cosine; drop them"
        )
    x = x / largest  # squares of very large or very small entries would leave float64
    return x / torch.linalg.vector_norm(x, dim=1, keepdim=True)


def whole_number(value: int, name: str, least: int = 0) -> int:
    """Return a whole number as an int, or raise a ``ValueError``."""
    if not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number, {least} or more; got {value!r}")
    return int(value)


def result_dtype(tensor: Tensor) -> torch.dtype:
    """Dtype of what is computed from `tensor`: its own, and float32 for anything narrower."""
    return tensor.dtype if tensor.dtype in (torch.float32, torch.float64) else torch.float32


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
        warnings.warn(
            "numba can write no cache: the first call in every process takes some 8 s; "
            "set NUMBA_CACHE_DIR to a folder that can be written",
            RuntimeWarning,
            stacklevel=2,
        )
        return numba.njit(**options)(function)


def eager(function: Callable) -> Callable:
    """Keep `function` out of the graphs of ``torch.compile``, which cannot read compiled code.

    ``torch.compiler.disable`` does so; it loads the compiler, for a second, and so waits until
    something is being compiled.
    """

    @wraps(function)
    def outside(*args, **options):
        if torch.compiler.is_compiling():
            if getattr(torch.compiler, "is_exporting", bool)():  # torch 2.7 and later
                raise ValueError(NO_VALUES.format(name=function.__qualname__))
            return torch.compiler.disable(function)(*args, **options)
        return function(*args, **options)

    return outside
