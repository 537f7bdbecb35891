"""The opaque functions that programs may call: they have an effect, or inform passes.

Their arguments may be strings and the storage of buffers. Any other name is illegal in a program,
because the effect of each call must be known.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.core.dtypes import DType


@dataclass(frozen=True, slots=True)
class Opaque:
    """An opaque function by name; it takes `least` to `most` arguments and returns `dtype`.

    A `dtype` of None means the type that the context requires.
    """

    name: str
    least: int
    most: int
    dtype: DType | None


OPAQUE: dict[str, Opaque] = {
    f.name: f
    for f in (
        # A barrier between the threads of a block: (scope, ...).
        Opaque("tvm_storage_sync", 1, 3, "int32"),
        # A condition that the author of the program guarantees: (condition).
        Opaque("assume", 1, 1, "bool"),
        # An undefined value: ().
        Opaque("undef", 0, 0, None),
    )
}
