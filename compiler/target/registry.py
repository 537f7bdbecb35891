"""What differs between kinds of targets, found by the kind: one registry for each such thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class UnknownKindError(LookupError):
    """No value is registered for a kind of target."""


class KindRegistry(Generic[Value]):
    """Hold one value for each kind of target.

    The values that come with the project are loaded on first use. A process then imports only the
    libraries of the kinds that it uses, such as LLVM for CPUs.

    Args:
        noun: What the values are, for messages.
    """

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._loaders: dict[str, Callable[[], Value]] = {}
        self._values: dict[str, Value] = {}

    @property
    def kinds(self) -> list[str]:
        """The registered kinds, sorted."""
        return sorted({*self._loaders, *self._values})

    def provide(self, kind: str, load: Callable[[], Value]) -> None:
        """Set the function that imports the value of a kind which comes with the project."""
        self._loaders[kind] = load

    def register(self, kind: str, value: Value) -> None:
        """Register a value for a new kind, in this process.

        Raises:
            ValueError: If the kind has a value.
        """
        if kind in self.kinds:
            raise ValueError(f"there is a {self._noun} for {kind!r} targets already")
        self._values[kind] = value

    def unregister(self, kind: str) -> None:
        """Remove what `register` added; a kind without a value is no error."""
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
