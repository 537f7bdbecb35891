"""Find the operands of a product: the image under sliding windows, and the weights."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.target.cpu import CpuTarget
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess

CHANNEL_BLOCK = 16
"""Input channels of a block: 16 floats are a cache line, and with a window's rows they fit the
first-level cache (Georganas et al., SC 2018).
"""
FOLDED_BYTES = 4
"""The bytes of an element that a multiply-add of 16 lanes reads from memory."""
MIN_ROWS = 3
"""With a smaller divisor of an axis, its tiles need not divide it. Chosen."""
MIN_CHANNEL_BLOCK = 4
"""With fewer channels side by side, a contiguous row of the window is the better layout. Chosen."""

MIN_PART = 4
"""Elements of a part of a vector, at least: xmm registers hold as many floats. Chosen."""


@dataclass(frozen=True)
class OperandRoles:
    """The parts of a sum of products `out[v, ...] += image[c, ...] * weights[v, c, ...]`.

    Attributes:
        image: The operand that depends on the other spatial axes.
        weights: The operand that depends on the vector axis.
        vector: The spatial axis that only the weights and the output depend on.
        channel: The summation axis that is alone in a dimension of both operands.
        vector_tile: The number of elements of the vector axis that lie side by side in packed
            weights.
        channel_tile: The same of the channel.
    """

    image: TensorAccess
    weights: TensorAccess
    vector: int
    channel: int
    vector_tile: int
    channel_tile: int


def find_roles(facts: BlockFacts, cpu: CpuTarget) -> OperandRoles | None:
    """Return the roles in a block; None if it is not such a sum."""
    if not facts.is_affine or len(facts.reads) != 2 or not facts.is_multiply_add:
        return None
    for image, weights in (facts.reads, facts.reads[::-1]):
        for vector, axis in enumerate(facts.axes):
            if axis.is_reduction or not _is_vector(facts, image, weights, vector):
                continue
            tile = _vector_tile(facts, vector, image.item_bytes, cpu)
            channel = _channel(facts, image, weights)
            if tile is None or channel is None or not _is_moved_over(facts, image, weights):
                continue
            block = max(_divisors(facts.axes[channel].extent, CHANNEL_BLOCK))
            block = block if block >= MIN_CHANNEL_BLOCK else 1
            return OperandRoles(image, weights, vector, channel, tile, block)
    return None


def dimension(access: TensorAccess, axis: int) -> int | None:
    """Return the dimension whose index is exactly an axis; None if there is none."""
    for number, row in enumerate(access.coefficients):
        if row[axis] == 1 and sum(map(abs, row)) == 1:
            return number
    return None


def _is_vector(facts: BlockFacts, image: TensorAccess, weights: TensorAccess, axis: int) -> bool:
    return (
        not any(row[axis] for row in image.coefficients)
        and _is_alone(weights, axis)
        and _is_alone(facts.write, axis)
    )


def _is_alone(access: TensorAccess, axis: int) -> bool:
    return dimension(access, axis) is not None and sum(map(bool, _column(access, axis))) == 1


def _column(access: TensorAccess, axis: int) -> list[int]:
    return [row[axis] for row in access.coefficients]


def _channel(facts: BlockFacts, image: TensorAccess, weights: TensorAccess) -> int | None:
    """Return the longest axis summed over that is alone in a dimension of both operands."""
    candidates = [
        index
        for index, axis in enumerate(facts.axes)
        if axis.is_reduction and _is_alone(image, index) and _is_alone(weights, index)
    ]
    return max(candidates, key=lambda index: facts.axes[index].extent, default=None)


def _is_moved_over(facts: BlockFacts, image: TensorAccess, weights: TensorAccess) -> bool:
    """Return whether windows slide over the image, or two or more axes run over it alone."""
    slides = any(sum(map(bool, row)) > 1 for row in image.coefficients)
    alone = [
        index
        for index, axis in enumerate(facts.axes)
        if not axis.is_reduction
        and axis.extent > 1
        and any(_column(image, index))
        and not any(_column(weights, index))
    ]
    return slides or len(alone) > 1


def _vector_tile(facts: BlockFacts, vector: int, item_bytes: int, cpu: CpuTarget) -> int | None:
    """Return the length of vectors, in elements, whose register tile suits the CPU best.

    Elements of 4 bytes are lanes of AVX-512: multiply-adds read them from memory for all lanes.
    """
    lanes, registers = cpu.vector_bits // 32, cpu.num_vector_registers
    rows = {1}
    is_folded = cpu.folds_broadcasts and item_bytes == FOLDED_BYTES
    for index, axis in enumerate(facts.axes):
        if not axis.is_reduction and index != vector:
            sizes = _divisors(axis.extent, registers)
            if is_folded and max(sizes) < MIN_ROWS < axis.extent:
                sizes = list(range(1, registers))  # the last tile of an axis is shorter
            rows |= {r * d for r in rows for d in sizes}
    extent = facts.axes[vector].extent
    best: tuple[float, int] | None = None
    for count in (1, 2, 3) if is_folded else (2, 3, 1):
        tile = count * lanes
        fitting = [r for r in rows if r * count + count + 1 <= registers]
        if extent % tile or not fitting:
            continue
        if is_folded:
            value = max(_share_of_multiplying(r, count, cpu) for r in fitting)
        else:
            value = max(_multiplications_a_load(r, count) for r in fitting)
        if best is None or value > best[0] * 1.05:
            best = (value, tile)
    return _part_of_vector(extent, cpu) if best is None else best[1]


def _part_of_vector(extent: int, cpu: CpuTarget) -> int | None:
    """Return the part of a vector that divides an extent, such as a group of 8 channels, or None.

    Cores that split vectors multiply halves at twice the rate. On others, halves and quarters of
    vectors are offered for extents that fill no vector: elements along another axis may be apart.
    """
    lanes = cpu.vector_bits // 32
    is_short = extent < lanes
    parts = [lanes // 2] if is_short or cpu.pipelines.parts > 1 else []
    parts += [lanes // 4] if is_short else []
    return next((n for n in parts if n >= MIN_PART and extent % n == 0), None)


def _multiplications_a_load(rows: int, count: int) -> float:
    """Return how often `rows` rows of `count` vectors multiply for each load.

    Fewer than 8 accumulators do not hide the latency of multiply-adds.
    """
    return min(1.0, rows * count / 8) * rows * count / (rows + count)


def _share_of_multiplying(rows: int, count: int, cpu: CpuTarget) -> float:
    """Return the share of the cycles of a step in which multiply-adds start.

    The element of a row is loaded by its multiply-add if that is the only one, which then costs no
    instruction of its own.
    """
    core = cpu.pipelines
    multiplications = rows * count
    loads = count / core.loads + rows / (core.loads * core.parts)
    instructions = multiplications + count + (rows if count > 1 else 0)
    cycles = multiplications / core.fmas
    return cycles / max(cycles, loads, instructions / core.slots, core.fma_latency)


def _divisors(number: int, most: int) -> list[int]:
    return [d for d in range(1, min(number, most) + 1) if number % d == 0]
