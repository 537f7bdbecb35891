"""Random programs that are legal by construction: every kind of statement and expression.

Their results have no meaning, but the script dialect and the verifier must accept them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    AnnotationDict,
    Annotations,
    AnnotationValue,
    BinOp,
    Block,
    BlockRealize,
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
    IterVar,
    Let,
    Load,
    Logic,
    MatchBuffer,
    Not,
    Range,
    Select,
    Stmt,
    Store,
    StringImm,
    Var,
    make_buffer,
    seq,
)
from compiler.ir.core.program import PrimFunc

T = TypeVar("T")

EXTENT = 6
_NAMES = ["i", "j", "ax0", "i_1", "A", "v", "T", "for", "x.y", "é", "range"]
_TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
_SCALARS = (
    st.integers(-(2**40), 2**40)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT
)


def _mapping(found: dict[str, AnnotationValue]) -> AnnotationDict:
    # In the order in which mappings are printed: they are read back in that one.
    return AnnotationDict(tuple(sorted(found.items())))


_NOTES = st.recursive(
    _SCALARS,
    lambda note: (
        st.lists(note, max_size=3).map(tuple)
        | st.dictionaries(_TEXT, note, max_size=2).map(_mapping)
    ),
    max_leaves=4,
)
_ANNOTATIONS: SearchStrategy[Annotations] = st.dictionaries(_TEXT, _NOTES, max_size=2).map(
    lambda found: tuple(found.items())
)


@st.composite
def programs(draw: DrawFn) -> PrimFunc:
    """Draw a program."""
    shapes = [(EXTENT,), (EXTENT, EXTENT), ()]
    params = tuple(make_buffer(f"P{n}", shape) for n, shape in enumerate(shapes))
    maker = _Maker(draw, params)
    store = Store(params[0], (IntImm(0),), FloatImm(1.0))
    body = seq(store, *(maker.stmt(3) for _ in range(draw(st.integers(1, 2)))))
    root = Block("root", (), (), (), body, annotations=draw(_ANNOTATIONS))
    return PrimFunc("main", params, BlockRealize((), TRUE, root), draw(_ANNOTATIONS))


@dataclass
class _Maker:
    """Draws nodes that use the variables and buffers in scope."""

    draw: DrawFn
    buffers: tuple[Buffer, ...]
    variables: tuple[Var, ...] = ()
    count: list[int] = field(default_factory=lambda: [0])  # of blocks, shared by all scopes

    def pick(self, *choices: T) -> T:
        return self.draw(st.sampled_from(choices))

    def chance(self) -> bool:
        return self.draw(st.booleans())

    def name(self) -> str:
        return self.pick(*_NAMES)

    # Statements

    def stmt(self, depth: int) -> Stmt:
        if depth == 0:
            return self.store()
        compound = self.pick(
            self.loop, self.sequence, self.choice, self.block, self.local, self.named
        )
        return self.store() if self.chance() else compound(depth - 1)

    def store(self) -> Stmt:
        if self.draw(st.integers(0, 9)) == 0:
            return self.effect()
        buffer = self.pick(*self.buffers)
        return Store(buffer, self.place(buffer), self.real(2))

    def effect(self) -> Stmt:
        if self.chance():
            return Evaluate(Call("tvm_storage_sync", (StringImm("shared"),), "int32"))
        return Evaluate(Call("assume", (self.condition(1),), "bool"))

    def named(self, depth: int) -> Stmt:
        """Bind a value to a name; an index of a buffer stays a valid index."""
        var, value = Var(self.name()), self.index()
        return Let(var, value, replace(self, variables=(*self.variables, var)).stmt(depth))

    def view(self) -> MatchBuffer:
        """Make a view of some elements of a buffer."""
        source = self.pick(*(b for b in self.buffers if b.shape))
        start = self.draw(st.integers(0, EXTENT - 1))
        extents = [self.draw(st.integers(1, EXTENT - start)) for _ in source.shape]
        region = tuple(Range(IntImm(start), IntImm(extent)) for extent in extents)
        buffer = make_buffer(self.name(), tuple(extents), source.dtype, source.scope)
        return MatchBuffer(buffer, BufferRegion(source, region))

    def sequence(self, depth: int) -> Stmt:
        return seq(self.stmt(depth), self.stmt(depth))

    def choice(self, depth: int) -> Stmt:
        then = self.stmt(depth)
        return If(self.condition(2), then, self.stmt(depth) if self.chance() else None)

    def loop(self, depth: int) -> Stmt:
        var = Var(self.name())
        kind = self.pick("serial", "serial", "parallel", "vectorized", "unrolled", "thread_binding")
        body = replace(self, variables=(*self.variables, var)).stmt(depth)
        thread = "threadIdx.x" if kind == "thread_binding" else None
        annotations = self.draw(_ANNOTATIONS) if self.chance() else ()
        extent = IntImm(self.draw(st.integers(1, EXTENT)))
        return For(var, extent, body, kind, thread, annotations)  # type: ignore[arg-type]

    def local(self, depth: int) -> Stmt:
        buffer = make_buffer(self.name(), (EXTENT,), "float32", self.pick("global", "local"))
        first = Store(buffer, (IntImm(0),), FloatImm(0.0))
        body = replace(self, buffers=(*self.buffers, buffer)).stmt(depth)
        return Allocate(buffer, seq(first, body))

    def block(self, depth: int) -> Stmt:
        self.count[0] += 1
        name = f"block{self.count[0]}"
        local = make_buffer(self.name(), (EXTENT,))
        axes = tuple(Var(self.name()) for _ in range(self.draw(st.integers(0, 3))))
        kinds = [self.pick("spatial", "reduce", "opaque", "scan") for _ in axes]
        values = tuple(self.index() if k == "spatial" else IntImm(0) for k in kinds)
        inside = replace(self, variables=(*self.variables, *axes), buffers=(*self.buffers, local))
        whole = tuple(
            BufferRegion(b, tuple(Range(IntImm(0), n) for n in b.shape)) for b in self.buffers
        )
        block = Block(
            name,
            tuple(
                IterVar(v, IntImm(EXTENT), k)  # type: ignore[arg-type]
                for v, k in zip(axes, kinds, strict=True)
            ),
            whole,
            whole,
            seq(Store(local, (IntImm(1),), FloatImm(0.0)), inside.stmt(depth)),
            inside.store() if self.chance() else None,
            (local,),
            self.draw(_ANNOTATIONS) if self.chance() else (),
            (self.view(),) if self.chance() else (),
        )
        return BlockRealize(values, self.condition(1) if self.chance() else TRUE, block)

    # Expressions

    def place(self, buffer: Buffer) -> tuple[Expr, ...]:
        return tuple(self.index() for _ in buffer.shape)

    def index(self) -> Expr:
        """Draw an index from 0 to EXTENT - 1, for all values of the variables."""
        if self.variables and self.chance():
            return self.pick(*self.variables)
        if self.chance():
            return BinOp("%", self.integer(2), IntImm(EXTENT))
        return BinOp("max", BinOp("min", IntImm(EXTENT - 1), self.integer(2)), IntImm(0))

    def integer(self, depth: int) -> Expr:
        if depth == 0:
            if self.variables and self.chance():
                return self.pick(*self.variables)
            return IntImm(self.draw(st.integers(-9, 9)))
        op = self.pick("+", "-", "*", "min", "max", "//", "%")
        positive = op in ("//", "%")
        rhs = IntImm(self.draw(st.integers(1, 9))) if positive else self.integer(depth - 1)
        return BinOp(op, self.integer(depth - 1), rhs)  # type: ignore[arg-type]

    def condition(self, depth: int) -> Expr:
        if depth == 0:
            op = self.pick("==", "!=", "<", "<=", ">", ">=")
            return Compare(op, self.integer(1), self.integer(1))  # type: ignore[arg-type]
        make = self.pick("not", "and", "or", "compare", "literal")
        if make == "not":
            return Not(self.condition(depth - 1))
        if make == "compare":
            return Compare("<", self.real(1), self.real(0))
        if make == "literal":
            return IntImm(int(self.chance()), "bool")
        lhs, rhs = self.condition(depth - 1), self.condition(depth - 1)
        return Logic(make, lhs, rhs)  # type: ignore[arg-type]

    def real(self, depth: int) -> Expr:
        if depth == 0:
            if self.chance():
                return FloatImm(self.draw(st.floats(width=32)))
            buffer = self.pick(*self.buffers)
            return Load(buffer, self.place(buffer))
        lhs, rhs = self.real(depth - 1), self.real(depth - 1)
        match self.draw(st.integers(0, 4)):
            case 0:
                return BinOp(self.pick("+", "-", "*", "/", "min", "max"), lhs, rhs)
            case 1:
                return Call("pow", (lhs, rhs), "float32")
            case 2:
                return Select(self.condition(1), lhs, rhs)
            case 3:
                return Conditional(self.condition(1), lhs, rhs)
            case _:
                return BinOp("+", Cast("float32", self.integer(2)), lhs)
