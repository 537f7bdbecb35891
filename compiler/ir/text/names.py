"""Choose the printed names of variables: valid, and unique within their scope."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from compiler.ir.core.nodes import Var

MODULE_NAME = "Module"
"""The class of a printed module, by which its functions call each other."""

# Names that a printed program uses besides its variables.
_RESERVED = frozenset({"T", "I", "tir", "tirx", "tvm", "range", "TypeVar", MODULE_NAME})


class Names:
    """Names of the variables in scope.

    Two loops one after another may both be `i`; a loop inside a loop `i` becomes `i_1`.

    Args:
        reserved: Names that mean something else in the printed language.
        spell: Turns any text into a legal name.
    """

    def __init__(
        self,
        reserved: AbstractSet[str] = _RESERVED,
        spell: Callable[[str], str] | None = None,
    ) -> None:
        self._names: dict[Var, str] = {}
        self._taken: set[str] = set(reserved)
        self._spell = spell or identifier

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope: forget the names that are bound inside when it ends."""
        outer_names = set(self._taken)
        yield
        self._taken = outer_names

    def bind(self, var: Var) -> str:
        """Choose a name for a variable that is defined here."""
        name = unique(self._spell(var.name), self._taken)
        self._taken.add(name)
        self._names[var] = name
        return name

    def call(self, var: Var, text: str) -> None:
        """Print a variable as the given text from here on, such as `A.strides[0]`."""
        self._names[var] = text

    def __contains__(self, var: Var) -> bool:
        """Return whether a variable has a name already."""
        return var in self._names

    def __getitem__(self, var: Var) -> str:
        """Return the name of a variable; a free variable gets one now."""
        return self._names.get(var) or self.bind(var)


def identifier(name: str) -> str:
    """Turn any text into a Python identifier that is not a keyword."""
    # Python normalizes names to this form: other forms would not survive parsing.
    name = unicodedata.normalize("NFKC", name)
    if not name.isidentifier():
        name = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not name or name[0].isdigit() or keyword.iskeyword(name):
        name = f"_{name}"
    return name


def unique(name: str, used_names: set[str]) -> str:
    """Return `name`, or the first of `name_1`, `name_2`, ... that is free."""
    candidate, number = name, 0
    while candidate in used_names:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
