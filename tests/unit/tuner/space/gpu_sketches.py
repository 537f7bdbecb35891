"""A sketch made by hand for a GPU: a matrix product in tiles of threads and shared memory."""

from __future__ import annotations

import numpy as np

from compiler.ir.core.program import PrimFunc
from compiler.target.cuda import CudaTarget
from tuner.space.rules.cuda.levels import BLOCK, CHUNK, ITEM, REGISTER, STEP, THREAD, UNROLLED
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

SPATIAL = (BLOCK, ITEM, THREAD, REGISTER)
SUMMED = (CHUNK, STEP, UNROLLED)


def product_sketch(func: PrimFunc, target: CudaTarget, padding: int = 0) -> Sketch:
    """Return a sketch of a product: knobs for i, j and k, and one for the vectors of copies.

    Args:
        padding: The elements between the rows of the left operand in shared memory.
    """
    draft = SketchBuilder.begin(func, target)
    (facts,) = draft.block_facts().values()
    schedule = draft.schedule
    block = schedule.get_block(facts.name)
    result = schedule.cache_write(block, 0, "local")
    loops = schedule.get_loops(block)
    knobs = [
        draft.tile(loop, axis.extent, 3 if axis.is_reduction else 4, 8)
        for loop, axis in zip(loops, facts.axes, strict=True)
    ]
    i, j, k = (schedule.split(loop, knobs[n][0]) for n, loop in enumerate(loops))
    schedule.reorder(i[0], j[0], i[1], j[1], i[2], j[2], *k, i[3], j[3])
    schedule.bind(i[0], "blockIdx.y")
    schedule.bind(j[0], "blockIdx.x")
    schedule.bind(schedule.fuse(i[1], j[1]), "vthread")
    threads = schedule.fuse(i[2], j[2])
    schedule.bind(threads, "threadIdx.x")
    schedule.reverse_compute_at(result, threads, preserve_unit_loops=True)
    length, _ = draft.choose([4, 2, 1])
    for operand in (0, 1):
        copy = schedule.cache_read(block, operand, "shared")
        schedule.compute_at(copy, k[0], preserve_unit_loops=True)
        fused = schedule.fuse(*schedule.get_loops(copy)[-2:])
        num_threads = knobs[0][0][2] * knobs[1][0][2]
        _, thread, vector = schedule.split(fused, [None, num_threads, length])
        schedule.vectorize(vector)
        schedule.bind(thread, "threadIdx.x")
        if padding and operand == 0:
            schedule.storage_align(copy, 0, -2, 32, padding)
    schedule.unroll(k[2])
    schedule.unroll(i[3])
    schedule.vectorize(j[3])
    schedule.vectorize(schedule.get_loops(result)[-1])
    schedule.decompose_reduction(block, k[0])
    levels = {
        axis: {
            level: column + n
            for n, level in enumerate(SUMMED if facts.axes[axis].is_reduction else SPATIAL)
        }
        for axis, (_, column) in enumerate(knobs)
    }
    draft.note(facts, levels, {}, vector_axis=1)
    draft.name = ("tiles",)
    return draft.finish()


def row(sketch: Sketch, *decisions: tuple[int, ...] | int) -> Ints:
    """Return the choices of decisions, as one row."""
    choices = [knob.choice(d) for knob, d in zip(sketch.knobs, decisions, strict=True)]
    assert None not in choices, "these are options"
    return np.array([choices], np.int64)
