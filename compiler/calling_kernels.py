"""Compile programs that call registered functions: a plan of kernels, and of calls between them.

    for i in range(64):                  part 0: a kernel of A and Y
        Y[i] = A[i] * 2.0
    with T.sblock("sorted"):             a call on Y and Z
        T.reads(Y[0:64])
        T.writes(Z[0:64])
        T.call_packed("my.sort", Y.data, Z.data)
    for i in range(64):                  part 1: a kernel of Z and B
        B[i] = Z[i] + 1.0

The statements between two calls become one kernel, so that schedules may fuse and place them as in
any program. A buffer of one kernel alone stays inside of it; others lie in the workspace.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from compiler.backends.backend import backend_of
from compiler.backends.error import BuildError
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArtifactError
from compiler.executor.functions.call_plan import (
    Arg,
    ArrayArg,
    CallPlan,
    CallStep,
    KernelStep,
    PlanBuffer,
    ValueArg,
    checked_function,
)
from compiler.executor.memory import ALIGNMENT
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.core.library_calls import RegisteredCall, passed_buffers, passed_regions
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Stmt,
    Store,
    StringImm,
    Var,
    seq,
    static_int,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.verify.build_problem import build_problem
from compiler.ir.verify.library_problem import call_of, constant_of, top_statements
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.runtime.kernel_params import params_of
from compiler.schedule.primitives.blocks.call_library import NUM_THREADS
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target


def compile_calls(func: PrimFunc, target: Target, constants: Collection[Buffer] = ()) -> Artifact:
    """Compile a verified program that calls registered functions.

    Raises:
        BuildError: If a function is not registered, a call stands in a loop, the target is no CPU,
            or a kernel between the calls can't be built.
    """
    backend = backend_of(target)
    problem = build_problem(func)
    if not backend.calls_functions:
        problem = f"kernels for {target.name!r} call no registered functions"
    elif constants:
        problem = "a program that calls registered functions takes its constants in each call"
    elif symbolic_vars(func):
        problem = "a program that calls registered functions has constant shapes"
    if problem is not None:
        raise BuildError(f"{func.name}: {problem}", "lowering")
    return _Plan(func, target).artifact()


class _Plan:
    def __init__(self, func: PrimFunc, target: Target) -> None:
        self._func = func
        self._target = target
        self._groups = _grouped(top_statements(func))
        self._shared = _shared(func, self._groups)
        buffers = (*func.buffers, *self._shared)
        self._numbers = {buffer: number for number, buffer in enumerate(buffers)}
        self._has_library = False

    def artifact(self) -> Artifact:
        """Compile the kernels, and return all as one artifact."""
        steps: list[KernelStep | CallStep] = []
        parts: list[Artifact] = []
        for group in self._groups:
            block_and_call = call_of(group[0])
            if block_and_call is not None:
                steps.append(self._call(*block_and_call))
                continue
            part, numbers = self._kernel(group, len(parts))
            steps.append(KernelStep(len(parts), numbers))
            parts.append(part)
        buffers, end = self._placed()
        native = max((int(part.workspace_bytes) for part in parts), default=0)
        library_threads = [self._target.num_cores] if self._has_library else []
        backend, cpu = backend_of(self._target), CpuTarget.of(self._target)
        return Artifact(
            name=self._func.name,
            target=cpu.name,
            triple=cpu.triple,
            features=cpu.features,
            toolchain=backend.toolchain(),
            params=params_of(self._func.params, stored_buffers(self._func.body)),
            workspace_bytes=end + native,
            num_threads=max([part.num_threads for part in parts] + library_threads, default=1),
            code=b"",
            backend=backend.kind,
            pool=next((part.pool for part in parts if part.pool), b""),
            plan=CallPlan(buffers, tuple(steps), end),
            parts=tuple(replace(part, pool=b"") for part in parts),
        )

    def _placed(self) -> tuple[tuple[PlanBuffer, ...], int]:
        """Return all buffers of the plan, and the end of those in the workspace."""
        buffers = [PlanBuffer(static_shape(b), b.dtype) for b in self._func.buffers]
        end = 0
        for buffer in self._shared:
            placed = PlanBuffer(static_shape(buffer), buffer.dtype, end)
            buffers.append(placed)
            end += -(-placed.size_bytes // ALIGNMENT) * ALIGNMENT
        return tuple(buffers), end

    def _call(self, block: Block, call: RegisteredCall) -> CallStep:
        try:
            function = checked_function(self._func.name, call.form, call.function)
        except ArtifactError as error:
            raise BuildError(str(error), "unknown_function") from error
        self._has_library |= function.is_built_in
        regions = dict(passed_regions(block, call))
        args: list[Arg] = []
        for arg, passed in zip(call.args, passed_buffers(block, call), strict=True):
            if isinstance(passed, tuple):
                assert isinstance(arg, Var)
                region = regions[arg]
                assert region is not None, "the program has no problem"
                starts = tuple(static_int(r.minimum) for r in region.region)
                shape = static_shape(passed[0])
                args.append(ArrayArg(self._numbers[region.buffer], starts, shape, passed[1]))
            else:
                args.append(_value(constant_of(passed)))
        threads = dict(block.annotations).get(NUM_THREADS, 0)
        return CallStep(call.form, call.function, tuple(args), _count(threads))

    def _kernel(self, group: Sequence[Stmt], number: int) -> tuple[Artifact, tuple[int, ...]]:
        """Compile the statements between two calls; return the kernel, and the buffers it takes."""
        used = _used(group, self._func)
        params = tuple(buffer for buffer in self._numbers if buffer in used)
        root = replace(
            self._func.root,
            body=seq(*group),
            reads=(),
            writes=(),
            alloc_buffers=tuple(
                b for b in self._func.root.alloc_buffers if b in used and b not in self._numbers
            ),
        )
        name = f"{self._func.name}_part{number}"
        func = PrimFunc(name, params, BlockRealize((), TRUE, root))
        backend = backend_of(self._target)
        written = params_of(params, stored_buffers(func.body))
        part = backend.compile(name, written, backend.emit(func, self._target), self._target)
        return part, tuple(self._numbers[buffer] for buffer in params)


def _grouped(statements: Sequence[Stmt]) -> list[list[Stmt]]:
    """Return the statements with those between two calls together, each call alone."""
    groups: list[list[Stmt]] = []
    for stmt in statements:
        if call_of(stmt) is None and groups and call_of(groups[-1][0]) is None:
            groups[-1].append(stmt)
        else:
            groups.append([stmt])
    return groups


def _shared(func: PrimFunc, groups: Sequence[Sequence[Stmt]]) -> tuple[Buffer, ...]:
    """Return the buffers that the function allocates and several groups, or a call, use."""
    shared: dict[Buffer, None] = {}
    uses = [_used(group, func) for group in groups]
    for buffer in func.root.alloc_buffers:
        users = [group for group, used in zip(groups, uses, strict=True) if buffer in used]
        if len(users) > 1 or any(call_of(group[0]) is not None for group in users):
            if buffer.scope != "global":
                raise BuildError(
                    f"{func.name}: {buffer.name} is in {buffer.scope} memory, and a call of a"
                    " registered function stands between its uses",
                    "lowering",
                )
            shared[buffer] = None
    return tuple(shared)


def _used(group: Sequence[Stmt], func: PrimFunc) -> set[Buffer]:
    """Return the parameters and the allocated buffers of a function that statements use."""
    used: set[Buffer] = set()
    for stmt in group:
        for node in walk(stmt):
            if isinstance(node, Load | Store):
                used.add(node.buffer)
            elif isinstance(node, BlockRealize):
                regions = (*node.block.reads, *node.block.writes)
                used.update(region.buffer for region in regions)
                used.update(match.source.buffer for match in node.block.match_buffers)
    for match in reversed(func.root.match_buffers):  # a view may be one of an earlier view
        if match.buffer in used:
            used.add(match.source.buffer)
    return used & {*func.buffers, *func.root.alloc_buffers}


def _value(arg: Expr) -> ValueArg:
    if isinstance(arg, StringImm):
        return ValueArg(arg.value, "str")
    assert isinstance(arg, IntImm | FloatImm), "the program has no problem"
    return ValueArg(arg.value, arg.dtype)


def _count(number: object) -> int:
    """Return a number of threads; 0 for an annotation that is none."""
    return number if isinstance(number, int) and number > 0 else 0
