"""The class decorator of nodes and other small values: frozen dataclasses that are made quickly.

The constructor of a frozen dataclass goes through `object.__setattr__` for each field. Programs are
rebuilt all the time, so here an object is filled while it is of an open class of the same layout,
and closed then: half the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True)
def frozen(cls: _Class) -> _Class:
    """Make a class a frozen dataclass with slots; its defaults are immutable values."""
    assert not hasattr(cls, "__post_init__"), "a value is what its fields are"
    made: Any = dataclass(frozen=True, slots=True, init=False)(cls)
    made.__new__ = _constructor(made)
    made.__reduce__ = _reduce
    return made  # type: ignore[no-any-return]


def _constructor(cls: Any) -> Callable[..., object]:
    names = [field.name for field in fields(cls)]
    space: dict[str, Any] = {"_closed": cls, "_open": type(cls.__name__, (), {"__slots__": names})}
    params = []
    for field in fields(cls):
        assert field.default_factory is MISSING, "defaults are values"
        has_default = field.default is not MISSING
        space[f"_default_{field.name}"] = field.default
        params.append(f"{field.name}=_default_{field.name}" if has_default else field.name)
    lines = [
        f"def __new__(_cls, {', '.join(params)}):",
        "    _value = _open()",
        *(f"    _value.{name} = {name}" for name in names),
        "    _value.__class__ = _closed",
        "    return _value",
    ]
    exec("\n".join(lines), space)
    made: Callable[..., object] = space["__new__"]
    made.__qualname__ = f"{cls.__qualname__}.__new__"
    return made


def _reduce(self: Any) -> tuple[type, tuple[object, ...]]:
    """Let copies be made and pickled by the constructor."""
    return type(self), tuple(getattr(self, field.name) for field in fields(self))
