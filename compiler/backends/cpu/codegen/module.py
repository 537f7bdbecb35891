"""A whole LLVM module: the kernel's entry, its body, and a function a parallel loop.

The entry takes one pointer to 64-bit words: the addresses of the parameters, the address of the
workspace, how many threads to use, and the address of the function that runs a parallel loop on
them. Bodies take buffers as `noalias` arguments, so that the scheduler of instructions may move
loads over stores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.backends.backend import SourceCode
from compiler.backends.cpu.codegen import work
from compiler.backends.cpu.codegen.error import CodegenError
from compiler.backends.cpu.codegen.instructions import Value
from compiler.backends.cpu.codegen.statements import CACHE_LINE_BYTES, StatementEmitter
from compiler.backends.cpu.codegen.threads import SHARE, iterations_at_a_time, share_runtime
from compiler.backends.cpu.codegen.types import scalar_type
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.llvm_calls import LLVM_CALL, is_offered, llvm_function
from compiler.ir.core.nodes import Buffer, Call, For, Load, Stmt, Store, StringImm, Var
from compiler.ir.core.visit import walk
from compiler.passes.cpu.promote_accumulators import register_buffers
from compiler.target.cpu import CpuTarget

ENTRY = "lw_kernel"


@dataclass(slots=True)
class _Unit:
    """What the functions of one module share."""

    target: CpuTarget
    registers: set[Buffer]
    shares: bool = False
    functions: list[str] = field(default_factory=list)
    externals: set[str] = field(default_factory=set)


class FunctionEmitter(StatementEmitter):
    """Emits one function over buffers, and those of the parallel loops in it."""

    def __init__(self, unit: _Unit, is_task: bool) -> None:
        super().__init__(unit.target.vector_bits)
        self.unit = unit
        self.is_task = is_task
        self.registers = unit.registers
        self.has_halves = unit.target.has_halves
        self.has_fma = unit.target.has_fma
        self.features = unit.target.features
        self.has_maximum = unit.target.has_maximum

    def parallel(self, loop: For, extent: int) -> None:
        """Outline the loop's body, and launch it on threads; nested, it runs in its task.

        So does what is too little work for a launch.
        """
        step = iterations_at_a_time(loop, extent)
        if self.is_task or self.unit.target.num_cores == 1 or self._is_small(loop):
            super().parallel(loop, extent)
            return
        name = f"task{len(self.unit.functions)}"
        self.unit.functions.append("")  # keeps the number taken while the task is emitted
        slot = len(self.unit.functions) - 1
        captured = self._captures(loop)
        task = FunctionEmitter(self.unit, is_task=True)
        params = task.capture(self, captured)
        task.streams = self.streams
        task_bytes = task.run_range(loop)
        self.unit.functions[slot] = task.define(name, params, "i64 %begin, i64 %end, i64 %task")
        self.unit.functions.append(_unpack(name, params))
        context = self._context(name, captured, task_bytes)
        task_of = f"ptr @{name}.unpack, i64 {extent}, ptr {context}, i64 %threads"
        if step is None:
            self.do(f"call void %launch({task_of})")
        else:
            self.unit.shares = True
            self.do(f"call void @{SHARE}(ptr %launch, {task_of}, i64 {step})")

    def _is_small(self, loop: For) -> bool:
        count = work.Work(self.extents, self.vector_bits, self.registers)
        return count.of(loop) < work.LAUNCH_INSTRUCTIONS

    def _captures(self, loop: For) -> list[Buffer | Var]:
        buffers = {n.buffer: None for n in walk(loop) if isinstance(n, Load | Store)}
        names = {n: None for n in walk(loop) if isinstance(n, Var) and n in self.env}
        return [
            *(b for b in buffers if b in self.storage),
            *(v for v in names if isinstance(self.env[v], Value)),
        ]

    def capture(self, parent: FunctionEmitter, captured: list[Buffer | Var]) -> list[str]:
        """Bind what the parent knows to the parameters of this function; return them."""
        self.extents = dict(parent.extents)
        self.env = {v: b for v, b in parent.env.items() if not isinstance(b, Value)}
        params = []
        for position, item in enumerate(captured):
            value = Value(f"%arg{position}", 0)
            if isinstance(item, Buffer):
                self.storage[item] = value
                params.append(f"ptr noalias {value.name}")
            else:
                self.env[item] = value
                params.append(f"{_kept_type(item)} {value.name}")
        params.append("ptr %workspace")
        return params

    def run_range(self, loop: For) -> int:
        """Emit the loop from %begin to %end; return the workspace that a task wants."""
        self.rotated(loop, "%begin", "%end")
        self.end_streams()
        return self.workspace.peak_bytes

    def define(self, name: str, params: list[str], more: str = "") -> str:
        """Return the text of the function around what was emitted."""
        self.unit.externals |= self.externals
        level = self.levels[0]
        signature = ", ".join([*params, *([more] if more else [])])
        lines = [
            f"define internal void @{name}({signature}) #0 {{",
            "entry:",
            *self.allocas,
            *level.lines,
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    def _context(self, name: str, captured: list[Buffer | Var], task_bytes: int) -> str:
        """Store what a task needs to know, and return the address of it."""
        space = self.workspace
        offset = space.used_bytes
        space.peak_bytes = max(space.peak_bytes, offset + task_bytes * self.unit.target.num_cores)
        base = self.emit(f"getelementptr inbounds i8, ptr %workspace, i64 {offset}")
        values = [self.storage[c] if isinstance(c, Buffer) else self.env[c] for c in captured]
        context = f"%{self.name('context')}"
        self.allocas.append(f"  {context} = alloca [{len(values) + 2} x i64], align 8")
        words = [
            (v.name, "ptr" if isinstance(c, Buffer) else _kept_type(c))
            for v, c in zip(values, captured, strict=True)
            if isinstance(v, Value)
        ]
        for position, (word, kind) in enumerate([*words, (base, "ptr"), (str(task_bytes), "i64")]):
            slot = self.emit(f"getelementptr inbounds i64, ptr {context}, i64 {position}")
            self.do(f"store {kind} {word}, ptr {slot}")
        return context


def _kept_type(var: Var) -> str:
    """Return the type in which the value of a variable is kept: integers are 64 bits wide."""
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


def emit_module(params: tuple[Buffer, ...], stmt: Stmt, target: CpuTarget) -> SourceCode:
    """Write the module of a lowered program.

    Raises:
        CodegenError: If the program expands to too much code, or the CPU lacks a function of it.
    """
    _check_functions(stmt, target)
    unit = _Unit(target, register_buffers(stmt))
    body = FunctionEmitter(unit, is_task=False)
    arguments = []
    for position, buffer in enumerate(params):
        body.storage[buffer] = Value(f"%arg{position}", 0)
        arguments.append(f"ptr noalias %arg{position}")
    body.run(stmt)
    text = body.define("body", [*arguments, "ptr %workspace", "i64 %threads", "ptr %launch"])
    parts = [
        f'target triple = "{target.triple}"',
        *unit.functions,
        text,
        _entry(len(params)),
        *([share_runtime()] if unit.shares else []),
        *sorted(unit.externals | body.externals),
        f'attributes #0 = {{ nounwind "tune-cpu"="{target.cpu}"'
        f' "prefer-vector-width"="{target.vector_bits}"'
        f' "min-legal-vector-width"="{target.vector_bits}" }}',
        "!0 = !{i32 1}",  # the mark of stores past the caches
    ]
    peak = body.workspace.peak_bytes
    return SourceCode(
        text="\n".join(parts) + "\n",
        workspace_bytes=-(-peak // CACHE_LINE_BYTES) * CACHE_LINE_BYTES,
        num_threads=target.num_cores if unit.functions else 1,
    )


def _check_functions(stmt: Stmt, target: CpuTarget) -> None:
    """Refuse functions of LLVM that need a feature which the CPU lacks.

    Raises:
        CodegenError: Naming the function and the feature.
    """
    for node in walk(stmt):
        match node:
            case Call(name, (StringImm(text), *_), _) if name == LLVM_CALL:
                function = llvm_function(text)
                if not is_offered(function, target.features):
                    needed = str(function.feature).replace("|", " or ")
                    raise CodegenError(f"{text} needs {needed}, which {target.cpu} lacks")
            case _:
                pass


def _entry(num_params: int) -> str:
    lines = [f"define void @{ENTRY}(ptr %args) #0 {{"]
    arguments = []
    kinds = [*["ptr"] * num_params, "ptr", "i64", "ptr"]  # as `body` has them
    for position, kind in enumerate(kinds):
        lines.append(f"  %slot{position} = getelementptr inbounds i64, ptr %args, i64 {position}")
        lines.append(f"  %word{position} = load {kind}, ptr %slot{position}")
        arguments.append(f"{kind} %word{position}")
    lines += [f"  call void @body({', '.join(arguments)})", "  ret void", "}"]
    return "\n".join(lines)
