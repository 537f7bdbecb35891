"""Print programs in the script dialect; golden tests and error messages use it.

The text parses back to a structurally equal program (`compiler.script.parser`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, TypeGuard, assert_never

from compiler.ir.core.function_calls import called_function
from compiler.ir.core.nodes import (
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
    IterVar,
    Let,
    MatchBuffer,
    Seq,
    Stmt,
    Store,
    Var,
    While,
)
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.core.spelling import Dialect, Spelling, spelling_of
from compiler.ir.core.visit import walk, walk_stmts
from compiler.ir.text.names import MODULE_NAME, Names
from compiler.ir.text.print_buffer import name_strides, print_buffer, symbols_of
from compiler.ir.text.print_expr import (
    print_annotation,
    print_annotations,
    print_expr,
    print_region,
    print_target,
)
from compiler.ir.text.print_signature import Signature, print_signature

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
        dialect: "new" is that of current TVM (`T.sblock`), "middle" the previous one (`T.block`,
            `T.alloc_buffer`), "old" that of `T.Buffer[(128, 128), "float32"]`.
    """
    printer = _Printer(spelling_of(dialect), merge_loops=True)
    match program:
        case PrimFunc():
            printed = printer.func(program)
        case IRModule():
            printed = printer.module(program)
        case _:
            printed = printer.stmt(program, 0)
    return "".join(f"{line}\n" for line, _ in printed)


def lines(program: PrimFunc | Stmt, *, dialect: Dialect = "new") -> Iterator[Line]:
    """Yield each printed line with the node it prints; each loop gets a separate line."""
    printer = _Printer(spelling_of(dialect), merge_loops=False)
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
        printed = [
            (func, _Printer(self._spelling, merge_loops=self._merge_loops))
            for func in module.functions
        ]
        heads = [print_signature(func, p._names, self._spelling) for func, p in printed]
        # Functions share the names of type variables, which are declared above the module.
        for line in dict.fromkeys(line for head in heads for line in head.above):
            yield line, None
        yield "@I.ir_module", None
        yield f"class {MODULE_NAME}:", None
        for number, ((func, printer), head) in enumerate(zip(printed, heads, strict=True)):
            if number:
                yield "", None
            for line, node in printer.after(head, func):
                yield f"    {line}" if line else "", node

    def func(self, func: PrimFunc) -> Iterator[Line]:
        head = print_signature(func, self._names, self._spelling)
        for line in head.above:
            yield line, None
        yield from self.after(head, func)

    def after(self, head: Signature, func: PrimFunc) -> Iterator[Line]:
        """Yield the lines of a function from its decorator on."""
        yield f"@{self._spelling.prim_func}", None
        yield head.head, func
        for line in head.below:
            yield f"    {line}", None
        root = func.root
        if _is_written_out(root):
            yield from self.stmt(func.body, 1)
            return
        if root.alloc_buffers or any(isinstance(s, BlockRealize) for s in walk_stmts(root.body)):
            yield f'    # with {self._spelling.block}("{root.name}"):', func.body
        yield from self._block_body(root, 1)

    def stmt(self, stmt: Stmt, depth: int) -> Iterator[Line]:  # noqa: C901 - one case a node
        indent = "    " * depth
        match stmt:
            case Store(buffer, indices, value):
                element = print_target(self._names[buffer.data], indices, self._names)
                yield f"{indent}{element} = {print_expr(value, self._names)}", stmt
            case Evaluate(value):
                printed = print_expr(value, self._names)
                is_call = called_function(stmt) is not None or (
                    isinstance(value, Call) and printed.startswith(f"T.{value.name}(")
                )
                yield f"{indent}{printed if is_call else f'T.evaluate({printed})'}", stmt
            case Let(var, value, body):
                printed = print_expr(value, self._names)
                name = self._names.bind(var)
                yield (
                    f"{indent}{name}: {self._spelling.let.format(dtype=var.dtype)} = {printed}",
                    stmt,
                )
                yield from self.stmt(body, depth)
            case Seq(stmts):
                for s in stmts[:-1]:
                    yield from self._let(s, depth) if isinstance(s, Let) else self.stmt(s, depth)
                yield from self.stmt(stmts[-1], depth)
            case If():
                yield from self._branches(stmt, depth, "if")
            case While(condition, body):
                yield f"{indent}while {print_expr(condition, self._names)}:", stmt
                with self._names.scope():
                    yield from self.stmt(body, depth + 1)
            case For():
                with self._names.scope():
                    yield from self._loops(stmt, depth)
            case BlockRealize():
                with self._names.scope():
                    yield from self._realize(stmt, depth)
            case Allocate(buffer, body):
                with self._names.scope():
                    shape = print_buffer(buffer, self._names)
                    name = self._names.bind(buffer.data)
                    yield f"{indent}with T.allocate({shape}) as {name}:", stmt
                    yield from self.stmt(body, depth + 1)
            case _:
                assert_never(stmt)

    def _let(self, let: Let, depth: int) -> Iterator[Line]:
        """Yield the lines of a value whose scope ends before the statements after it."""
        value = print_expr(let.value, self._names)
        with self._names.scope():
            name = self._names.bind(let.var)
            call = self._spelling.with_let.format(name=name, value=value)
            yield f"{'    ' * depth}with {call}:", let
            yield from self.stmt(let.body, depth + 1)

    def _branches(self, stmt: If, depth: int, keyword: str) -> Iterator[Line]:
        indent = "    " * depth
        yield f"{indent}{keyword} {print_expr(stmt.condition, self._names)}:", stmt
        yield from self.stmt(stmt.then, depth + 1)
        if isinstance(stmt.otherwise, If):
            yield from self._branches(stmt.otherwise, depth, "elif")
        elif stmt.otherwise is not None:
            yield f"{indent}else:", None
            yield from self.stmt(stmt.otherwise, depth + 1)

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
            arguments = print_buffer(buffer, self._names)
            name = self._names.bind(buffer.data)
            yield f"{indent}{name} = {self._spelling.alloc_buffer}({arguments})", buffer
        for match in block.match_buffers:
            yield from self._match(match, indent)
        if block.init is not None:
            yield f"{indent}with T.init():", None
            yield from self.stmt(block.init, depth + 1)
        yield from self.stmt(block.body, depth)

    def _match(self, match: MatchBuffer, indent: str) -> Iterator[Line]:
        buffer = match.buffer
        source = print_region(match.source, self._names)
        offset = () if buffer.elem_offset is None else (buffer.elem_offset,)
        for var in dict.fromkeys(symbols_of((*buffer.strides, *offset))):
            # Declare the variables that the match binds; an int32 stride is declared by its string.
            if var not in self._names and (var in offset or var.dtype != "int32"):
                yield f"{indent}{self._names.bind(var)} = T.{var.dtype}()", None
        arguments = print_buffer(buffer, self._names)
        name = self._names.bind(buffer.data)
        name_strides(buffer, self._names)
        yield f"{indent}{name} = T.match_buffer({source}, {arguments})", buffer

    def _axes(self, realize: BlockRealize) -> Iterator[tuple[str, IterVar]]:
        """Yield the lines that bind iterators; adjacent iterators over plain loops share a line."""
        # Print the values first, because the iterators are not in their scope.
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


def _is_written_out(root: Block) -> bool:
    """Return whether to print the root as a block: a text without it may be another program."""
    return bool(
        root.name != "root"
        or root.annotations
        or root.match_buffers
        # The parser takes a single block for the root, unless it has iterators.
        or (
            not root.alloc_buffers
            and isinstance(root.body, BlockRealize)
            and not root.body.iter_values
        )
    )


def _is_plain(stmt: Stmt) -> TypeGuard[For]:
    return isinstance(stmt, For) and stmt.kind == "serial" and not stmt.annotations


def _depends_on(extent: Expr, loops: list[For]) -> bool:
    return any(node is loop.var for node in walk(extent) for loop in loops)
