"""Names and values that cannot be, and the names of a room. Standard library only."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"  # how a notebook names a widget's output
IGNORED = -100  # the label that torch's cross_entropy leaves out
POOLINGS = ("cls", "mean", "first_last", "last")  # of `models.pool`; a profile asks for names alone


def not_installed(what: str, extra: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error for what needs a package of an extra that is not installed."""
    package = (error.name or str(error)).split(".")[0]
    message = f"{what} needs {package}, which is not installed: pip install '.[{extra}]'"
    return ModuleNotFoundError(message, name=package)


def unknown_name(argument: str, kind: str, name: str, known: Iterable[str]) -> ValueError:
    """The error for a ``name`` that is not among the ``known`` ones; it has the nearest of them."""
    known = list(known)
    nearest = get_close_matches(name, known, n=1)
    hint = f", did you mean {nearest[0]!r}?" if nearest else ""
    return ValueError(f"{argument}: no {kind} {name!r}{hint} (there are {', '.join(known)})")


def known_name(argument: str, kind: str, name: str, known: Iterable[str]) -> str:
    """Return a name that is among the known ones, or raise the error of `unknown_name`."""
    if name not in known:
        raise unknown_name(argument, kind, str(name), known)
    return name


def require(config: object, names: str, holds: Callable[..., bool], expected: str) -> None:
    """Raise ValueError for the first of the fields `names` whose value does not hold."""
    for name in names.split():
        if not holds(value := getattr(config, name)):
            raise ValueError(f"{name}: must be {expected}, found {value!r}")


def as_texts(texts: Iterable[str], *, argument: str = "texts") -> list[str]:
    """Texts by position, read once, from whatever holds them.

    Parameters
    ----------
    texts
        A list, tuple, generator, Series with any index, array, Arrow array, column of a data set.

    Raises
    ------
    ValueError
        A string, a table, a set or a mapping in place of texts in an order; no texts; an item that
        is no text, or that holds half a surrogate pair, which no tokenizer reads.
    """
    in_a_row = isinstance(texts, Iterable) and len(getattr(texts, "shape", (0,))) == 1
    if not in_a_row or isinstance(texts, str | bytes | Mapping | set | frozenset):
        found = "a string" if isinstance(texts, str) else f"a {type(texts).__name__}"
        raise ValueError(f"{argument}: {found}, expected a list of texts, or a column of them")
    # pyarrow's scalars are no strings.
    items = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)
    if not items:
        raise ValueError(f"{argument}: empty, expected at least one text")
    for i, item in enumerate(items):
        if not isinstance(item, str):
            raise ValueError(f"{argument}: item {i} is {item!r}, expected a string")
        if not item.isascii() and any("\ud800" <= letter <= "\udfff" for letter in item):
            raise ValueError(
                f"{argument}: item {i}, {item[:50]!r}, holds half a surrogate pair; clean it by "
                "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
            )
    return [str(item) for item in items]  # NumPy's strings are a kind of their own


def names_of_stub(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, as its ``__init__.pyi`` says.

    They are loaded when they are asked for: a profile is read without torch.

    The stub is the one list, which type checkers read too. It holds nothing but lines such as
    ``from .arms import ARMS as ARMS``; a name is none of the package's modules, unless it is one:
    ``from . import figures as figures``.

    Parameters
    ----------
    package, file : str
        Its ``__name__`` and ``__file__``.
    """
    imports = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body[1:]
    places = {alias.name: line.module for line in imports for alias in line.names}

    def load(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        if places[name] is None:
            return import_module(f"{package}.{name}")
        try:
            value = getattr(import_module(f"{package}.{places[name]}"), name)
        except ModuleNotFoundError as error:
            raise not_installed(f"{package}.{name}", "study", error) from error
        setattr(sys.modules[package], name, value)  # asked for once
        return value

    names = sorted(places)
    return load, lambda: names, names
