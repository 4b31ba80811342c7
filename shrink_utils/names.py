"""Names and values that cannot be. Standard library only: every room may import it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches

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
