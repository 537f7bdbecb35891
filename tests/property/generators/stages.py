"""Random schedules of tensor expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from compiler.te.tensor import Compute
from compiler.te_schedule.inserted import AnyAxis, AnyTensor, axis_kind
from compiler.te_schedule.stage import Stage
from compiler.te_schedule.tensor_schedule import TensorSchedule, create_schedule
from loopwright import te

Choose = Callable[[Sequence[Any]], Any]
"""Returns one of some options."""


class RandomStages:
    """Draws the steps of a schedule; each is legal as far as stages know."""

    def __init__(self, output: te.Tensor, choose: Choose) -> None:
        op = output.op
        assert isinstance(op, Compute), "an output is computed"
        self.schedule: TensorSchedule = create_schedule(op)
        self._choose = choose

    def draw(self) -> TensorSchedule:
        """Insert stages, transform the loops of all, and choose their locations."""
        for _ in range(self._choose((0, 0, 1, 2))):
            self._choose((self._cache_read, self._cache_write, self._rfactor))()
        for stage in self._computed():
            for _ in range(self._choose((0, 1, 2, 3))):
                self._choose((self._split, self._split, self._fuse, self._reorder, self._tile))(
                    stage
                )
        for stage in reversed(self._computed()):
            self._place(stage)
            self._mark(stage)
        return self.schedule

    def _computed(self) -> list[Stage]:
        return [stage for stage in self.schedule.stages if stage.reads]

    def _tensors(self) -> list[AnyTensor]:
        tensors: dict[int, AnyTensor] = {}
        for stage in self.schedule.stages:
            tensors.update((id(read), read) for read in stage.reads)
        return list(tensors.values())

    # Insertions

    def _cache_read(self) -> None:
        tensor = self._choose(self._tensors())
        readers = [s for s in self.schedule.stages if any(r is tensor for r in s.reads)]
        count = self._choose(range(1, len(readers) + 1))
        self.schedule.cache_read(tensor, "global", [stage.op for stage in readers[:count]])

    def _cache_write(self) -> None:
        stage = self._choose(self._computed())
        if isinstance(stage.op, Compute) and not stage.transformations:
            self.schedule.cache_write(list(stage.op.outputs), "global")

    def _rfactor(self) -> None:
        stages = [s for s in self._computed() if any(map(_is_reduced, s.leaf_iter_vars))]
        if not stages:
            return
        stage = self._choose(stages)
        if stage.transformations:
            return
        axis = self._choose([leaf for leaf in stage.leaf_iter_vars if _is_reduced(leaf)])
        if self._choose((True, False)):
            axis = self._choose(stage.split(axis, factor=self._choose((2, 3))))
        place = self._choose((0, -1))
        self.schedule.rfactor(stage.op.outputs[0], axis, place)

    # Loops

    def _split(self, stage: Stage) -> None:
        if stage.leaf_iter_vars:
            how = self._choose(("factor", "nparts"))
            axis, number = self._choose(stage.leaf_iter_vars), self._choose((1, 2, 3, 4))
            stage.split(axis, **{how: number})

    def _fuse(self, stage: Stage) -> None:
        leaves = stage.leaf_iter_vars
        pairs = [(a, b) for a, b in pairwise(leaves) if axis_kind(a) == axis_kind(b)]
        if pairs:
            stage.fuse(*self._choose(pairs))

    def _reorder(self, stage: Stage) -> None:
        left = list(stage.leaf_iter_vars)
        order: list[AnyAxis] = []
        while left and len(order) < 3:
            axis = self._choose(left)
            left = [other for other in left if other is not axis]
            order.append(axis)
        stage.reorder(*order)

    def _tile(self, stage: Stage) -> None:
        if len(stage.leaf_iter_vars) > 1:
            x, y = stage.leaf_iter_vars[:2]
            stage.tile(x, y, self._choose((2, 3)), self._choose((2, 4)))

    # Locations and kinds of loops

    def _place(self, stage: Stage) -> None:
        readers = [s for s in self._computed() if set(map(id, s.reads)) & self._made_by(stage)]
        is_plain = not any(map(_is_reduced, stage.leaf_iter_vars))
        options: list[Any] = ["root"]
        if readers:
            options += ["at", "at"] + (["inline"] if is_plain else [])
        choice = self._choose(options)
        if choice == "inline":
            stage.compute_inline()
        elif choice == "at" and len(readers) == 1:
            (target,) = readers
            if target.leaf_iter_vars and target.location != "inline":
                stage.compute_at(target, self._choose(target.leaf_iter_vars))

    def _made_by(self, stage: Stage) -> set[int]:
        return set(map(id, stage.op.outputs))

    def _mark(self, stage: Stage) -> None:
        spatial = [leaf for leaf in stage.leaf_iter_vars if not _is_reduced(leaf)]
        if not spatial:
            return
        kind = self._choose(("none", "none", "parallel", "vectorize", "unroll"))
        if kind == "parallel":
            stage.parallel(spatial[0])
        elif kind == "vectorize":
            stage.vectorize(spatial[-1])
        elif kind == "unroll":
            stage.unroll(self._choose(stage.leaf_iter_vars))


def _is_reduced(axis: AnyAxis) -> bool:
    return axis_kind(axis) == "reduce"
