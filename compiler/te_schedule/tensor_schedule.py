"""`TensorSchedule`: the stages of tensor expressions, as TVM's `te.create_schedule` made them.

    s = te.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], factor=32)
    s[C].vectorize(xi)
    print(lw.lower(s, [A, B, C], simple_mode=True))
    add = lw.build(s, [A, B, C], "llvm", name="add")
    sch = s.to_schedule([A, B, C])  # an `lw.Schedule`: with a trace, and open to more primitives

A stage records its steps. `to_schedule` applies them to the program of the tensors, so one schedule
may be lowered several times, and changed in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, TypeGuard, overload

from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.core.spelling import Dialect
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.te.axis import TensorAxis
from compiler.te.create_prim_func import create_program, needed, parameters_of
from compiler.te.tensor import Compute, Extern, Operation, Placeholder, Scan, Tensor
from compiler.te.value import Variable
from compiler.te_schedule.error import StageError
from compiler.te_schedule.inserted import (
    AnyAxis,
    AnyOperation,
    AnyTensor,
    InsertedOperation,
    InsertedTensor,
    axis_kind,
    axis_name,
    insert,
)
from compiler.te_schedule.insertion import CacheRead, CacheWrite, Insertion, RFactor
from compiler.te_schedule.lower_stages import lower_stages
from compiler.te_schedule.stage import Stage

Readers: TypeAlias = Sequence[AnyTensor | AnyOperation] | AnyTensor | AnyOperation


class TensorSchedule:
    """The stages of some output operations and of all that they need.

    Attributes:
        outputs: The output operations.
        stages: The stages, each after those whose tensors it reads.
    """

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.outputs: tuple[Operation, ...] = tuple(outputs)
        self.stages: list[Stage] = []
        self._stage_of: dict[AnyOperation, Stage] = {}
        self._insertions: list[Insertion] = []
        for op in _operations([tensor for output in outputs for tensor in output.outputs]):
            self._add(op, len(self.stages))

    def __repr__(self) -> str:
        return f"<TensorSchedule: {', '.join(stage.name for stage in self.stages)}>"

    def __getitem__(self, tensor: AnyTensor | AnyOperation) -> Stage:
        """Return the stage of a tensor, or of an operation.

        Raises:
            StageError: If the schedule has none.
        """
        argument: object = tensor
        op = argument.op if isinstance(argument, Tensor | InsertedTensor) else tensor
        stage = self._stage_of.get(op) if _is_operation(op) else None
        if stage is None:
            names = ", ".join(stage.name for stage in self.stages)
            what = getattr(argument, "name", repr(argument))
            raise StageError(
                f"s[{what}]", f"there is no such stage; there are: {names}", "not_found"
            )
        return stage

    # Insertions

    def cache_read(self, tensor: AnyTensor, scope: str, readers: Readers) -> InsertedTensor:
        """Copy a tensor to a memory, from which some stages read it.

        Args:
            tensor: The tensor.
            scope: The memory: "global", "shared", "local", ...
            readers: The tensors or operations whose stages read the copy.

        Returns:
            The copy, which has a stage.

        Raises:
            StageError: If a reader does not read the tensor.
        """
        step = f"s.cache_read({_shown(tensor)})"
        source = self[tensor]
        several = readers if isinstance(readers, Sequence) else [readers]
        stages = [self[reader] for reader in several]
        if not stages:
            raise StageError(step, "expected the tensors that read the copy")
        for reader in stages:
            if not any(read is tensor for read in reader.reads):
                reason = f"{reader.name} does not read {tensor.name}, but"
                names = ", ".join(read.name for read in reader.reads) or "nothing"
                raise StageError(step, f"{reason} {names}")
        (copy,) = insert(f"{tensor.name}_{scope}", (tensor,), _dimensions(tensor))
        stage = self._add(copy.op, self.stages.index(source) + 1, [tensor])
        for reader in stages:
            reader.reads = [copy if read is tensor else read for read in reader.reads]
        self._insertions.append(CacheRead(stage, copy.op, tensor, scope, tuple(stages)))
        return copy

    @overload
    def cache_write(self, tensor: AnyTensor, scope: str) -> InsertedTensor: ...
    @overload
    def cache_write(self, tensor: Sequence[AnyTensor], scope: str) -> list[InsertedTensor]: ...
    def cache_write(
        self, tensor: AnyTensor | Sequence[AnyTensor], scope: str
    ) -> InsertedTensor | list[InsertedTensor]:
        """Compute a tensor in a memory, and copy it from there.

        Args:
            tensor: The tensor, or all outputs of one operation.
            scope: The memory: "global", "local", ...

        Returns:
            The tensor in that memory, whose stage computes; that of `tensor` copies.

        Raises:
            StageError: If it is an input, or its stage was changed before.
        """
        several = list(tensor) if isinstance(tensor, Sequence) else [tensor]
        step = f"s.cache_write({', '.join(map(_shown, several))})"
        if not several:
            raise StageError(step, "expected a tensor, or all outputs of one operation")
        stage = self[several[0]]
        op = stage.op
        if not isinstance(op, Compute | InsertedOperation) or len(op.outputs) != len(several):
            raise StageError(step, "expected all outputs of one operation that te.compute made")
        if stage.transformations or stage.marks:
            reason = f"the loops of {stage.name} were changed before: cache_write comes first"
            raise StageError(step, reason, "structure")
        axis = tuple(TensorAxis(axis_name(a), "spatial", a.extent) for a in op.axis)
        caches = insert(f"{stage.name}_{scope}", tuple(several), axis, op.reduce_axis)
        computing = caches[0].op
        added = self._add(computing, self.stages.index(stage), stage.reads)
        copying = InsertedOperation(stage.name, op.axis, outputs=op.outputs)
        self._replace(stage, copying, caches)
        self._insertions.append(CacheWrite(added, computing, stage, copying, scope))
        return list(caches) if isinstance(tensor, Sequence) else caches[0]

    def rfactor(self, tensor: AnyTensor, axis: AnyAxis, factor_axis: int = 0) -> Any:
        """Reduce for each iteration of a reduction axis, then over it.

        Args:
            tensor: A tensor that is a reduction.
            axis: A loop of its stage, over (a part of) a reduction axis.
            factor_axis: The position of the axis among the dimensions of the partial results.

        Returns:
            The partial results, a tensor with a stage; a list if the reduction has several outputs.

        Raises:
            StageError: If it is no loop of a reduction, or other loops were changed before.
        """
        step = f"s.rfactor({_shown(tensor)}, {axis_name(axis)})"
        stage = self[tensor]
        op = stage.op
        stage.require_loop("rfactor", axis)
        if not isinstance(op, Compute | InsertedOperation) or axis_kind(axis) != "reduce":
            raise StageError(step, f"{axis_name(axis)} is no axis of a reduction", "block_kind")
        ndim = len(op.axis)
        if factor_axis not in range(-ndim - 1, ndim + 1):
            reason = f"factor_axis {factor_axis!r} is not between {-ndim - 1} and {ndim}"
            raise StageError(step, reason)
        spatial = [leaf for leaf in stage.leaf_iter_vars if axis_kind(leaf) != "reduce"]
        if spatial != list(op.axis) or stage.marks:
            reason = f"other loops of {stage.name} were changed before: rfactor comes first"
            raise StageError(step, reason, "structure")
        factored = TensorAxis(axis_name(axis), "spatial")
        dimensions = list(op.axis)
        dimensions.insert(factor_axis % (ndim + 1), factored)
        others = [
            leaf
            for leaf in stage.leaf_iter_vars
            if axis_kind(leaf) == "reduce" and leaf is not axis
        ]
        partials = insert(f"{stage.name}_rf", op.outputs, tuple(dimensions), tuple(others))
        added = self._add(partials[0].op, self.stages.index(stage), stage.reads)
        reduced = TensorAxis(axis_name(axis), "reduce")
        combination = InsertedOperation(stage.name, op.axis, (reduced,), op.outputs)
        self._insertions.append(
            RFactor(
                added,
                partials[0].op,
                stage,
                combination,
                tuple(stage.transformations),
                tuple(stage.leaf_iter_vars),
                axis,
                factored,
                factor_axis,
            )
        )
        self._replace(stage, combination, partials)
        return list(partials) if len(partials) > 1 else partials[0]

    # Lowering

    def to_schedule(
        self, args: Sequence[Tensor | Variable] | None = None, name: str = "main"
    ) -> Schedule:
        """Apply the stages to the program of the tensors, and return its schedule.

        Args:
            args: The parameters of the program: its inputs and outputs, in their order. By default
                the inputs in the order of their use, then the outputs.
            name: The name of the program.

        Raises:
            StageError: If a parameter is neither a tensor nor a variable, if an output is not among
                them, or a stage is computed under a loop that does not exist any more.
            ScheduleError: If a step is not legal for the program.
            ValueError: If an input is not among the parameters.
            VerifyError: If the program is not legal.
        """
        try:
            parameters = parameters_of(self._default_args() if args is None else args)
        except TypeError as error:
            raise StageError("s.to_schedule", str(error)) from error
        for output in (tensor for op in self.outputs for tensor in op.outputs):
            if not any(output is parameter for parameter in parameters):
                reason = f"the output {output.name} is not among the parameters"
                raise StageError("s.to_schedule", reason, "not_found")
        program = create_program(parameters, name)
        return lower_stages(program, self._stage_of, self.stages, self._insertions)

    @property
    def func(self) -> PrimFunc:
        """Return the scheduled program, with the parameters of `to_schedule` by default."""
        return self.to_schedule().func

    @property
    def mod(self) -> IRModule:
        """Return the scheduled program as a module."""
        return self.to_schedule().mod

    @property
    def trace(self) -> Trace:
        """Return the primitives that the stages are lowered to."""
        return self.to_schedule().trace

    def show(self, dialect: Dialect = "new") -> None:
        """Print the scheduled program."""
        self.to_schedule().show(dialect)

    def normalize(self) -> TensorSchedule:
        """Return the schedule: what TVM normalizes here, `to_schedule` decides."""
        return self

    # Parts

    def _add(
        self, op: AnyOperation, position: int, reads: Sequence[AnyTensor] | None = None
    ) -> Stage:
        """Add a stage at a position."""
        if reads is None:
            assert not isinstance(op, InsertedOperation), "the reads of an insertion are given"
            reads = op.inputs
        stage = Stage(op, reads)
        self.stages.insert(position, stage)
        self._stage_of[op] = stage
        return stage

    def _replace(self, stage: Stage, op: InsertedOperation, reads: Sequence[AnyTensor]) -> None:
        """Let a stage compute its tensors by another operation."""
        stage.restart(op, reads)
        self._stage_of[op] = stage

    def _default_args(self) -> list[Tensor]:
        inputs = [t for s in self.stages if isinstance(s.op, Placeholder) for t in s.op.outputs]
        return [*inputs, *(tensor for op in self.outputs for tensor in op.outputs)]


def create_schedule(ops: Sequence[Operation] | Operation) -> TensorSchedule:
    """Make the schedule of one output operation, or of several: `te.create_schedule(C.op)`.

    Raises:
        StageError: If one is no operation, or computes nothing.
    """
    given: object = ops
    outputs: list[Operation] = []
    for item in given if isinstance(given, Sequence) else [given]:
        op: object = item.op if isinstance(item, Tensor) else item
        if not isinstance(op, Compute | Scan | Extern):
            reason = f"{item!r} is no operation that computes a tensor: expected C.op"
            raise StageError("te.create_schedule", reason)
        outputs.append(op)
    if not outputs:
        raise StageError("te.create_schedule", "expected an operation, such as C.op")
    return TensorSchedule(list(dict.fromkeys(outputs)))


def _operations(outputs: Sequence[Tensor]) -> Iterator[Operation]:
    """Yield all operations that some tensors need, each after those that it reads; once each."""
    definitions, _ = needed(outputs)
    seen: set[Operation] = set()
    for definition in definitions:
        states: tuple[Tensor, ...] = ()
        parts: list[Operation] = []
        if isinstance(definition, Scan):
            states = definition.state
            parts = [first.op for first in definition.init]
            parts += definition.steps
        read = (tensor for op in (*parts, definition) for tensor in op.inputs)
        inputs = [
            tensor.op for tensor in read if tensor.definition is None and tensor not in states
        ]
        for op in (*inputs, *parts, definition):
            if op not in seen:
                seen.add(op)
                yield op


def _dimensions(tensor: AnyTensor) -> tuple[TensorAxis, ...]:
    """Return an axis for each dimension of a tensor."""
    extents = (
        [axis.extent for axis in tensor.op.axis]
        if isinstance(tensor, InsertedTensor)
        else list(tensor.buffer.shape)
    )
    return tuple(TensorAxis(f"ax{n}", "spatial", extent) for n, extent in enumerate(extents))


def _is_operation(op: object) -> TypeGuard[AnyOperation]:
    return isinstance(op, Compute | Scan | Extern | Placeholder | InsertedOperation)


def _shown(tensor: object) -> str:
    return str(getattr(tensor, "name", repr(tensor)))
