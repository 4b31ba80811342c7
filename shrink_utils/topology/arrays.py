"""The door for arrays, of topology and geometry alike."""

import math
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

Array = ArrayLike | Tensor  # what the door reads
Arguments = ParamSpec("Arguments")  # of a function that `eager` wraps
Returned = TypeVar("Returned")
HALF = (torch.float16, torch.bfloat16)
NO_VALUES = (
    "{name}: shrink reads values, which torch.func, vmap, forward-mode differentiation, "
    "torch.export and torch.jit.trace do not pass on; call it outside of them, and differentiate "
    "by loss.backward()"
)


def _as_tensor(values: object, name: str) -> Tensor:
    """Return anything that holds real numbers as a dense tensor, or raise a ``ValueError``.

    Tensors keep their dtype, device and graph; what NumPy can view keeps its dtype, too.
    """
    if isinstance(values, list | tuple) and values and all(isinstance(v, Tensor) for v in values):
        if len(shapes := {tuple(v.shape) for v in values}) > 1:
            raise ValueError(f"{name} is a list of tensors of different shapes: {sorted(shapes)}")
        values = torch.stack(list(values))
    if not isinstance(values, Tensor):
        values = _from_numpy(values, name)
    dense = values.layout == torch.strided and not (values.is_nested or values.is_meta)
    coarse = values.is_floating_point() and values.element_size() == 1
    if not dense or values.is_complex() or values.is_quantized or coarse:
        raise ValueError(
            f"{name} must hold real numbers in a dense tensor of 16 bits or more; got "
            f"{values.dtype}, {values.layout}, on {values.device}"
        )
    if values.dtype in (torch.uint16, torch.uint32, torch.uint64):  # torch computes little in them
        if (values.long() < 0).any():
            raise ValueError(f"{name} of {values.dtype} has whole numbers from 2**63 on")
        values = values.long()
    return values.resolve_neg()  # as the imaginary part of a conjugate is negated lazily


def _from_numpy(values: object, name: str) -> Tensor:
    _refuse_masked(values, name)
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


def _refuse_masked(values: object, name: str) -> None:
    """A ``ValueError`` for a masked array with masked entries, which NumPy would unmask."""
    if isinstance(values, np.ma.MaskedArray) and (n := int(np.ma.count_masked(values))):
        raise ValueError(
            f"{name} is a masked array of shape {values.shape} with {n} masked value(s); leave "
            "these rows out or fill them first"
        )


def _as_matrix(
    points: object, *, min_rows: int = 0, min_columns: int = 0, name: str = "points"
) -> Tensor:
    """Return real numbers as a tensor (n, d), one row per point, in their graph and dtype."""
    points = _as_tensor(points, name)
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
    readable = not torch.jit.is_tracing() and unpack_dual(points).tangent is None
    try:
        readable = readable and (points.numel() == 0 or points.data_ptr() != 0)
    except RuntimeError:
        readable = False
    if not readable:
        raise ValueError(NO_VALUES.format(name=name))


def _as_rows(x: object, *, min_rows: int = 1, min_columns: int = 1, name: str = "x") -> Tensor:
    """Read a finite float64 matrix (n, d) whose rows are samples, outside of autograd.

    It stays on its device and may share memory with `x`: never write to it. What is no such matrix
    is a ``ValueError`` that gives the shape.
    """
    given = _on_float64_device(_as_matrix(x, min_rows=min_rows, min_columns=min_columns, name=name))
    x = given.detach().to(torch.float64)
    if not (given.is_floating_point() or torch.equal(x.to(given.dtype), given)):
        row = int((x.to(given.dtype) != given).any(dim=1).int().argmax())
        raise ValueError(
            f"{name} of shape {tuple(x.shape)} has whole numbers that float64 has not, the first "
            f"in row {row}; subtract a common one, or take another unit"
        )
    if not math.isfinite(x.sum()) and not torch.isfinite(x).all():  # a sum needs no copy
        bad = ~torch.isfinite(x).all(dim=1)  # (n,)
        raise ValueError(
            f"{name} of shape {tuple(x.shape)} has NaN or infinity in {int(bad.sum())} row(s), the "
            f"first of them row {int(bad.int().argmax())}; drop or repair these rows first"
        )
    return x


def _on_float64_device(x: Tensor) -> Tensor:
    """The same tensor, on the CPU where its device has no float64 (Apple's MPS)."""
    return x.cpu() if x.device.type == "mps" else x


def _power_of_two(x: np.ndarray | Tensor) -> float:
    """The largest power of two up to the largest absolute entry, 1 for zeros.

    Dividing by it is exact, and squares of the quotients neither overflow nor vanish.
    """
    largest = float(max(x.max(), -x.min())) if len(x) and x.shape[1] else 0.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0


def _safe_unit(x: np.ndarray | Tensor) -> float:
    """1 where squares of the entries stay far inside float64, else their `_power_of_two`."""
    unit = _power_of_two(x)
    return 1.0 if 2.0**-400 < unit < 2.0**400 else unit


def _rounding_of_rows(points: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """How far each row (n, d) of this dtype may lie from its copy by rounding alone, (n,).

    A vector of half precision was rounded once: eps of its length. One that a network computed in
    float32 has gathered errors of several units in the last place: 16 eps. Cast to float64, it
    keeps them; other float64 rows, and whole numbers, need not come from there, and a shift must
    not count: for them the length of the row less the mean row is taken, where that is shorter.
    """
    precision = torch.finfo(dtype).eps if dtype in HALF else 16 * torch.finfo(torch.float32).eps
    lengths = _lengths(points)
    if len(points) and dtype not in HALF and not _of_float32(points, dtype):
        shifted = points - points[:1]
        lengths = np.minimum(lengths, _lengths(shifted - shifted.mean(axis=0)))
    return precision * lengths


def _lengths(points: np.ndarray) -> np.ndarray:
    """‖x_i‖, (n,); no square leaves float64."""
    unit = _safe_unit(points)
    scaled = points if unit == 1.0 else points / unit
    return unit * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))


def _of_float32(points: np.ndarray, dtype: torch.dtype) -> bool:
    """Whether rows are of float32 or, in float64, hold fractions that float32 holds exactly."""
    if dtype != torch.float64:
        return dtype == torch.float32
    with np.errstate(over="ignore"):
        held = (points.astype(np.float32) == points).all()
    return bool(held and (points != np.rint(points)).any())


def _unit_rows(x: Tensor, *, name: str = "x") -> Tensor:
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


def _whole_number(value: int, name: str, least: int = 0) -> int:
    """Return a whole number as an int, or raise a ``ValueError``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number, {least} or more; got {value!r}")
    return int(value)


def _result_dtype(tensor: Tensor) -> torch.dtype:
    """Dtype of what is computed from `tensor`: its own, and float32 for anything narrower."""
    return tensor.dtype if tensor.dtype in (torch.float32, torch.float64) else torch.float32


def _eager(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Keep `function` out of the graphs of ``torch.compile``, which cannot trace a tree.

    ``torch.compiler.disable`` does so; it loads the compiler, for a second, and so waits until
    something is being compiled.
    """

    @wraps(function)
    def outside(*args: Arguments.args, **options: Arguments.kwargs) -> Returned:
        if torch.compiler.is_compiling():
            if getattr(torch.compiler, "is_exporting", bool)():  # torch 2.7 and later
                raise ValueError(NO_VALUES.format(name=function.__qualname__))
            return torch.compiler.disable(function)(*args, **options)
        return function(*args, **options)

    return outside
