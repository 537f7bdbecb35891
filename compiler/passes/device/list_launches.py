"""Separate the kernels of a program from the host's loops and conditions around them.

    for t in 3:                            kernel main_kernel(X, t):
        for tx in 32:  # threadIdx.x           X[t + 1, tx] = X[t, tx] * 2
            X[t + 1, tx] = X[t, tx] * 2    launches: t = 0, t = 1, t = 2

A condition of the host moves into its kernels. An iteration of a loop of the host becomes a launch,
with the numbers of the iterations as integer arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Call,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Not,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, walk
from compiler.ir.text.print_expr import show_expr
from compiler.passes.common.error import LoweringError
from compiler.passes.common.realize_blocks import NOTHING
from compiler.passes.device.hoist_axes import axes_around
from compiler.passes.device.kernel import DeviceKernel, DeviceProgram, Launch, tensor_box
from compiler.passes.device.shared_memory import shared_size

# A launch takes a few microseconds: more than this many would dominate any program.
MAX_LAUNCHES = 4096


def list_launches(
    func: PrimFunc, stmt: Stmt, workspaces: tuple[Buffer, ...], shared_offsets: Mapping[Buffer, int]
) -> DeviceProgram:
    """Return the kernels of a lowered program and their launches.

    Args:
        func: The program as it was.
        stmt: The lowered program.
        workspaces: The buffers that it allocates in global memory.
        shared_offsets: The positions of its shared buffers in bytes.

    Raises:
        LoweringError: If the program would need more than `MAX_LAUNCHES` launches, or if the host
            would have to read the memory of the device.
    """
    lister = _Lister(func, workspaces, shared_offsets)
    lister.visit(stmt, {}, ())
    kernels = tuple(lister.kernels.values())
    used = {buffer for kernel in kernels for buffer in kernel.buffers}
    used |= {tensor.buffer for kernel in kernels for tensor in kernel.tensors}
    return DeviceProgram(
        func.buffers,
        tuple(workspace for workspace in workspaces if workspace in used),
        kernels,
        tuple(lister.launches),
    )


@dataclass(slots=True)
class _Lister:
    """Visits the statements of the host in the order in which they run."""

    func: PrimFunc
    workspaces: tuple[Buffer, ...]
    shared_offsets: Mapping[Buffer, int]
    kernels: dict[int, DeviceKernel] = field(default_factory=dict)
    launches: list[Launch] = field(default_factory=list)

    def visit(self, stmt: Stmt, iteration: Mapping[Var, int], around: tuple[If | Let, ...]) -> None:
        """Add the launches of a statement in one iteration of the host's loops around it."""
        match stmt:
            case Seq(stmts):
                for child in stmts:
                    self.visit(child, iteration, around)
            case For(thread=str()):
                self._launch(stmt, iteration, around)
            case For(var, extent, body):
                for index in range(self._number(extent, iteration)):
                    self.visit(body, {**iteration, var: index}, around)
            case If(condition, then, otherwise):
                self._check_unchanged(condition, stmt)
                self.visit(then, iteration, (*around, If(condition, NOTHING)))
                if otherwise is not None:
                    self.visit(otherwise, iteration, (*around, If(Not(condition), NOTHING)))
            case Let(var, value, body):
                self._check_unchanged(value, stmt)
                self.visit(body, iteration, (*around, Let(var, value, NOTHING)))
            case Allocate(body=body):
                self.visit(body, iteration, around)
            case _:
                assert stmt == NOTHING, "kernels hold all statements"

    def _number(self, extent: Expr, iteration: Mapping[Var, int]) -> int:
        values = {var: IntImm(value, dtype_of(var)) for var, value in iteration.items()}
        number = simplify(substitute(extent, values))
        if not isinstance(number, IntImm):
            raise LoweringError(
                f"a loop around a kernel has the extent {show_expr(extent)}, which the host can't "
                "compute: bind a loop outside of it"
            )
        return number.value

    def _check_unchanged(self, expr: Expr, branch: Stmt) -> None:
        """Refuse a condition of several kernels that one of them changes."""
        loaded = {node.buffer for node in walk(expr) if isinstance(node, Load)}
        stored = {node.buffer for node in walk(branch) if isinstance(node, Store)}
        for buffer in loaded & stored:
            raise LoweringError(
                f"a condition around a kernel reads {buffer.name}, which the kernel changes: bind "
                "a loop outside of the condition"
            )

    def _launch(
        self, nest: For, iteration: Mapping[Var, int], around: tuple[If | Let, ...]
    ) -> None:
        if len(self.launches) == MAX_LAUNCHES:
            raise LoweringError(
                f"{self.func.name} would need more than {MAX_LAUNCHES} launches of kernels: bind "
                "a loop further outside"
            )
        kernel = self.kernels.get(id(nest))
        if kernel is None:
            kernel = self.kernels[id(nest)] = self._kernel(nest, tuple(iteration), around)
        scalars = tuple(iteration[var] for var in kernel.scalars)
        self.launches.append(Launch(kernel.name, scalars))

    def _kernel(
        self, nest: For, loops: tuple[Var, ...], around: tuple[If | Let, ...]
    ) -> DeviceKernel:
        axes, body = axes_around(nest)
        for wrapper in reversed(around):
            if isinstance(wrapper, If):
                body = If(wrapper.condition, body)
            else:
                body = Let(wrapper.var, wrapper.value, body)
        nodes = list(walk(body))
        copies = [n for n in nodes if isinstance(n, Call) and n.name == "tensor_copy"]
        fetched = {id(copy.args[1]) for copy in copies}
        accesses = [n for n in nodes if isinstance(n, Load | Store) and id(n) not in fetched]
        names = {node for node in nodes if isinstance(node, Var)} if loops else set()
        unit = {a.var: IntImm(0, dtype_of(a.var)) for a in axes if a.extent == 1}
        touched = {access.buffer for access in accesses}
        number = len(self.kernels)
        offsets = {b: offset for b, offset in self.shared_offsets.items() if b in touched}
        return DeviceKernel(
            name=f"{self.func.name}_kernel" + (f"_{number}" if number else ""),
            axes=tuple(axis for axis in axes if axis.extent > 1),
            buffers=tuple(b for b in (*self.func.buffers, *self.workspaces) if b in touched),
            written=frozenset(
                access.buffer
                for access in accesses
                if isinstance(access, Store) and access.buffer.scope == "global"
            ),
            scalars=tuple(var for var in loops if var in names),
            body=substitute(body, unit),
            shared_offsets=offsets,
            shared_bytes=shared_size(offsets),
            tensors=tuple(dict.fromkeys(map(tensor_box, copies))),
        )
