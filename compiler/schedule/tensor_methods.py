"""The methods of `Schedule` that shape reductions, padding and tensor instructions.

Each is documented where it is implemented.
"""

from __future__ import annotations

from compiler.schedule.handle import BlockRV, LoopRV
from compiler.schedule.queries import Queries
from compiler.schedule.rfactor import rfactor


class TensorMethods(Queries):
    """Primitives that take reductions, paddings and blocks of computation apart."""

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Reduce for each iteration of a loop, then over it; see `compiler.schedule.rfactor`.

        Args:
            factor_axis: Where the loop goes among the dimensions of the partial results.

        Returns:
            The block that makes the partial results.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        func, var = self._loop("rfactor", loop)
        func, partial = rfactor(func, var, factor_axis)
        self._commit(func)
        new = self._new_block(func, partial)
        self._record("rfactor", {"loop": loop, "factor_axis": factor_axis}, [new])
        return new
