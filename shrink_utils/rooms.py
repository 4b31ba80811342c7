"""The names of a room, loaded when they are asked for: a profile is read without torch."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from shrink_utils.names import not_installed


def names_of_stub(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, as its ``__init__.pyi`` says.

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
