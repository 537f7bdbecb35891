"""One function of a module, and the functions that its parallel loops run on threads.

A task, the body of a parallel loop, becomes two functions:

    @task0(buffers..., %workspace, %begin, %end, %task)    runs the iterations %begin, ..., %end - 1
    @task0.unpack(%begin, %end, %task, %context)           reads the arguments from %context, picks
                                                           the task's workspace, and calls @task0

The launching function stores what the task captures, the address of the workspace and the size of
one task's part of it into %context, an array on its stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.backends.cpu.codegen import instruction_estimate
from compiler.backends.cpu.codegen.emitters.expressions import Expressions
from compiler.backends.cpu.codegen.emitters.scope import CodeScope
from compiler.backends.cpu.codegen.emitters.statements import Statements
from compiler.backends.cpu.codegen.emitters.stores import Stores
from compiler.backends.cpu.codegen.instruction_estimate import InstructionEstimate
from compiler.backends.cpu.codegen.text.builder import CodeBuilder
from compiler.backends.cpu.codegen.text.frame import Frame
from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue
from compiler.backends.cpu.codegen.text.types import scalar_type
from compiler.backends.cpu.codegen.threads.dynamic_partition import (
    DYNAMIC_LAUNCH,
    iterations_at_a_time,
)
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.nodes import BinOp, Buffer, Expr, For, IntImm, Load, Stmt, Store, Var
from compiler.ir.core.visit import walk
from compiler.target.cpu import CpuTarget


@dataclass(slots=True)
class ModuleState:
    """The state that the functions of one module share.

    Attributes:
        target: The CPU.
        registers: The local buffers that LLVM's SROA turns into registers.
        small: The buffers that hold only integers from 0 to 127.
        has_dynamic_launch: Whether threads fetch the iterations of a loop on demand.
        functions: The text of the tasks.
        externals: The declarations of the functions that the tasks call.
    """

    target: CpuTarget
    registers: set[Buffer]
    small: frozenset[Buffer] = frozenset()
    has_dynamic_launch: bool = False
    functions: list[str] = field(default_factory=list)
    externals: set[str] = field(default_factory=set)


class FunctionEmitter:
    """Emits one function over buffers, and those of the parallel loops in it."""

    def __init__(self, module: ModuleState, *, is_task: bool) -> None:
        self._module = module
        self._is_task = is_task
        target = module.target
        self._builder = CodeBuilder()
        self._instructions = Instructions(self._builder)
        self._scope = CodeScope(module.registers)
        self._expressions = Expressions(self._instructions, self._scope, target, module.small)
        self._stores = Stores(self._instructions, self._scope, self._expressions)
        self._frame = Frame(self._builder, self._expressions.integer)
        self._vector_bits = target.vector_bits
        self._statements = Statements(
            self._instructions,
            self._scope,
            self._expressions,
            self._stores,
            self._frame,
            target=target,
            launch=self._launch,
        )

    @property
    def workspace_bytes(self) -> Expr:
        """Return the peak workspace of the statements emitted so far."""
        return self._frame.peak_bytes

    def bind_parameters(self, params: tuple[Buffer | Var, ...]) -> list[str]:
        """Bind buffers and symbolic variables to the function's first parameters; return these."""
        return [self._bind(param, position) for position, param in enumerate(params)]

    def _bind(self, param: Buffer | Var, position: int) -> str:
        value = RegisterValue(f"%arg{position}", 0)
        if isinstance(param, Buffer):
            self._scope.storage[param] = value
            return f"ptr noalias {value.name}"
        self._scope.env[param] = value
        return f"{register_type(param)} {value.name}"

    def run(self, stmt: Stmt) -> None:
        """Emit a statement at the end of the function."""
        self._statements.run(stmt)

    def define(self, name: str, params: list[str]) -> str:
        """Return the text of the function, which is complete."""
        self._module.externals |= self._instructions.externals | self._frame.externals
        lines = [
            f"define internal void @{name}({', '.join(params)}) #0 {{",
            "entry:",
            *self._frame.allocas,
            *self._builder.levels[0].lines,
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    # --- parallel loops ---------------------------------------------------------------------------

    def _launch(self, loop: For, extent: int | RegisterValue) -> bool:
        """Launch a loop on threads, its body a function of its own.

        If its extent is not constant, the kernel decides whether it has enough work for threads.

        Returns:
            False if it should run inline: in a task, on one core, or as too little work.
        """
        module = self._module
        step = iterations_at_a_time(loop)
        work = self._work(loop)
        if (
            self._is_task
            or module.target.num_cores == 1
            or work < instruction_estimate.LAUNCH_INSTRUCTIONS
        ):
            return False
        slot = len(module.functions)
        name = f"task{slot}"
        module.functions.append("")  # reserves the number while the task is emitted
        captured = self._captured(loop)
        task = FunctionEmitter(module, is_task=True)
        params = task._capture(self, captured)
        task._stores.streams = self._stores.streams
        task._statements.run_range(loop, "%begin", "%end")
        task._stores.end_streams()
        module.functions[slot] = task.define(name, [*params, "i64 %begin", "i64 %end", "i64 %task"])
        module.functions.append(_unpack(name, params))
        context = self._context(captured, task.workspace_bytes)
        threads = self._threads(loop, extent)
        count = extent if isinstance(extent, int) else extent.name
        operands = f"ptr @{name}.unpack, i64 {count}, ptr {context}, i64 {threads}"
        if step is None:
            self._builder.emit_void(f"call void %launch({operands})")
        else:
            module.has_dynamic_launch = True
            text = f"call void @{DYNAMIC_LAUNCH}(ptr %launch, {operands}, i64 {step})"
            self._builder.emit_void(text)
        return True

    def _work(self, stmt: Stmt) -> int:
        scope = self._scope
        estimate = InstructionEstimate(scope.extents, self._vector_bits, scope.registers)
        return estimate.count(stmt)

    def _threads(self, loop: For, extent: int | RegisterValue) -> str:
        """Return the number of threads of a launch: one for few iterations of little work."""
        if isinstance(extent, int):
            return "%threads"
        least = -(-instruction_estimate.LAUNCH_INSTRUCTIONS // max(self._work(loop.body), 1))
        instructions = self._instructions
        is_small = instructions.icmp("slt", "i64", extent, RegisterValue(str(least), 0))
        one, all_threads = RegisterValue("1", 0), RegisterValue("%threads", 0)
        return instructions.select("i64", is_small, one, all_threads).name

    def _captured(self, loop: For) -> list[Buffer | Var]:
        """Return the buffers and variables of a loop that have registers in this function."""
        scope = self._scope
        buffers = {n.buffer: None for n in walk(loop) if isinstance(n, Load | Store)}
        variables = {n: None for n in walk(loop) if isinstance(n, Var) and n in scope.env}
        # The strides of buffers, and the sizes of those that are allocated, depend on symbols.
        variables |= {n: None for n in scope.env if n.limits is not None}
        return [
            *(b for b in buffers if b in scope.storage),
            *(v for v in variables if isinstance(scope.env[v], RegisterValue)),
        ]

    def _capture(self, parent: FunctionEmitter, captured: list[Buffer | Var]) -> list[str]:
        """Bind what the parent captured to the parameters of this function; return these."""
        scope, outer = self._scope, parent._scope
        scope.extents = dict(outer.extents)
        scope.env = {v: b for v, b in outer.env.items() if not isinstance(b, RegisterValue)}
        return [*self.bind_parameters(tuple(captured)), "ptr %workspace"]

    def _context(self, captured: list[Buffer | Var], task_bytes: Expr) -> str:
        """Store the arguments of a task into an array; return the array's address."""
        frame, scope = self._frame, self._scope
        frame.reserve(BinOp("*", task_bytes, IntImm(self._module.target.num_cores)))
        workspace = self._builder.emit(frame.end_of_workspace()[0])
        size = self._expressions.integer(task_bytes).name
        values = [scope.storage[c] if isinstance(c, Buffer) else scope.env[c] for c in captured]
        context = frame.allocate_on_stack(len(values) + 2, "i64", 8, "context")
        words = [
            (value.name, "ptr" if isinstance(c, Buffer) else register_type(c))
            for value, c in zip(values, captured, strict=True)
            if isinstance(value, RegisterValue)
        ]
        words += [(workspace, "ptr"), (size, "i64")]
        for position, (word, kind) in enumerate(words):
            text = f"getelementptr inbounds i64, ptr {context}, i64 {position}"
            self._builder.emit_void(f"store {kind} {word}, ptr {self._builder.emit(text)}")
        return context


def register_type(var: Var) -> str:
    """Return the LLVM type of a variable's register: integers are 64 bits wide."""
    assert var.dtype != "handle", "buffers are captured by their addresses"
    return "i64" if is_integer(var.dtype) else scalar_type(var.dtype)


def _unpack(name: str, params: list[str]) -> str:
    """Return the function that a thread calls: it reads what the parent captured."""
    lines = [
        f"define internal void @{name}.unpack(i64 %begin, i64 %end, i64 %task, ptr %context) #0 {{"
    ]
    arguments = []
    for position, param in enumerate([*params, "i64 %size"]):
        kind, register = param.split()[0], param.split()[-1]
        lines.append(
            f"  %slot{position} = getelementptr inbounds i64, ptr %context, i64 {position}"
        )
        lines.append(f"  {register} = load {kind}, ptr %slot{position}")
        arguments.append(f"{kind} {register}")
    lines += [
        "  %offset = mul i64 %task, %size",
        "  %own = getelementptr inbounds i8, ptr %workspace, i64 %offset",
        f"  call void @{name}({', '.join([*arguments[:-2], 'ptr %own'])},"
        " i64 %begin, i64 %end, i64 %task)",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)
