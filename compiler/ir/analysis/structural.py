"""Compare and hash programs by their meaning, independent of the names of variables.

One encoding serves both: a program becomes a list of words in which a bound variable is the number
of its binder. Function names, the attributes that only repeat them, and the regions of the root
block are omitted. The names of blocks do not count in comparisons, but they count in hashes: traces
find blocks by their names. Operators are compared by programs in which numbers are left open.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import assert_never

from compiler.executor.named_type import named_type
from compiler.ir.analysis.symbols import OF_SYMBOLS, symbolic_vars
from compiler.ir.core.nodes import (
    Allocate,
    AnnotationDict,
    Annotations,
    AnnotationValue,
    BinOp,
    Block,
    BlockRealize,
    Broadcast,
    Buffer,
    BufferRegion,
    Call,
    Cast,
    Compare,
    Conditional,
    Evaluate,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Seq,
    Stmt,
    Store,
    StringImm,
    Var,
    While,
)
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.core.visit import walk

# Attributes that say nothing about the computation: the function's name once more, and that
# parameters do not overlap, which holds for every function here.
IGNORED_ATTRS = frozenset({"global_symbol", "tir.noalias", "tirx.noalias"})


def structural_equal(
    a: PrimFunc | IRModule | Stmt | Expr, b: PrimFunc | IRModule | Stmt | Expr
) -> bool:
    """Return whether two programs are the same up to the names of variables and blocks.

    A variable that is bound outside of the compared parts must be the same object on both sides.

    Raises:
        TypeError: If an argument is not a program, or part of one.
    """
    return _encode(a) == _encode(b)


def structural_hash(program: PrimFunc | IRModule) -> str:
    """Return the SHA-256, in hexadecimal, of what `structural_equal` compares and of block names.

    The hash of a module includes the names of its functions, by which they call each other.

    Raises:
        TypeError: If the argument is neither a function nor a module.
        ValueError: If a function uses a variable that it does not bind.
    """
    encoder = _Encoder(with_block_names=True)
    if isinstance(program, IRModule):
        encoder.module(program)
    elif isinstance(program, PrimFunc):
        encoder.func(program)
    else:
        raise TypeError(f"expected a PrimFunc or an IRModule, got {named_type(program)}")
    if encoder.free:
        name = program.name if isinstance(program, PrimFunc) else "a module"
        raise ValueError(f"variable {encoder.free[0].name} of {name} is not defined")
    return hashlib.sha256("\n".join(encoder.words).encode()).hexdigest()


def operator_hash(func: PrimFunc) -> str:
    """Return a SHA-256, in hexadecimal, that is the same for all shapes of one operator.

    It covers what `structural_equal` compares, except that integers and finite floats other than
    zero count by their types only. So it is independent of shapes, strides, paddings and constants,
    as long as none of them vanishes: `i * 2` and `i * 3` are alike, `i` is not.

    Raises:
        TypeError: If the argument is not a function.
    """
    if not isinstance(func, PrimFunc):
        raise TypeError(f"expected a PrimFunc, got {named_type(func)}")
    encoder = _Encoder(with_numbers=False)
    encoder.func(func)
    return hashlib.sha256("\n".join(encoder.words).encode()).hexdigest()


def _encode(node: PrimFunc | IRModule | Stmt | Expr) -> list[str]:
    encoder = _Encoder()
    match node:
        case PrimFunc():
            encoder.func(node)
        case IRModule():
            encoder.module(node)
        case _ if isinstance(node, Stmt):
            encoder.stmt(node)
        case _ if isinstance(node, Expr):
            encoder.expr(node)
        case _:
            raise TypeError(f"expected a PrimFunc or an IRModule, got {named_type(node)}")
    return encoder.words


class _Encoder:
    """Writes nodes in prefix order; every word sequence has one reading."""

    def __init__(self, *, with_block_names: bool = False, with_numbers: bool = True) -> None:
        self._with_block_names = with_block_names
        self._with_numbers = with_numbers
        self.words: list[str] = []
        self.free: list[Var] = []
        self._numbers: dict[Var, int] = {}
        self._num_bound = 0

    def module(self, module: IRModule) -> None:
        for func in sorted(module.functions, key=lambda f: f.name):
            self._put(func.name)
            self._numbers = {}  # functions may share variables, and each binds its own
            self.func(func)

    def func(self, func: PrimFunc) -> None:
        self._put("func", str(len(func.params)))
        for param in func.params:
            if isinstance(param, Buffer):
                self._bind_buffer(param)
            else:
                self._put("scalar", param.dtype)
                self._bind(param)
        of_symbols = tuple(a for a in func.attrs if a[0] in OF_SYMBOLS)
        named = (*IGNORED_ATTRS, *OF_SYMBOLS)
        self._annotations(tuple(a for a in func.attrs if a[0] not in named))
        if of_symbols and self._with_numbers:
            self._of_symbols(of_symbols, {var.name: var for var in symbolic_vars(func)})
        self._realize(func.body, is_root=True)

    def stmt(self, stmt: Stmt) -> None:  # noqa: C901 - one case a node
        match stmt:
            case Store(buffer, indices, value):
                self._put("store", self._name(buffer.data))
                self._exprs(indices)
                self.expr(value)
            case Evaluate(value):
                self._put("evaluate")
                self.expr(value)
            case Let(var, value, body):
                self._put("let", var.dtype)
                self.expr(value)
                self._bind(var)
                self.stmt(body)
            case Seq(stmts):
                self._put("seq", str(len(stmts)))
                for s in stmts:
                    self.stmt(s)
            case If(condition, then, otherwise):
                self._put("if", "" if otherwise is None else "else")
                self.expr(condition)
                self.stmt(then)
                if otherwise is not None:
                    self.stmt(otherwise)
            case While(condition, body):
                self._put("while")
                self.expr(condition)
                self.stmt(body)
            case For(var, extent, body, kind, thread, annotations):
                self._put("for", kind, thread or "", var.dtype)
                self.expr(extent)
                self._annotations(annotations)
                self._bind(var)
                self.stmt(body)
            case BlockRealize():
                self._realize(stmt)
            case Allocate(buffer, body):
                self._put("allocate")
                self._bind_buffer(buffer)
                self.stmt(body)
            case _:
                assert_never(stmt)

    def expr(self, expr: Expr) -> None:  # noqa: C901
        match expr:
            case Var():
                self._put(self._name(expr))
            case IntImm(value, dtype):
                self._put(dtype, self._integer(int(value), dtype))
            case FloatImm(value, dtype):
                self._put(dtype, self._float(float(value)))
            case StringImm(value):
                self._put("string", repr(value))
            case BinOp(op, lhs, rhs) | Compare(op, lhs, rhs) | Logic(op, lhs, rhs):
                self._put(op)
                self._each(lhs, rhs)
            case Not(value):
                self._put("not")
                self.expr(value)
            case Select(condition, then, otherwise):
                self._put("select")
                self._each(condition, then, otherwise)
            case Conditional(condition, then, otherwise):
                self._put("if_then_else")
                self._each(condition, then, otherwise)
            case Cast(dtype, value):
                self._put("cast", dtype)
                self.expr(value)
            case Call(name, args, dtype):
                self._put("call", name, dtype)
                self._exprs(args)
            case Load(buffer, indices):
                self._put("load", self._name(buffer.data))
                self._exprs(indices)
            case Ramp(base, stride, lanes):
                self._put("ramp", str(stride), str(lanes))
                self.expr(base)
            case Broadcast(value, lanes):
                self._put("broadcast", str(lanes))
                self.expr(value)
            case _:
                assert_never(expr)

    def _realize(self, realize: BlockRealize, *, is_root: bool = False) -> None:
        block = realize.block
        self._put("block", block.name if self._with_block_names else "")
        self._exprs(realize.iter_values)
        self.expr(realize.predicate)
        self._put(str(len(block.iter_vars)))
        for iter_var in block.iter_vars:
            self._put(iter_var.kind, iter_var.var.dtype)
            self.expr(iter_var.extent)
            self._bind(iter_var.var)
        self._block(block, is_root=is_root)

    def _block(self, block: Block, *, is_root: bool) -> None:
        self._annotations(block.annotations)
        self._put(str(len(block.alloc_buffers)))
        for buffer in block.alloc_buffers:
            self._bind_buffer(buffer)
        if not is_root:
            self._regions(block.reads)
            self._regions(block.writes)
        for match in block.match_buffers:
            self._regions((match.source,))
            self._bind_buffer(match.buffer)
        self._put("" if block.init is None else "init")
        if block.init is not None:
            self.stmt(block.init)
        self.stmt(block.body)

    def _regions(self, regions: tuple[BufferRegion, ...]) -> None:
        self._put(str(len(regions)))
        for region in regions:
            self._put(self._name(region.buffer.data), str(len(region.region)))
            for r in region.region:
                self._end(r.minimum)
                self._end(r.extent)

    def _end(self, expr: Expr) -> None:
        """Write an end of a region; for a literal the type has no meaning."""
        if isinstance(expr, IntImm):
            self._put("int32", self._integer(int(expr.value), "int32"))
        else:
            self.expr(expr)

    def _integer(self, value: int, dtype: str) -> str:
        is_open = value != 0 and dtype != "bool" and not self._with_numbers
        return "number" if is_open else str(value)

    def _float(self, value: float) -> str:
        is_open = value != 0 and math.isfinite(value) and not self._with_numbers
        return "number" if is_open else value.hex()

    def _bind_buffer(self, buffer: Buffer) -> None:
        self._put("buffer", buffer.dtype, buffer.scope)
        self._symbols((*buffer.shape, *buffer.strides))
        self._exprs(buffer.shape)
        if buffer.strides or buffer.elem_offset is not None or buffer.offset_factor:
            offset = () if buffer.elem_offset is None else (buffer.elem_offset,)
            self._symbols(offset)
            self._put("strided", str(buffer.offset_factor))
            self._exprs(buffer.strides)
            self._exprs(offset)
        self._bind(buffer.data)

    def _symbols(self, exprs: tuple[Expr, ...]) -> None:
        """Bind the variables that a buffer introduces: extents, strides and its offset."""
        for expr in exprs:
            for node in walk(expr):
                if isinstance(node, Var) and node not in self._numbers:
                    self._put("symbol", node.dtype)
                    self._bind(node)

    def _of_symbols(self, attrs: Annotations, symbols: Mapping[str, Var]) -> None:
        """Write what is declared of symbolic variables, by their binders and not their names."""
        for key, value in sorted(attrs, key=lambda item: item[0]):
            items = value.items if isinstance(value, AnnotationDict) else ()
            entries = sorted(
                (self._name(symbols[name]) if name in symbols else name, repr(bound))
                for name, bound in items
            )
            self._put(key, str(len(entries)), *(word for entry in entries for word in entry))

    def _annotations(self, annotations: Annotations) -> None:
        # A mapping: the order in which its keys were written says nothing.
        self._put(str(len(annotations)))
        for key, value in sorted(annotations, key=lambda item: item[0]):
            self._put(repr(key), _encode_annotation(value))

    def _exprs(self, exprs: tuple[Expr, ...]) -> None:
        self._put(str(len(exprs)))
        self._each(*exprs)

    def _each(self, *exprs: Expr) -> None:
        for expr in exprs:
            self.expr(expr)

    def _put(self, *words: str) -> None:
        self.words.extend(words)

    def _bind(self, var: Var) -> None:
        self._numbers[var] = self._num_bound
        self._num_bound += 1

    def _name(self, var: Var) -> str:
        number = self._numbers.get(var)
        if number is None:
            self.free.append(var)
            return f"free {id(var)}"
        return f"${number}"


def _encode_annotation(value: AnnotationValue) -> str:
    match value:
        case AnnotationDict(items):
            entries = sorted(f"{key!r}: {_encode_annotation(entry)}" for key, entry in items)
            return f"{{{', '.join(entries)}}}"
        case tuple():
            return f"[{', '.join(_encode_annotation(entry) for entry in value)}]"
        case _:
            # The type is part of the value: 1, 1.0 and True mean different things to a pass.
            return repr(value)
