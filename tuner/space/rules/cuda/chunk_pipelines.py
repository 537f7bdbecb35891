"""Pipelines over the chunks of a reduction: operands of later chunks arrive during the sums."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import ExprRV, LoopRV


class ChunkPipeline(StrEnum):
    """How the operands of later chunks arrive.

    Attributes:
        NONE: They do not: a chunk is copied, then computed.
        REGISTERS: They are loaded into registers before the sums of a chunk, and stored to the
            other half of shared memory after them. It suits every copy.
        ASYNC: Asynchronous copies fill up to three later chunks. Copies that `cp.async` cannot do
            go through registers.
    """

    NONE = "none"
    REGISTERS = "registers"
    ASYNC = "async"


CHUNKS_AHEAD = (1, 2, 3, 0)
"""Chunks that asynchronous copies are ahead: two to four are in shared memory, or a single one.
Chosen.
"""


def pipeline_chunks(
    schedule: Schedule, chunk: LoopRV, has_local_stage: Sequence[bool], ahead: ExprRV | int
) -> None:
    """Run the copies of a loop over chunks ahead of the sums.

    Args:
        chunk: The loop. Its body is the copies, then the sums.
        has_local_stage: For each copy, whether it goes through registers: it loads before the
            sums, and stores after them. The others are asynchronous.
        ahead: The number of chunks.
    """
    ranks: list[int] = []
    for is_split in has_local_stage:
        ranks += (0, 2) if is_split else (0,)
    ranks.append(1)
    by_rank = sorted(range(len(ranks)), key=lambda number: (ranks[number], number))
    order = [by_rank.index(number) for number in range(len(ranks))]
    stages: list[ExprRV | int] = [0] * (len(ranks) - 1)
    schedule.annotate(chunk, "software_pipeline_stage", [*stages, ahead])
    schedule.annotate(chunk, "software_pipeline_order", order)
    if not all(has_local_stage):
        schedule.annotate(chunk, "software_pipeline_async_stages", [0])
