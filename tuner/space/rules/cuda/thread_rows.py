"""The rule for chains of row reductions, such as softmax and layer norm."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.cuda.levels import BLOCK, REGISTER, STEP, THREAD
from tuner.space.rules.cuda.vector_loads import load_vectors
from tuner.space.rules.row_chain import RowChain, find_row_chain
from tuner.space.rules.sketch_builder import SketchBuilder

ROWS = (1, 2, 4, 8)
"""Rows of a block: several short ones fill its warps. Chosen."""
THREADS = (128, 256, 64, 512, 32, 1024)
"""Threads of a row, in the order of the knob: whole warps. Chosen."""
LENGTHS = (4, 2, 1)
"""Elements that a thread loads at once: up to 16 bytes of four-byte elements."""


class ThreadRows:
    """Computes a few rows in each block, with the threads of a block along the rows.

        for i, k in ...:                    for i0 in ...:  # blockIdx.x
            M[i] = max(M[i], A[i, k])           for i1 in ...:  # threadIdx.y
        for i, j in ...:                            for k in ...:  # threadIdx.x
            E[i, j] = exp(A[i, j] - M[i])  ->           M[i] = max(M[i], A[i, k])
        for i, k in ...:                            for j in ...:  # threadIdx.x
            S[i] += E[i, k]                             E[i, j] = exp(A[i, j] - M[i])
        ...                                         ...

    Intermediate results are in shared memory. There are up to two sketches. In `staged_rows`,
    inputs that several blocks read are copied to shared memory first, so that each is read once. In
    `rows`, the caches serve the later reads.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule the whole program, if it is such a chain."""
        chain = find_row_chain(draft)
        if chain is None or not _suits_threads(chain):
            return [draft]
        forks = []
        for name in ("staged_rows", "rows"):
            fork = draft.fork(name)
            scheduler = _ThreadRowScheduler(fork, chain)
            repeated = scheduler.repeated_reads() if name == "staged_rows" else []
            if (name == "staged_rows" and not repeated) or not scheduler.rows():
                continue
            try:
                with fork.schedule.verified_once():
                    scheduler.run(repeated)
            except ScheduleError:
                continue
            forks.append(fork)
        return forks or [draft]


def _suits_threads(chain: RowChain) -> bool:
    """Return whether the sink has rows, with elements for all threads of a block."""
    sink = chain.blocks[-1]
    has_rows = bool(chain.rows.of.get(sink.name)) and bool(chain.inner(sink))
    return not chain.is_across and len(chain.blocks) > 1 and has_rows


@dataclass
class _ThreadRowScheduler:
    """Schedules the blocks of a chain."""

    draft: SketchBuilder
    chain: RowChain
    threads: ExprRV | None = None
    around: list[LoopRV] = field(default_factory=list)
    row_loops: list[LoopRV] = field(default_factory=list)
    reductions: list[tuple[BlockRV, LoopRV]] = field(default_factory=list)
    columns: dict[str, int] = field(default_factory=dict)

    @property
    def sink(self) -> BlockFacts:
        """Return the last block."""
        return self.chain.blocks[-1]

    @property
    def row_axes(self) -> tuple[int, ...]:
        """Return the axes of the sink that run over rows."""
        return self.chain.rows.of.get(self.sink.name, ())

    def _row_bytes(self, access: TensorAccess) -> int:
        rows = prod(self.sink.axes[axis].extent for axis in self.row_axes)
        return max(1, access.size_bytes // rows)

    def repeated_reads(self) -> list[tuple[str, str]]:
        """Return the inputs that vary along rows and several blocks read, each with a reader."""
        readers: dict[str, list[str]] = {}
        for block in self.chain.blocks:
            row = self.chain.rows.of.get(block.name, ())
            for read in block.reads:
                is_input = read.buffer in {buffer.name for buffer in self.draft.func.buffers}
                if is_input and any(read.strides[axis] for axis in row):
                    readers.setdefault(read.buffer, []).append(block.name)
        return [(buffer, names[0]) for buffer, names in readers.items() if len(names) > 1]

    def rows(self) -> list[int]:
        """Return the numbers of rows whose intermediate results fit shared memory."""
        held = [b.write for b in self.chain.blocks[:-1]]
        staged = {buffer for buffer, _ in self.repeated_reads()}
        held += [r for b in self.chain.blocks for r in b.reads if r.buffer in staged]
        sizes = {access.buffer: self._row_bytes(access) for access in held}
        most = self.draft.gpu.limits.shared_bytes // max(sum(sizes.values()), 1)
        extent = self.sink.axes[self.row_axes[-1]].extent if self.row_axes else 1
        return [n for n in ROWS if n <= most and (n == 1 or n <= extent)]

    def run(self, staged: list[tuple[str, str]]) -> None:
        """Place all blocks under the loop over a block's rows, and bind the loops along them."""
        draft, schedule = self.draft, self.draft.schedule
        self._place_rows()
        length = self.sink.axes[max(self.chain.inner(self.sink))].extent
        vectors = [n for n in LENGTHS if length % n == 0]
        counts = thread_counts(length // max(vectors))
        self.threads, self.columns["threads"] = draft.choose(counts)
        vector, self.columns["vector"] = draft.choose(vectors)
        copies = [
            schedule.cache_read(schedule.get_block(reader), buffer, "shared")
            for buffer, reader in staged
        ]
        others = [schedule.get_block(block.name) for block in self._inlined()]
        for handle in (*reversed(others), *reversed(copies)):
            schedule.compute_at(handle, self.around[-1], preserve_unit_loops=True)
        for handle in others:
            schedule.set_scope(handle, 0, "shared")
        thread_loops = [self._along(handle, vector) for handle in (*copies, *others)]
        thread_loops.append(self._along(schedule.get_block(self.sink.name), vector))
        grid = schedule.fuse(*self.around) if len(self.around) > 1 else self.around[0]
        schedule.bind(grid, "blockIdx.x")
        for row, thread in zip(self.row_loops, thread_loops, strict=True):
            schedule.bind(row, "threadIdx.y")
            schedule.bind(thread, "threadIdx.x")
        for block, thread in self.reductions:
            load_vectors(draft, block, thread)
        draft.scheduled |= {block.name for block in self.chain.blocks}
        draft.scheduled |= {draft.block_name(copy) for copy in copies}
        for facts in self.chain.blocks:
            if self.chain.inner(facts):
                self._note(facts)

    def _inlined(self) -> list[BlockFacts]:
        """Compute blocks of one element a row where it is read; return the others but the sink."""
        others = []
        for block in self.chain.blocks[:-1]:
            if self.chain.inner(block):
                others.append(block)
            else:
                self.draft.schedule.compute_inline(self.draft.schedule.get_block(block.name))
        return others

    def _place_rows(self) -> None:
        """Cut the innermost row axis of the sink into blocks and rows of a block."""
        draft, schedule = self.draft, self.draft.schedule
        loops = draft.loops(self.sink.name)
        rows = [loops[axis] for axis in self.row_axes]
        inner = [loop for index, loop in enumerate(loops) if index not in self.row_axes]
        count, self.columns["rows"] = draft.choose(self.rows())
        outer, row = schedule.split(rows[-1], [None, count])
        self.around = [*rows[:-1], outer]
        schedule.reorder(*self.around, row, *inner)

    def _along(self, block: BlockRV, vector: ExprRV) -> LoopRV:
        """Cut the loops of a block along its rows; return the one over threads."""
        schedule = self.draft.schedule
        rows, inner = self._loops(block)
        if len(rows) > 1:
            rows = [schedule.fuse(*rows)]
        fused = schedule.fuse(*inner) if len(inner) > 1 else inner[0]
        assert self.threads is not None, "chosen before"
        _, thread, item = schedule.split(fused, [None, self.threads, vector])
        self.row_loops += rows
        facts = self._facts(block)
        if facts is not None and facts.is_reduction:
            schedule.unroll(item)
            self.reductions.append((block, thread))
        else:
            schedule.vectorize(item)
        return thread

    def _facts(self, block: BlockRV) -> BlockFacts | None:
        name = self.draft.block_name(block)
        return next((facts for facts in self.chain.blocks if facts.name == name), None)

    def _loops(self, block: BlockRV) -> tuple[list[LoopRV], list[LoopRV]]:
        """Return the loops of a block over the rows of a tile, and those along the rows."""
        loops = self.draft.loops(block)[len(self.around) :]
        facts = self._facts(block)
        if facts is self.sink:
            return loops[:1], loops[1:]
        count = len(self.row_axes)
        if facts is not None:
            count = len(self.chain.rows.of[facts.name])
        return loops[:count], loops[count:]

    def _note(self, block: BlockFacts) -> None:
        rows = self.chain.rows.of.get(block.name, ())
        along = self.chain.inner(block)[-1]
        columns = {along: {THREAD: self.columns["threads"], REGISTER: self.columns["vector"]}}
        rest = {index: BLOCK if index in rows else STEP for index in range(len(block.axes))}
        if rows:
            columns[rows[-1]] = {THREAD: self.columns["rows"]}
        self.draft.note(block, columns, rest, vector_axis=along)


def thread_counts(length: int) -> list[int]:
    """Return the numbers of threads along a row of this many elements, or vectors."""
    return [n for n in THREADS if n == min(THREADS) or n < 2 * length]
