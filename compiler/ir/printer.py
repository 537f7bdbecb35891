"""Print programs in the script dialect; golden tests and error messages read it.

What is printed parses back to a structurally equal program (`compiler.script.parser`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, TypeGuard, assert_never

from compiler.ir.names import Names, identifier
from compiler.ir.nodes import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    IRModule,
    IterVar,
    Let,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.opaque import OPAQUE
from compiler.ir.print_expr import (
    print_annotation,
    print_annotations,
    print_element,
    print_expr,
    print_region,
    print_tuple,
)
from compiler.ir.spelling import SPELLINGS, Dialect, Spelling
from compiler.ir.visit import walk

Printed: TypeAlias = PrimFunc | Stmt | Buffer | IterVar | BufferRegion | None
Line: TypeAlias = tuple[str, Printed]

_LOOP_CALLS = {
    "serial": "T.serial",
    "parallel": "T.parallel",
    "vectorized": "T.vectorized",
    "unrolled": "T.unroll",
    "thread_binding": "T.thread_binding",
}
_REMAP_LETTERS = {"spatial": "S", "reduce": "R"}


def script(program: PrimFunc | IRModule | Stmt, *, dialect: Dialect = "new") -> str:
    """Print a program; it ends in a newline.

    Args:
        dialect: "new" is today's TVM (`T.sblock`), "middle" the one before (`T.block`,
            `T.alloc_buffer`), "old" that of `T.Buffer[(128, 128), "float32"]`.
    """
    printer = _Printer(SPELLINGS[dialect], merge_loops=True)
    match program:
        case PrimFunc():
            printed = printer.func(program)
        case IRModule():
            printed = printer.module(program)
        case _:
            printed = printer.stmt(program, 0)
    return "".join(f"{line}\n" for line, _ in printed)


def lines(program: PrimFunc | Stmt, *, dialect: Dialect = "new") -> Iterator[Line]:
    """Yield each printed line with the node it prints; each loop has a line of its own."""
    printer = _Printer(SPELLINGS[dialect], merge_loops=False)
    return printer.func(program) if isinstance(program, PrimFunc) else printer.stmt(program, 0)


def mark(program: PrimFunc | Stmt, at: object) -> str:
    """Print a program with `>` before the line of one node, for error messages.

    Args:
        at: A loop, a block or its realisation, a store, or a buffer that is allocated.
    """
    return "\n".join(f"{'>' if _is(node, at) else ' '} {line}" for line, node in lines(program))


def _is(node: Printed, at: object) -> bool:
    return node is not None and (
        node is at or (isinstance(node, BlockRealize) and node.block is at)
    )


class _Printer:
    def __init__(self, spelling: Spelling, *, merge_loops: bool) -> None:
        self._spelling = spelling
        self._merge_loops = merge_loops
        self._names = Names()
        self._loop_extents: dict[Var, Expr] = {}

    def module(self, module: IRModule) -> Iterator[Line]:
        yield "@I.ir_module", None
        yield "class Module:", None
        for number, func in enumerate(module.functions):
            if number:
                yield "", None
            for line, node in _Printer(self._spelling, merge_loops=self._merge_loops).func(func):
                yield f"    {line}" if line else "", node

    def func(self, func: PrimFunc) -> Iterator[Line]:
        params = ", ".join(
            self._param(p) if isinstance(p, Buffer) else f"{self._names.bind(p)}: T.{p.dtype}"
            for p in func.params
        )
        yield "@T.prim_func", None
        yield f"def {identifier(func.name)}({params}):", func
        if func.attrs:
            yield f"    T.func_attr({print_annotations(func.attrs)})", None
        root = func.root
        if root.annotations:
            yield from self.stmt(func.body, 1)
            return
        yield f'    # with {self._spelling.block}("{root.name}"):', func.body
        yield from self._block_body(root, 1)

    def stmt(self, stmt: Stmt, depth: int) -> Iterator[Line]:  # noqa: C901 - one case a node
        indent = "    " * depth
        match stmt:
            case Store(buffer, indices, value):
                element = print_element(self._names[buffer.data], indices, self._names)
                yield f"{indent}{element} = {print_expr(value, self._names)}", stmt
            case Evaluate(value):
                printed = print_expr(value, self._names)
                is_call = isinstance(value, Call) and value.name in OPAQUE
                yield f"{indent}{printed if is_call else f'T.evaluate({printed})'}", stmt
            case Let(var, value, body):
                printed = print_expr(value, self._names)
                name = self._names.bind(var)
                yield f"{indent}{name}: T.let[T.{var.dtype}] = {printed}", stmt
                yield from self.stmt(body, depth)
            case Seq(stmts):
                for s in stmts:
                    yield from self.stmt(s, depth)
            case If(condition, then, otherwise):
                yield f"{indent}if {print_expr(condition, self._names)}:", stmt
                yield from self.stmt(then, depth + 1)
                if otherwise is not None:
                    yield f"{indent}else:", None
                    yield from self.stmt(otherwise, depth + 1)
            case For():
                with self._names.scope():
                    yield from self._loops(stmt, depth)
            case BlockRealize():
                with self._names.scope():
                    yield from self._realize(stmt, depth)
            case Allocate(buffer, body):
                with self._names.scope():
                    shape = self._buffer_arguments(buffer)
                    name = self._names.bind(buffer.data)
                    yield f"{indent}with T.allocate({shape}) as {name}:", stmt
                    yield from self.stmt(body, depth + 1)
            case _:
                assert_never(stmt)

    def _loops(self, loop: For, depth: int) -> Iterator[Line]:
        nest = [loop]
        while self._merge_loops and _is_plain(nest[-1]) and _is_plain(inner := nest[-1].body):
            if _depends_on(inner.extent, nest):
                break
            nest.append(inner)
        if len(nest) > 1:
            extents = ", ".join(print_expr(f.extent, self._names) for f in nest)
            header = f"T.grid({extents})"
        else:
            header = self._loop_call(loop)
        names = ", ".join(self._names.bind(f.var) for f in nest)
        self._loop_extents.update((f.var, f.extent) for f in nest)
        yield f"{'    ' * depth}for {names} in {header}:", loop
        yield from self.stmt(nest[-1].body, depth + 1)

    def _loop_call(self, loop: For) -> str:
        extent = print_expr(loop.extent, self._names)
        if _is_plain(loop):
            return f"range({extent})"
        arguments = [extent]
        if loop.thread is not None:
            arguments.append(f'thread="{loop.thread}"')
        if loop.annotations:
            arguments.append(f"annotations={print_annotations(loop.annotations)}")
        return f"{_LOOP_CALLS[loop.kind]}({', '.join(arguments)})"

    def _realize(self, realize: BlockRealize, depth: int) -> Iterator[Line]:
        block = realize.block
        indent = "    " * (depth + 1)
        yield (
            f"{'    ' * depth}with {self._spelling.block}({print_annotation(block.name)}):",
            realize,
        )
        for line, iter_var in self._axes(realize):
            yield indent + line, iter_var
        if realize.predicate != IntImm(1, "bool"):
            yield f"{indent}T.where({print_expr(realize.predicate, self._names)})", None
        for call, regions in (("T.reads", block.reads), ("T.writes", block.writes)):
            printed = ", ".join(print_region(r, self._names) for r in regions)
            yield f"{indent}{call}({printed})", None
        if block.annotations:
            yield (
                f"{indent}{self._spelling.block_attr}({print_annotations(block.annotations)})",
                None,
            )
        yield from self._block_body(block, depth + 1)

    def _block_body(self, block: Block, depth: int) -> Iterator[Line]:
        indent = "    " * depth
        for buffer in block.alloc_buffers:
            arguments = self._buffer_arguments(buffer)
            name = self._names.bind(buffer.data)
            yield f"{indent}{name} = {self._spelling.alloc_buffer}({arguments})", buffer
        for match in block.match_buffers:
            source = print_region(match.source, self._names)
            arguments = self._buffer_arguments(match.buffer)
            name = self._names.bind(match.buffer.data)
            yield f"{indent}{name} = T.match_buffer({source}, {arguments})", match.buffer
        if block.init is not None:
            yield f"{indent}with T.init():", None
            yield from self.stmt(block.init, depth + 1)
        yield from self.stmt(block.body, depth)

    def _axes(self, realize: BlockRealize) -> Iterator[tuple[str, IterVar]]:
        """Yield the lines that bind iterators; neighbours that are plain loops share a line."""
        # The values are printed first: the iterators are not in their scope.
        values = [print_expr(value, self._names) for value in realize.iter_values]
        run: list[tuple[IterVar, str]] = []
        for iter_var, value, text in zip(
            realize.block.iter_vars, realize.iter_values, values, strict=True
        ):
            if self._is_remap(iter_var, value):
                run.append((iter_var, text))
                continue
            yield from self._remap(run)
            run.clear()
            yield self._axis(iter_var, text), iter_var
        yield from self._remap(run)

    def _is_remap(self, iter_var: IterVar, value: Expr) -> bool:
        return (
            isinstance(value, Var)
            and iter_var.kind in _REMAP_LETTERS
            and self._loop_extents.get(value) == iter_var.extent
        )

    def _remap(self, run: list[tuple[IterVar, str]]) -> Iterator[tuple[str, IterVar]]:
        if len(run) < 2:
            for iter_var, value in run:
                yield self._axis(iter_var, value), iter_var
            return
        names = ", ".join(self._names.bind(iter_var.var) for iter_var, _ in run)
        letters = "".join(_REMAP_LETTERS[iter_var.kind] for iter_var, _ in run)
        loops = ", ".join(value for _, value in run)
        yield f'{names} = T.axis.remap("{letters}", [{loops}])', run[0][0]

    def _axis(self, iter_var: IterVar, value: str) -> str:
        extent = print_expr(iter_var.extent, self._names)
        return f"{self._names.bind(iter_var.var)} = T.axis.{iter_var.kind}({extent}, {value})"

    def _param(self, buffer: Buffer) -> str:
        shape = print_tuple(buffer.shape, self._names)
        arguments = f'{shape}, "{buffer.dtype}"'
        if buffer.scope != "global":
            arguments += f', scope="{buffer.scope}"'
        name = self._names.bind(buffer.data)
        if self._spelling.subscripted_buffer:
            return f"{name}: T.Buffer[{arguments}]"
        return f"{name}: T.Buffer({arguments})"

    def _buffer_arguments(self, buffer: Buffer) -> str:
        arguments = print_tuple(buffer.shape, self._names)
        if buffer.dtype != "float32":
            arguments += f', "{buffer.dtype}"'
        if buffer.scope != "global":
            arguments += f', scope="{buffer.scope}"'
        return arguments


def _is_plain(stmt: Stmt) -> TypeGuard[For]:
    return isinstance(stmt, For) and stmt.kind == "serial" and not stmt.annotations


def _depends_on(extent: Expr, loops: list[For]) -> bool:
    return any(node is loop.var for node in walk(extent) for loop in loops)
