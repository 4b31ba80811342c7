"""Watches checked cells for numbers that rounding decides; nbval's kernels start with it.

A number that a checked cell prints has to be off the border of its last digit: the sums of another
processor differ in their last bits, and 7/8 is printed as .88 by one and as .87 by the other. So in
cells marked NBVAL_CHECK_OUTPUT, everything that turns numbers into text, rounds them, orders them
or compares them is done three times: with the numbers, and with all of them moved up and down by a
billionth. What comes out has to be the same.
"""

import ast
import builtins
import functools
import numbers
import operator
import re

import numpy as np
import pandas as pd
import torch
from IPython import get_ipython

MARK = "# NBVAL_CHECK_OUTPUT"
# Parts of itself: far more than processors differ by, far less than a digit that is shown.
MOVED = 1e-9
A_LITTLE = 1e-12  # where a number is not shown yet, or shown with eight digits and more
COARSER = 1000  # are the sums of numbers of 32 bits
ROUNDING = ("round", "around", "round_", "rint")
ORDERING = ("argmax", "argmin", "argsort", "rankdata")
COMPARISONS = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"
}  # fmt: skip


def moved(value: object, by: float, drawn: bool = False) -> object:
    """The same with every float in it moved by a part of itself; what holds none is returned.

    With `drawn` each number of an array moves by a part of its own: moved alike, they would keep
    their order.
    """
    again = functools.partial(moved, by=by, drawn=drawn)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(again, value))
    if isinstance(value, list | tuple):
        return type(value)(map(again, value))
    if isinstance(value, dict):
        return {key: again(item) for key, item in value.items()}
    if isinstance(value, pd.DataFrame):
        return value.apply(again)
    if isinstance(value, float | np.floating):  # NumPy's of 64 bits is a float
        return type(value)(value * (1 + by * (1 if isinstance(value, float) else COARSER)))
    if not isinstance(value, torch.Tensor | np.ndarray | pd.Series):
        return value
    tensor = torch.is_tensor(value)
    if not (value.is_floating_point() if tensor else value.dtype.kind == "f"):
        return value
    size = by * (1 if value.dtype.itemsize == 8 else COARSER)
    if drawn:
        size = size * np.random.default_rng(0).uniform(-1, 1, np.shape(value))
        size = torch.from_numpy(size) if tensor else size
    return value * (1 + size)


def _whole(value: object) -> bool:
    try:
        return bool(np.all(np.asarray(value, dtype=float) % 1 == 0))
    except (TypeError, ValueError):
        return False


def _same(a: object, b: object) -> bool:
    if isinstance(a, pd.DataFrame | pd.Series):
        return a.equals(b)
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return bool(a == b) or (a != a and b != b)


def _steady(what: str, compute, *values: object) -> object:
    """What `compute` makes of the values, which has to be what it makes of moved ones."""
    result = compute(*values)
    for by in (MOVED, -MOVED):
        other = compute(*(moved(value, by) for value in values))
        if not _same(result, other):
            raise AssertionError(f"rounding decides {what}: {result} or {other}, of {values}")
    return result


class Watch(ast.NodeTransformer):
    """Wraps what prints, rounds, orders and compares in the code of a cell."""

    def __init__(self) -> None:
        self.rounded: set[float] = set()  # and what stands in the notebook: shown as it is
        self.on = False

    def begin(self, info: object) -> None:
        self.on = MARK in info.raw_cell

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            self.rounded.add(abs(node.value))
        node = super().visit(node)
        if isinstance(node, ast.Module) and self.on and isinstance(node.body[-1], ast.Expr):
            node.body[-1].value = self._call("displayed", node.body[-1].value)
        return node

    def _call(self, name: str, *arguments: ast.expr) -> ast.Call:
        watch = ast.Name("__watch__", ast.Load())
        return ast.Call(ast.Attribute(watch, name, ast.Load()), [*arguments], [])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        if not self.on:
            return node
        spec = node.format_spec or ast.Constant("")
        kind = chr(node.conversion) if node.conversion > 0 else ""
        shown = self._call("formatted", node.value, spec, ast.Constant(kind))
        return ast.FormattedValue(shown, -1, None)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        frame = isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals")
        if not self.on or frame:
            return node
        return ast.Call(self._call("called", node.func), node.args, node.keywords)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return node  # it shows nothing

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if not self.on or len(node.ops) > 1 or type(node.ops[0]) not in COMPARISONS:
            return node
        name = ast.Constant(COMPARISONS[type(node.ops[0])])
        return self._call("compared", name, node.left, node.comparators[0])

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if not (self.on and text and isinstance(node.op, ast.Mod)):
            return node
        return self._call("percent", node.left, node.right)

    def bare(self, value: object) -> None:
        """A number printed with all its digits has to be whole, rounded, or written in the page."""
        if isinstance(value, float | np.floating):
            known = abs(float(value)) in self.rounded or value % 1 == 0 or not np.isfinite(value)
            if not known:
                raise AssertionError(f"rounding decides {value!r}, printed with all its digits")
        elif isinstance(value, list | tuple):
            for item in value:
                self.bare(item)
        elif isinstance(value, dict):
            self.bare([*value.values()])
        elif isinstance(value, np.ndarray | torch.Tensor | pd.DataFrame | pd.Series):
            for by in (A_LITTLE, -A_LITTLE):
                if str(value) != str(moved(value, by)):
                    raise AssertionError(f"rounding decides {value}")

    def displayed(self, value: object) -> object:
        self.bare(value)
        return value

    def formatted(self, value: object, spec: str, kind: str) -> str:
        to_text = {"r": repr, "s": str, "a": ascii}.get(kind, lambda x: format(x, spec))
        if not re.search("[.eEfFgGn%]", spec):  # no digits are named: all are shown
            self.bare(value)
            return to_text(value)
        return _steady(f"{{:{spec}}}", to_text, value)

    def percent(self, text: str, values: object) -> str:
        return _steady(repr(text), lambda v: text % v, values)

    def compared(self, name: str, left: object, right: object) -> object:
        compute = getattr(operator, name)
        result = compute(left, right)
        floats = any(moved(x, 1.0) is not x for x in (left, right))
        if floats and not _whole(left):  # whole numbers are exact everywhere
            for by in (A_LITTLE, -A_LITTLE):
                if not _same(result, compute(moved(left, by), right)):
                    raise AssertionError(f"rounding decides a comparison ({name}): a tie")
        return result

    def called(self, function):
        """The function, whose text, rounding or order does not hang on a last bit."""
        name = getattr(function, "__name__", "")
        owner = getattr(function, "__self__", None)
        if isinstance(owner, type(builtins)):
            owner = None

        def again(by: float, arguments: tuple, named: dict) -> object:
            move = functools.partial(moved, by=by, drawn=name in ORDERING)
            of = function
            if owner is not None and move(owner) is not owner:
                of = getattr(move(owner), name)
            return of(*move(arguments), **named)

        @functools.wraps(function, updated=())
        def watched(*arguments: object, **named: object) -> object:
            if function is print:
                self.bare([a for a in arguments if not isinstance(a, str)])
                return print(*arguments, **named)
            result = function(*arguments, **named)
            shows = (isinstance(result, str) and not isinstance(owner, str)) or name == "format"
            if shows or name in ROUNDING or name in ORDERING:
                size = MOVED if shows else A_LITTLE
                for by in (size, -size):
                    if not _same(result, other := again(by, arguments, named)):
                        raise AssertionError(f"rounding decides {name}: {result} or {other}")
            if name in ROUNDING:
                self._remember(result)
            return result

        return watched if callable(function) and not isinstance(function, type) else function

    def _remember(self, result: object) -> None:
        numeric = isinstance(result, numbers.Real | np.ndarray | torch.Tensor | pd.Series)
        if isinstance(result, pd.DataFrame):
            result, numeric = result.select_dtypes("number").to_numpy(), True
        if numeric:
            self.rounded |= {abs(float(x)) for x in np.ravel(np.asarray(result))}


if shell := get_ipython():
    builtins.__watch__ = watch = Watch()  # no name of a chapter hides it
    shell.events.register("pre_run_cell", watch.begin)
    shell.ast_transformers.append(watch)
