"""The opaque functions that programs may call: those that have an effect, or tell passes something.

Their arguments may be strings and the storage of buffers. A program that calls any other name is
not legal: what a call does must be known.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.core.dtypes import DType


@dataclass(frozen=True, slots=True)
class Opaque:
    """An opaque function by name; it takes `least` to `most` arguments and returns `dtype`.

    A `dtype` of None is whatever type the place wants.
    """

    name: str
    least: int
    most: int
    dtype: DType | None


OPAQUE: dict[str, Opaque] = {
    f.name: f
    for f in (
        # All threads of a block wait for one another: (scope, ...).
        Opaque("tvm_storage_sync", 1, 3, "int32"),
        # A promise of the one who wrote the program: (condition).
        Opaque("assume", 1, 1, "bool"),
        # A value that may be anything: ().
        Opaque("undef", 0, 0, None),
    )
}
