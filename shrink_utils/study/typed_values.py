"""Values of a TOML table against the types of a dataclass's fields."""

from __future__ import annotations

from dataclasses import fields

from shrink_utils.names import unknown_name
from shrink_utils.study.sizes import SIZES

__all__ = ["build"]


def build(kind: type, values: dict):
    """An instance of the dataclass `kind` from TOML values.

    Raises
    ------
    ValueError
        A key that `kind` does not know, or a value of another type than its field.
    TypeError
        A key is missing.
    """
    known = {field.name: str(field.type) for field in fields(kind)}
    if unknown := sorted(set(values) - set(known)):
        raise unknown_name("key", f"{kind.__name__} key", unknown[0], known)
    for key, value in values.items():
        if not _has_type(value, known[key]):
            raise ValueError(f"{key}: must be {known[key]}, found {value!r}")
    frozen = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    return kind(**frozen)


def _has_type(value: object, annotation: str) -> bool:
    kinds = {"str": str, "int": int, "float": (int, float), "int | None": int}
    kinds |= {kind.__name__: kind for kind in SIZES.values()}
    if isinstance(value, bool):
        return False
    if annotation in kinds:
        return isinstance(value, kinds[annotation])
    item = annotation.removeprefix("tuple[").removesuffix(", ...]")
    return isinstance(value, list | tuple) and all(
        isinstance(v, kinds.get(item, object)) for v in value
    )
