"""The methods of `Schedule` that change loops; `primitives.loops` documents each."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.schedule.methods.primitive import primitive
from compiler.schedule.methods.queries import Queries
from compiler.schedule.primitives.loops.add_unit_loop import add_unit_loop
from compiler.schedule.primitives.loops.bind import bind
from compiler.schedule.primitives.loops.fuse import fuse
from compiler.schedule.primitives.loops.loop_partition import loop_partition, with_rest
from compiler.schedule.primitives.loops.merge import merge
from compiler.schedule.primitives.loops.parallel import parallel
from compiler.schedule.primitives.loops.reorder import reorder
from compiler.schedule.primitives.loops.skip_masked import skip_masked
from compiler.schedule.primitives.loops.split import split
from compiler.schedule.primitives.loops.unroll import unroll
from compiler.schedule.primitives.loops.vectorize import vectorize
from compiler.schedule.trace.handle import BlockRV, FactorLike, LoopRV


class LoopMethods(Queries):
    """Primitives on loops."""

    @primitive(num_outputs="factors", shorthands=("factor", "nparts"))
    def split(
        self,
        loop: LoopRV,
        factors: Sequence[FactorLike] | None = None,
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
        *,
        factor: FactorLike = None,
        nparts: FactorLike = None,
    ) -> list[LoopRV]:
        """Split a loop into several, the outermost first; see `primitives.loops.split`.

        Args:
            factors: The extents of the new loops; one may be None, and is computed.
            factor: Instead of factors: the extent of the inner one of two loops.
            nparts: Instead of factors: the extent of the outer one of two loops.
            preserve_unit_iters: Whether loops of a single iteration appear in iterators' values.
            disable_predication: Whether blocks may not get a predicate.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        alternatives = [x for x in (factors, factor, nparts) if x is not None]
        if len(alternatives) != 1:
            raise self._fail("split", "expected one of factors=[None, 32], factor=32 and nparts=32")
        if factors is None:
            factors = [None, factor] if nparts is None else [nparts, None]
        func, var = self._loop("split", loop)
        func, new = split(
            func,
            var,
            self._factors("split", factors),
            preserve_unit_iters=preserve_unit_iters,
            disable_predication=disable_predication,
        )
        self._commit("split", func)
        loops = [self._new_loop(func, v) for v in new]
        arguments: dict[str, object] = {
            "loop": loop,
            "factors": tuple(factors),
            "preserve_unit_iters": preserve_unit_iters,
            "disable_predication": disable_predication,
        }
        self._record("split", arguments, loops)
        self._kill("split", [loop])
        return loops

    @primitive(num_outputs="factors")
    def loop_partition(
        self,
        loop: LoopRV,
        factors: Sequence[FactorLike],
        preserve_unit_iters: bool = True,
    ) -> list[LoopRV]:
        """Partition a loop into several that run in turn; see `primitives.loops.loop_partition`.

        Args:
            factors: The number of iterations of each part; one may be None, and gets the rest.
            preserve_unit_iters: Ignored; it exists for compatibility with TVM.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        func, var = self._loop("loop_partition", loop)
        sizes = self._factors("loop_partition", factors)
        func, new = loop_partition(func, var, sizes)
        self._commit("loop_partition", func)
        loops = [self._new_loop(func, v) for v in new]
        arguments: dict[str, object] = {
            "loop": loop,
            # A trace records the number of resulting loops.
            "factors": with_rest(factors),
            "preserve_unit_iters": preserve_unit_iters,
        }
        self._record("loop_partition", arguments, loops)
        self._kill("loop_partition", [loop])
        return loops

    @primitive()
    def merge(self, *loops: LoopRV) -> LoopRV:
        """Merge the bodies of several loops into one loop; see `primitives.loops.merge`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        func, variables = self._loop_vars("merge", loops)
        func, var = merge(func, variables)
        self._commit("merge", func)
        loop = self._new_loop(func, var)
        self._record("merge", {"loops": loops}, [loop])
        self._kill("merge", loops)
        return loop

    @primitive()
    def add_unit_loop(self, block_or_loop: BlockRV | LoopRV | str) -> LoopRV:
        """Add a loop of one iteration around a loop or block; see `primitives.loops.add_unit_loop`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, at = self._block_or_loop("add_unit_loop", block_or_loop)
        func, var = add_unit_loop(func, at)
        self._commit("add_unit_loop", func)
        loop = self._new_loop(func, var)
        self._record("add_unit_loop", {"block_or_loop": handle}, [loop])
        return loop

    def _factors(self, primitive: str, factors: Sequence[FactorLike]) -> list[int | None]:
        return [None if f is None else self._value(primitive, f) for f in factors]

    @primitive()
    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """Fuse nested loops into one; see `compiler.schedule.primitives.loops.fuse`.

        Args:
            preserve_unit_iters: Whether a loop of a single iteration appears in iterators' values.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        func, variables = self._loop_vars("fuse", loops)
        func, var = fuse(func, variables, preserve_unit_iters=preserve_unit_iters)
        self._commit("fuse", func)
        loop = self._new_loop(func, var)
        arguments = {"loops": loops, "preserve_unit_iters": preserve_unit_iters}
        self._record("fuse", arguments, [loop])
        self._kill("fuse", loops)
        return loop

    @primitive()
    def reorder(self, *loops: LoopRV) -> None:
        """Reorder nested loops; see `compiler.schedule.primitives.loops.reorder`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        if loops:
            func, variables = self._loop_vars("reorder", loops)
            self._commit("reorder", reorder(func, variables))
        self._record("reorder", {"loops": loops})

    @primitive()
    def parallel(self, loop: LoopRV) -> None:
        """Run a loop on several threads; see `compiler.schedule.primitives.loops.parallel`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        func, var = self._loop("parallel", loop)
        self._commit("parallel", parallel(func, var))
        self._record("parallel", {"loop": loop})

    @primitive()
    def vectorize(self, loop: LoopRV) -> None:
        """Run a loop as lanes of vectors; see `compiler.schedule.primitives.loops.vectorize`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        func, var = self._loop("vectorize", loop)
        self._commit("vectorize", vectorize(func, var))
        self._record("vectorize", {"loop": loop})

    @primitive()
    def unroll(self, loop: LoopRV) -> None:
        """Unroll a loop; see `compiler.schedule.primitives.loops.unroll`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        func, var = self._loop("unroll", loop)
        self._commit("unroll", unroll(func, var))
        self._record("unroll", {"loop": loop})

    @primitive()
    def skip_masked(self, loop: LoopRV) -> None:
        """Skip the iterations that a mask excludes; see `primitives.loops.skip_masked`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        func, var = self._loop("skip_masked", loop)
        self._commit("skip_masked", skip_masked(func, var))
        self._record("skip_masked", {"loop": loop})

    @primitive()
    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Bind a loop to a GPU's threads or blocks of threads; see `primitives.loops.bind`.

        Args:
            thread_axis: "blockIdx.x", "threadIdx.x", "vthread", ...

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        func, var = self._loop("bind", loop)
        self._commit("bind", bind(func, var, thread_axis))
        self._record("bind", {"loop": loop, "thread_axis": thread_axis})
