"""Choose the names under which variables are printed: valid, unique where they are visible."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

from compiler.ir.core.nodes import Var

# What a printed program says besides its own variables.
_RESERVED = frozenset({"T", "I", "tir", "tirx", "tvm", "range", "TypeVar"})


class Names:
    """Names of the variables in scope.

    Two loops one after another may both be `i`; a loop inside a loop `i` becomes `i_1`.
    """

    def __init__(self) -> None:
        self._names: dict[Var, str] = {}
        self._taken: set[str] = set(_RESERVED)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget, at the end, the names that were bound inside."""
        taken = set(self._taken)
        yield
        self._taken = taken

    def bind(self, var: Var) -> str:
        """Choose a name for a variable that is defined here."""
        name = unique(identifier(var.name), self._taken)
        self._taken.add(name)
        self._names[var] = name
        return name

    def call(self, var: Var, text: str) -> None:
        """Let a text that names a variable stand for it from here on: `A.strides[0]`."""
        self._names[var] = text

    def __contains__(self, var: Var) -> bool:
        """Tell whether a variable has a name already."""
        return var in self._names

    def __getitem__(self, var: Var) -> str:
        """Return the name of a variable; a free one is given a name on the spot."""
        return self._names.get(var) or self.bind(var)


def identifier(name: str) -> str:
    """Turn any text into a Python identifier that is no keyword."""
    # Python reads names in this form: other forms of them would come back changed.
    name = unicodedata.normalize("NFKC", name)
    if not name.isidentifier():
        name = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not name or name[0].isdigit() or keyword.iskeyword(name):
        name = f"_{name}"
    return name


def unique(name: str, taken: set[str]) -> str:
    """Return `name`, or `name_1`, `name_2`, ... whichever is not taken yet."""
    candidate, number = name, 0
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
