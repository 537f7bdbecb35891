"""Replace the inner loops of a stage by a declared intrinsic."""

from __future__ import annotations

from compiler.schedule.schedule import Schedule
from compiler.te_schedule.inserted import AnyAxis, axis_kind
from compiler.te_schedule.nest import Nest
from compiler.te_schedule.stage import Stage
from compiler.te_schedule.tensor_intrin import DeclaredIntrin


def tensorize_nest(
    sch: Schedule, stage: Stage, nest: Nest, axis: AnyAxis, intrin: DeclaredIntrin
) -> None:
    """Replace the loops of a stage from an axis on.

    If they hold the whole reduction, by what computes all of it. Else the reduction starts by the
    reset, before the outermost loop that goes on with it, and each iteration is an update.

    Raises:
        StageError: If the intrinsic was declared without the part that is needed.
        ScheduleError: If the loops do not compute what the intrinsic does.
    """
    (block,) = nest.blocks
    position = next(n for n, leaf in enumerate(nest.leaves) if leaf is axis)
    outside = [leaf for leaf in nest.leaves[:position] if axis_kind(leaf) == "reduce"]
    if not outside:
        if intrin.compute is None:
            raise stage.error("tensorize", "the intrinsic has no part that computes all of it")
        sch.tensorize(nest.loop(axis), intrin.compute)
        return
    if intrin.update is None:
        reason = "loops outside go on with the reduction, and the intrinsic has no update"
        raise stage.error("tensorize", reason)
    first = next(n for n, leaf in enumerate(nest.leaves) if leaf is outside[0])
    init = sch.decompose_reduction(block, nest.loop(outside[0]))
    if intrin.reset is not None:
        # The init has the loops of the stage from there on that are no reduction.
        spatial = [leaf for leaf in nest.leaves[first:] if axis_kind(leaf) != "reduce"]
        inside = [leaf for leaf in nest.leaves[position:] if axis_kind(leaf) != "reduce"]
        loops = sch.get_loops(init)
        reset_loops = loops[len(loops) - len(spatial) :]
        sch.tensorize(reset_loops[len(spatial) - len(inside)] if inside else init, intrin.reset)
    sch.tensorize(nest.loop(axis), intrin.update)
