"""Programs that nobody would write: blocks that share loops, depend on each other across
iterations, run in part or several times, or claim iterators to be what they are not.

Schedules must not assume anything of such programs: an accepted primitive keeps the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from compiler.ir.analysis.regions import with_regions
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Compare,
    Expr,
    FloatImm,
    For,
    IntImm,
    IterKind,
    IterVar,
    Load,
    Stmt,
    Store,
    Var,
    make_buffer,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import VerifyError, verify

T = TypeVar("T")
Choose = Callable[[Sequence[Any]], Any]

SIZE = 24


class _Maker:
    """Makes one program; buffers are larger than any index can be."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.params = (
            make_buffer("A", (SIZE,), "float64"),
            make_buffer("X", (SIZE,), "float64"),
            make_buffer("C", (SIZE,), "float64"),
        )
        self.local = (make_buffer("S", (SIZE,), "float64"), make_buffer("U", (SIZE,), "float64"))
        self.num_blocks = 0
        self.num_loops = 0

    def func(self) -> PrimFunc:
        nests = [self.nest({}, 0) for _ in range(self.choose((1, 2, 3)))]
        last = self.copy_out()
        root = Block("root", (), (), (), seq(*nests, last), alloc_buffers=self.local)
        return PrimFunc("main", self.params, BlockRealize((), TRUE, root))

    def nest(self, loops: dict[Var, int], depth: int) -> Stmt:
        var, extent = Var(f"i{self.num_loops}"), self.choose((2, 3, 4))
        self.num_loops += 1
        inside = {**loops, var: extent}
        parts: list[Stmt] = []
        for _ in range(self.choose((1, 1, 1, 2))):
            goes_deeper = depth < 1 and self.choose((True, False))
            parts.append(self.nest(inside, depth + 1) if goes_deeper else self.block(inside))
        return For(var, IntImm(extent), seq(*parts))

    def block(self, loops: dict[Var, int]) -> Stmt:
        iter_vars: list[IterVar] = []
        values: list[Expr] = []
        for number in range(self.choose((1, 2, 2))):
            value, extent = self.value(loops)
            kind: IterKind = self.choose(("spatial", "spatial", "spatial", "reduce"))
            iter_vars.append(IterVar(Var(f"v{number}"), IntImm(extent), kind))
            values.append(value)
        spatial = [i for i in iter_vars if i.kind == "spatial"]
        target = self.choose((*self.local, self.params[2], self.params[1]))
        place = self.index(spatial)
        own = Load(target, (place,))
        other = Load(self.choose((*self.params, *self.local)), (self.index(iter_vars),))
        is_update = len(spatial) < len(iter_vars) or self.choose((False, False, True))
        right: Expr = BinOp(self.choose(("+", "max")), own, other) if is_update else other
        if self.choose((False, True)):
            right = BinOp("+", right, Load(self.params[0], (self.index(iter_vars),)))
        init = None
        if len(spatial) < len(iter_vars) and self.choose((True, True, False)):
            init = Store(target, (place,), FloatImm(0.0, "float64"))
        self.num_blocks += 1
        name = f"b{self.num_blocks}"
        block = Block(name, tuple(iter_vars), (), (), Store(target, (place,), right), init)
        predicate: Expr = TRUE
        if self.choose((*(False,) * 7, True)):
            predicate = Compare("<", next(iter(loops)), IntImm(self.choose((1, 2, 3))))
        return BlockRealize(tuple(values), predicate, with_regions(block))

    def value(self, loops: dict[Var, int]) -> tuple[Expr, int]:
        """Return a value for an iterator, and an extent that holds it."""
        var = self.choose(list(loops))
        extent = loops[var]
        form = self.choose((*("plain",) * 9, "sum", "reversed", "constant", "double"))
        if form == "constant":
            return IntImm(0), self.choose((1, 2))
        if form == "reversed":
            return BinOp("-", IntImm(extent - 1), var), extent
        if form == "double":
            return BinOp("*", var, IntImm(2)), 2 * extent
        if form == "sum":
            other = self.choose(list(loops))
            scale = self.choose((1, loops[other], 2))
            value = BinOp("+", BinOp("*", var, IntImm(scale)), other)
            return simplify(value), scale * (extent - 1) + loops[other]
        return var, extent + self.choose((0, 0, 0, 1))

    def index(self, iter_vars: list[IterVar]) -> Expr:
        if not iter_vars:
            return IntImm(self.choose((0, 1)))
        index: Expr = self.choose(iter_vars).var
        if len(iter_vars) > 1 and self.choose((True, False)):
            scaled = BinOp("*", iter_vars[0].var, IntImm(self.choose((1, 2, 4))))
            index = BinOp("+", scaled, iter_vars[1].var)
        shift = self.choose((0, 0, 0, 1, 2))
        return BinOp("+", index, IntImm(shift)) if shift else index

    def copy_out(self) -> Stmt:
        """Return a nest that copies an otherwise unread buffer to an output."""
        var, iterator = Var("o"), Var("w")
        source: Buffer = self.choose(self.local)
        store = Store(self.params[2], (iterator,), Load(source, (iterator,)))
        block = Block("out", (IterVar(iterator, IntImm(SIZE), "spatial"),), (), (), store)
        return For(var, IntImm(SIZE), BlockRealize((var,), TRUE, with_regions(block)))


def odd_program(choose: Choose) -> PrimFunc | None:
    """Return a legal odd program; None if the generated one is illegal."""
    func = _Maker(choose).func()
    try:
        verify(func)
    except VerifyError:
        return None
    return func
