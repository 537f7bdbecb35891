"""The levels of a `TiledNest` on a GPU, the outermost first.

An axis of a tiled block has up to seven loops. On a GPU these are:

    BLOCK      the blocks of the grid
    ITEM       pieces that a block computes one after another
    CHUNK      steps over the reduction; each stages its operands in shared memory
    THREAD     the threads of a block; for a reduction axis, threads that reduce together
    STEP       steps of the reduction by one thread
    UNROLLED   unrolled steps of the reduction by one thread
    REGISTER   the elements of a thread, in registers; the vector axis is vectorized
"""

from __future__ import annotations

BLOCK, ITEM, CHUNK, THREAD, STEP, UNROLLED, REGISTER = range(7)
