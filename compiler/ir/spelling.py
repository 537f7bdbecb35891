"""The spellings of the script dialect, which changed over TVM's releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["new", "middle", "old"]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one generation of the dialect writes blocks and buffers."""

    block: str
    block_attr: str
    alloc_buffer: str
    subscripted_buffer: bool  # T.Buffer[(4,), "float32"] rather than T.Buffer((4,), "float32")


SPELLINGS: dict[Dialect, Spelling] = {
    "new": Spelling("T.sblock", "T.sblock_attr", "T.sblock_alloc_buffer", subscripted_buffer=False),
    "middle": Spelling("T.block", "T.block_attr", "T.alloc_buffer", subscripted_buffer=False),
    "old": Spelling("T.block", "T.block_attr", "T.alloc_buffer", subscripted_buffer=True),
}
