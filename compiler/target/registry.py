"""Registries by kind of target: one for each value that differs between kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class UnknownKindError(LookupError):
    """No value is registered for a kind of target."""


class KindRegistry(Generic[Value]):
    """A registry with one value for each kind of target.

    The values that come with the project are loaded on first use. So a process imports only the
    libraries of the kinds that it uses, such as LLVM for CPUs.

    Args:
        noun: The name of a value, for messages.
        loaders: By kind, a function that imports the value.
    """

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._loaders: dict[str, Callable[[], Value]] = {}
        self._values: dict[str, Value] = {}

    @property
    def kinds(self) -> list[str]:
        """Return the registered kinds, sorted."""
        return sorted({*self._loaders, *self._values})

    def provide(self, kind: str, load: Callable[[], Value]) -> None:
        """Set the function that imports the value of a kind which comes with the project."""
        self._loaders[kind] = load

    def register(self, kind: str, value: Value) -> None:
        """Register a value for a new kind, in this process.

        Raises:
            ValueError: If the kind has a value already.
        """
        if kind in self.kinds:
            raise ValueError(f"{kind!r} targets have a {self._noun} already")
        self._values[kind] = value

    def replace(self, kind: str, value: Value) -> None:
        """Set the value of a kind in this process, for good, instead of the project's."""
        self._values[kind] = value

    def unregister(self, kind: str) -> None:
        """Remove a registered value; do nothing for a kind without one."""
        if kind not in self._loaders:
            self._values.pop(kind, None)

    def find(self, kind: str) -> Value:
        """Return the value of a kind.

        Raises:
            UnknownKindError: If none is registered.
        """
        try:
            return self._values[kind]
        except KeyError:
            pass
        if kind not in self._loaders:
            kinds = ", ".join(self.kinds)
            raise UnknownKindError(f"no {self._noun} for {kind!r} targets: registered: {kinds}")
        return self._values.setdefault(kind, self._loaders[kind]())
