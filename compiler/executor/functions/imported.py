"""Registered functions that another process imports: the child in which a search measures."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterable
from operator import attrgetter

from ..error import UnknownFunctionError
from .registry import BUILT_IN, LibraryFunction, register_func, registered_func

IMPORTED_VARIABLE = "LOOPWRIGHT_IMPORTED_FUNCTIONS"
"""The environment variable that tells a child which functions to import and register."""


def imports_of(names: Iterable[str]) -> str:
    """Return the value of `IMPORTED_VARIABLE` for a child whose programs call functions.

    Args:
        names: Names of functions; those of libraries need no import.

    Raises:
        UnknownFunctionError: If a function is not registered, or can't be imported.
    """
    functions = [registered_func(name) for name in names if name not in BUILT_IN]
    imports = [(f.name, *_place_of(f), f.num_outputs) for f in functions]
    return json.dumps({"path": sys.path, "functions": imports}) if imports else ""


def import_functions() -> None:
    """Import and register the functions of `IMPORTED_VARIABLE`."""
    text = os.environ.get(IMPORTED_VARIABLE)
    if not text:
        return
    imports = json.loads(text)
    sys.path.extend(folder for folder in imports["path"] if folder not in sys.path)
    for name, module, attribute, num_outputs in imports["functions"]:
        function = attrgetter(attribute)(importlib.import_module(module))
        # The import may have registered it.
        register_func(name, function, num_outputs=num_outputs, override=True)


def _place_of(function: LibraryFunction) -> tuple[str, str]:
    """Return the module and the name in it by which another process finds a function."""
    module = getattr(function.function, "__module__", None)
    name = getattr(function.function, "__qualname__", "")
    try:
        is_there = attrgetter(name)(sys.modules[module]) is function.function  # type: ignore[index]
    except (AttributeError, KeyError):
        is_there = False
    if function.is_c or module == "__main__" or not is_there:
        kind = "in C" if function.is_c else f"of {module}"
        raise UnknownFunctionError(
            f"{function.name!r} is a function {kind}: a search measures in another process, which"
            " imports the function: define it at the top level of a module other than the main one"
        )
    return str(module), name
