"""A class decorator for nodes and other small values: frozen dataclasses with fast constructors.

The constructor of a frozen dataclass calls `object.__setattr__` for each field. Passes rebuild
programs all the time. So the constructor here fills an object of a mutable class of the same
layout, and then changes its class: this takes half the time.

The hash of a value is computed once: tables of expressions would visit whole trees otherwise.
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
    has_own_hash = "__hash__" in vars(cls)
    frozen_class = _with_slots(dataclass(frozen=True, init=False)(cls))
    frozen_class.__new__ = _constructor(frozen_class)
    if not has_own_hash:
        frozen_class.__hash__ = _hashed_once(frozen_class.__hash__)
    frozen_class.__reduce__ = _reduce
    return frozen_class  # type: ignore[no-any-return]


def _with_slots(cls: Any) -> Any:
    """Return a class with a slot for each field, and one for the hash."""
    names = [field.name for field in fields(cls)]
    dropped = {*names, "__dict__", "__weakref__"}
    space = {name: value for name, value in vars(cls).items() if name not in dropped}
    new = type(cls)(cls.__name__, cls.__bases__, {**space, "__slots__": (*names, "_hash")})
    new.__qualname__ = cls.__qualname__
    return new


def _hashed_once(hash_of: Callable[[Any], int]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:  # noqa: N807 - the method of a class
        value: int | None = self._hash
        if value is None:
            value = hash_of(self)
            object.__setattr__(self, "_hash", value)
        return value

    return __hash__


def _constructor(cls: Any) -> Callable[..., object]:
    names = [field.name for field in fields(cls)]
    space: dict[str, Any] = {
        "_closed": cls,
        "_open": type(cls.__name__, (), {"__slots__": (*names, "_hash")}),
    }
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
        "    _value._hash = None",
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
