"""Calls that take vectors apart and put lanes together: `T.Shuffle([a, b], [0, 5])`.

Lanes are numbered through all vectors: of two vectors of four lanes, 5 is the second lane of the
other one. The call holds the numbers as a text, since they are constants.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import Call, Expr, StringImm

SHUFFLE = "Shuffle"


def shuffle(vectors: Sequence[Expr], lanes: Sequence[int], dtype: DType) -> Call:
    """Return the vector of some lanes of vectors; of one lane, a scalar."""
    return Call(SHUFFLE, (StringImm(" ".join(map(str, lanes))), *vectors), dtype)


def picked_lanes(call: Call) -> list[int]:
    """Return the numbers of the lanes that a call takes."""
    text = call.args[0]
    assert isinstance(text, StringImm), "the verifier requires it"
    return [int(number) for number in text.value.split()]


def place_of_lane(number: int, lanes: Sequence[int]) -> tuple[int, int]:
    """Return the vector that a lane is in, and its number there.

    Args:
        number: The number through all vectors.
        lanes: The number of lanes of each vector.
    """
    for position, count in enumerate(lanes):
        if number < count:
            return position, number
        number -= count
    raise AssertionError("the verifier requires lanes that exist")
