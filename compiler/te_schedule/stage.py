"""`Stage`: how the tensors of one operation are computed.

A stage only records its steps, in their order: TVM's stages describe loops whose extents follow
from where the stage is computed, and that may be decided later. `lower_stages.py` applies them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn, TypeAlias

from compiler.ir.core.nodes import IntImm
from compiler.keywords import suggestion
from compiler.te.axis import TensorAxis
from compiler.te.value import ReduceAxis, Value
from compiler.te_schedule.error import StageError
from compiler.te_schedule.inserted import (
    AnyAxis,
    AnyOperation,
    AnyTensor,
    axes_of,
    axis_kind,
    axis_name,
)
from compiler.te_schedule.tensor_intrin import DeclaredIntrin
from compiler.te_schedule.transformations import (
    Fuse,
    Mark,
    MarkKind,
    Reorder,
    Split,
    Transformation,
)

Location: TypeAlias = "Literal['root', 'inline'] | tuple[Stage, AnyAxis]"
"""Where a stage is computed: before its readers, in them, or under a loop of another stage."""

_PRAGMAS = ("auto_unroll_max_step", "unroll_explicit", "parallel_launch_point")
"""TVM's pragmas that are hints: they change no result."""

_INSTEAD = {
    "double_buffer": 's.to_schedule([...]).annotate(block, "double_buffer_scope", 0)',
    "env_threads": "bind the loops of the init and the update of a scan",
    "prefetch": "LLVM and the CPU prefetch; nothing replaces it",
    "set_store_predicate": "not needed: of threads that reduce together, one stores",
    "rolling_buffer": "s.to_schedule([...]).rolling_buffer(block, 0)",
    "transform_layout": "s.to_schedule([...]).transform_layout(block, buffer, index_map)",
}


class Stage:
    """The schedule of one operation: `s[C]`.

    Attributes:
        op: The operation, whose `axis` and `reduce_axis` the loops come from.
        reads: The tensors that it reads.
        leaf_iter_vars: The loops as they are now, the outermost first.
    """

    def __init__(self, op: AnyOperation, reads: Sequence[AnyTensor]) -> None:
        self.scope = ""
        self.location: Location = "root"
        self.marks: list[Mark] = []
        self.alignments: list[tuple[AnyAxis, int, int]] = []
        self.restart(op, reads)

    def restart(self, op: AnyOperation, reads: Sequence[AnyTensor]) -> None:
        """Replace the operation, whose loops nothing has changed yet."""
        self.op: AnyOperation = op
        self.reads: list[AnyTensor] = list(reads)
        self.leaf_iter_vars: list[AnyAxis] = list(axes_of(op))
        self.transformations: list[Transformation] = []

    @property
    def name(self) -> str:
        """Return the name of the operation."""
        return self.op.name

    @property
    def axis(self) -> tuple[AnyAxis, ...]:
        """Return the dimensions of the operation."""
        return tuple(axis for axis in axes_of(self.op) if axis_kind(axis) == "spatial")

    @property
    def reduce_axis(self) -> tuple[AnyAxis, ...]:
        """Return the axes that the operation reduces over."""
        return tuple(axis for axis in axes_of(self.op) if axis_kind(axis) == "reduce")

    def __repr__(self) -> str:
        return f"<Stage {self.name}: {', '.join(map(axis_name, self.leaf_iter_vars))}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        names = [n for n in dir(type(self)) if not n.startswith("_")]
        hint = f"instead: {_INSTEAD[name]}" if name in _INSTEAD else suggestion(name, names)
        raise AttributeError(f"a stage has no attribute {name!r}; {hint}")

    # Loops

    def split(
        self, parent: AnyAxis, factor: object = None, nparts: object = None
    ) -> tuple[TensorAxis, TensorAxis]:
        """Split a loop in two. A factor that does not divide leaves a guard.

        Args:
            parent: The loop.
            factor: The extent of the inner loop.
            nparts: Instead: the extent of the outer loop.

        Raises:
            StageError: If it is no loop of the stage, or not one of the two is given.
        """
        position = self.require_loop("split", parent)
        if (factor is None) == (nparts is None):
            raise self.error("split", "expected either factor or nparts")
        sizes = [None if size is None else self._size("split", size) for size in (factor, nparts)]
        name, kind = axis_name(parent), axis_kind(parent)
        outer, inner = TensorAxis(f"{name}_0", kind), TensorAxis(f"{name}_1", kind)
        self.transformations.append(Split(parent, outer, inner, *sizes))
        self.leaf_iter_vars[position : position + 1] = [outer, inner]
        return outer, inner

    def fuse(self, *parts: AnyAxis) -> TensorAxis:
        """Fuse loops, each directly inside the previous one. Of none, add a loop of one iteration.

        Raises:
            StageError: If one is no loop of the stage, or they are not nested so.
        """
        positions = [self.require_loop("fuse", part) for part in parts]
        if not parts and self.leaf_iter_vars:
            raise self.error("fuse", f"expected two loops or more, of {self._loops()}")
        if positions != list(range(positions[0], positions[0] + len(parts)) if parts else []):
            given = ", ".join(map(axis_name, parts))
            raise self.error(
                "fuse",
                f"{given} do not follow one another; the loops are: {self._loops()}",
                "structure",
            )
        kinds = {axis_kind(part) for part in parts}
        if len(kinds) > 1:
            raise self.error(
                "fuse", "a spatial axis and a reduction axis are not fused", "loop_kind"
            )
        name = "_".join([*map(axis_name, parts), "fused"])
        fused = TensorAxis(name, kinds.pop() if kinds else "spatial")
        self.transformations.append(Fuse(parts, fused))
        first = positions[0] if positions else 0
        self.leaf_iter_vars[first : first + len(parts)] = [fused]
        return fused

    def reorder(self, *order: AnyAxis) -> None:
        """Reorder loops; the others keep their places.

        Raises:
            StageError: If one is no loop of the stage, or is given twice.
        """
        positions = [self.require_loop("reorder", axis) for axis in order]
        if len(set(positions)) < len(positions):
            raise self.error("reorder", "a loop is given twice")
        for position, axis in zip(sorted(positions), order, strict=True):
            self.leaf_iter_vars[position] = axis
        self.transformations.append(Reorder(tuple(self.leaf_iter_vars)))

    def tile(
        self, x_parent: AnyAxis, y_parent: AnyAxis, x_factor: object, y_factor: object
    ) -> tuple[TensorAxis, TensorAxis, TensorAxis, TensorAxis]:
        """Split two loops, and run the outer ones first: x_outer, y_outer, x_inner, y_inner.

        Raises:
            StageError: If one is no loop of the stage, or a factor is no positive integer.
        """
        self.require_loop("tile", y_parent)
        self._size("tile", y_factor)
        x_outer, x_inner = self.split(x_parent, factor=x_factor)
        y_outer, y_inner = self.split(y_parent, factor=y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    # How loops run

    def bind(self, ivar: AnyAxis, thread_ivar: TensorAxis) -> None:
        """Run a loop on the threads of a GPU.

        Raises:
            StageError: If it is no loop of the stage, or the other no axis of threads.
        """
        argument: object = thread_ivar
        if not isinstance(argument, TensorAxis) or argument.kind != "thread":
            reason = f"{argument!r} is no axis of threads: expected te.thread_axis(...)"
            raise self.error("bind", reason)
        self._mark("bind", ivar, argument)

    def parallel(self, var: AnyAxis) -> None:
        """Run a loop on several threads of the CPU.

        Raises:
            StageError: If it is no loop of the stage.
        """
        self._mark("parallel", var)

    def vectorize(self, var: AnyAxis) -> None:
        """Run a loop as lanes of vectors.

        Raises:
            StageError: If it is no loop of the stage.
        """
        self._mark("vectorize", var)

    def unroll(self, var: AnyAxis) -> None:
        """Unroll a loop.

        Raises:
            StageError: If it is no loop of the stage.
        """
        self._mark("unroll", var)

    def pragma(self, var: AnyAxis, pragma_type: str, pragma_value: object = None) -> None:
        """Give passes a hint on a loop.

        Args:
            var: The loop.
            pragma_type: "auto_unroll_max_step", "unroll_explicit" or "parallel_launch_point".
            pragma_value: A number or a text.

        Raises:
            StageError: If it is no loop of the stage, or the pragma is none of those.
        """
        if pragma_type not in _PRAGMAS:
            names = ", ".join(_PRAGMAS)
            raise self.error("pragma", f"there is no pragma {pragma_type!r}; there are: {names}")
        value = pragma_value if isinstance(pragma_value, int | float | str) else 1
        self._mark("pragma", var, (f"pragma_{pragma_type}", value))

    def tensorize(self, var: AnyAxis, tensor_intrin: DeclaredIntrin | str) -> None:
        """Replace the loops from one on by an intrinsic.

        Args:
            var: The outermost loop that the intrinsic replaces.
            tensor_intrin: What `te.decl_tensor_intrin` returned, or the name of one of
                `lw.TensorIntrin`.

        Raises:
            StageError: If it is no loop of the stage, or the other no intrinsic.
        """
        argument: object = tensor_intrin
        if isinstance(argument, str):
            argument = DeclaredIntrin(argument, None, argument)
        if not isinstance(argument, DeclaredIntrin):
            raise self.error(
                "tensorize", f"{argument!r} is no intrinsic: expected te.decl_tensor_intrin(...)"
            )
        self._mark("tensorize", var, argument)

    # Where it is computed, and in which memory

    def compute_at(self, parent: Stage, scope: AnyAxis) -> None:
        """Compute the elements that an iteration of another stage reads inside of its loop.

        Raises:
            StageError: If it is no loop of that stage.
        """
        argument: object = parent
        if not isinstance(argument, Stage):
            raise self.error("compute_at", f"{argument!r} is no stage: expected s[C]")
        if argument is self:
            raise self.error("compute_at", "a stage is not computed under a loop of its own")
        argument.require_loop("compute_at", scope)
        self.location = argument, scope

    def compute_inline(self) -> None:
        """Compute elements where they are read."""
        self.location = "inline"

    def compute_root(self) -> None:
        """Compute the tensors in loops of their own, before the stages that read them."""
        self.location = "root"

    def set_scope(self, scope: str) -> None:
        """Choose the memory of the tensors: "global", "shared", "local", ...

        Raises:
            StageError: If it is no text.
        """
        argument: object = scope
        if not isinstance(argument, str):
            raise self.error("set_scope", f"{argument!r} is no memory: expected a text")
        self.scope = argument

    def storage_align(self, axis: AnyAxis, factor: int, offset: int) -> None:
        """Let the stride of a dimension be `offset` more than a multiple of `factor`.

        Raises:
            StageError: If the axis is no dimension of the operation.
        """
        if self.dimension(axis) is None:
            raise self.error(
                "storage_align", f"{axis!r} is no dimension of {self.name}", "not_found"
            )
        self.alignments.append((axis, factor, offset))

    # Parts

    def dimension(self, axis: AnyAxis) -> int | None:
        """Return the position of an axis among the dimensions of the operation; None if none."""
        return next((n for n, dimension in enumerate(self.axis) if dimension is axis), None)

    def error(self, step: str, reason: str, code: Any = "invalid_argument") -> StageError:
        """Return the error of a step of this stage."""
        return StageError(f"s[{self.name}].{step}", reason, code)

    def _mark(self, kind: MarkKind, axis: AnyAxis, value: object = None) -> None:
        self.require_loop(kind, axis)
        self.marks.append(Mark(kind, axis, value))

    def require_loop(self, step: str, axis: AnyAxis) -> int:
        """Return the position of a loop among those of the stage.

        Raises:
            StageError: If it is none of them.
        """
        for position, leaf in enumerate(self.leaf_iter_vars):
            if leaf is axis:
                return position
        argument: object = axis
        if not isinstance(argument, TensorAxis | ReduceAxis):
            what = f"{argument!r} is no loop"
        elif any(argument is used for used in self._used_up()):
            what = f"{axis_name(argument)} was split or fused"
        else:
            what = f"{axis_name(argument)} is no loop of this stage"
        raise self.error(step, f"{what}; the loops are: {self._loops()}", "not_found")

    def _used_up(self) -> Sequence[AnyAxis]:
        return [
            part
            for done in self.transformations
            if not isinstance(done, Reorder)
            for part in ((done.parent,) if isinstance(done, Split) else done.parts)
        ]

    def _loops(self) -> str:
        return ", ".join(map(axis_name, self.leaf_iter_vars)) or "none"

    def _size(self, step: str, size: object) -> int:
        match size:
            case Value(expr=IntImm(value)):
                number: object = value
            case _:
                number = size
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise self.error(step, f"factor {size!r} is no positive integer")
        return number
