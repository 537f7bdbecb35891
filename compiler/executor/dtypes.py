"""Types of elements by name, and NumPy's types for them."""

from __future__ import annotations

from typing import Any

import numpy as np

# The unsigned integers that hold types which NumPy knows with the package `ml_dtypes` alone.
_STORED_AS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return NumPy's type of elements; unsigned integers for types that NumPy lacks.

    Raises:
        ValueError: If there is no such type.
    """
    try:
        return np.dtype(name)
    except TypeError:
        if name not in _STORED_AS:
            raise ValueError(f"unknown dtype {name!r}") from None
        return np.dtype(_STORED_AS[name])
