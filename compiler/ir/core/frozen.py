"""A class decorator for nodes and other small values: frozen dataclasses with fast constructors.

The constructor of a frozen dataclass calls `object.__setattr__` for each field. Passes rebuild
programs all the time. So the constructor here fills an object of a mutable class of the same
layout, and then changes its class: this takes half the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True)
def frozen(cls: _Class) -> _Class:
    """Make a class a frozen dataclass with slots; its defaults must be immutable values."""
    assert not hasattr(cls, "__post_init__"), "the class has fields only"
    frozen_class: Any = dataclass(frozen=True, slots=True, init=False)(cls)
    frozen_class.__new__ = _constructor(frozen_class)
    frozen_class.__reduce__ = _reduce
    return frozen_class  # type: ignore[no-any-return]


def _constructor(cls: Any) -> Callable[..., object]:
    names = [field.name for field in fields(cls)]
    space: dict[str, Any] = {"_closed": cls, "_open": type(cls.__name__, (), {"__slots__": names})}
    params = []
    for field in fields(cls):
        assert field.default_factory is MISSING, "defaults are immutable values"
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
    constructor: Callable[..., object] = space["__new__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__new__"
    return constructor


def _reduce(self: Any) -> tuple[type, tuple[object, ...]]:
    """Make copies and pickles call the constructor."""
    return type(self), tuple(getattr(self, field.name) for field in fields(self))
