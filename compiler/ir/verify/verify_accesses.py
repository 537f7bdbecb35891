"""The check of expressions and accesses; see `compiler.ir.verify.verify`."""

from __future__ import annotations

from collections.abc import Collection

from compiler.ir.analysis.checked_indices import is_loaded
from compiler.ir.arith.facts import Facts
from compiler.ir.arith.overflow import OverflowProblem, check_overflow
from compiler.ir.arith.simplify import simplify
from compiler.ir.arith.vectors import ends
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    Buffer,
    Conditional,
    Expr,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import children, walk
from compiler.ir.text.print_expr import show_expr
from compiler.ir.verify.check_types import TypeProblem, check_types
from compiler.ir.verify.verify_buffers import Declarations
from compiler.ir.verify.verify_error import VerifyError
from compiler.ir.verify.verify_proof import Prover


class Accesses:
    """Checks expressions under the facts at their position.

    Args:
        symbols: The symbolic variables of the program.
        proves_bounds: Whether to prove that accesses are in bounds. A symbolic program may be
            entered without, since sizes that it is specialised to may admit it.
    """

    def __init__(self, symbols: Collection[Var], *, proves_bounds: bool) -> None:
        self.proves_bounds = proves_bounds
        self.symbols = frozenset(symbols)
        self.buffers = Declarations(symbols)
        self.prover = Prover(accepts_all=not proves_bounds)
        # The blocks around the position, with the buffers visible in each, without the root.
        self.blocks: list[tuple[Block, dict[Var, Buffer]]] = []
        self.loaded: set[Var] = set()  # names of values that are loaded from buffers
        self.read: dict[Buffer, object] = {}  # each with the first node that reads it

    def expr(self, expr: Expr, facts: Facts) -> None:
        """Check a whole expression."""
        self._part(expr, facts)
        if facts.is_contradiction or not self.proves_bounds:
            return
        try:
            check_overflow(expr, facts.ranges)
        except OverflowProblem as problem:
            low, high = problem.interval
            raise VerifyError(
                f"{show_expr(problem.part)} runs from {low} to {high}, "
                f"which does not fit into {dtype_of(problem.part)}{self._advice(problem.part)}",
                problem.part,
                "arithmetic",
            ) from None

    def _advice(self, part: Expr) -> str:
        """Return what to do about arithmetic on symbols whose values are too large."""
        names = sorted({n.name for n in walk(part) if isinstance(n, Var) and n in self.symbols})
        if not names:
            return ""
        ranges = ", ".join(f'"{name}": 4096' for name in names)
        return f': declare a smaller range by func.with_attr("tir_var_upper_bound", {{{ranges}}})'

    def _part(self, expr: Expr, facts: Facts) -> None:
        """Check an expression from its leaves up."""
        if isinstance(expr, Var):
            if not (facts.knows(expr) or self.buffers.holds(expr)):
                raise VerifyError(f"variable {expr.name} is not defined here", expr, "undefined")
            return
        if isinstance(expr, Conditional):
            self._part(expr.condition, facts)
            self._part(expr.then, facts.assuming(expr.condition, pure=True))
            self._part(expr.otherwise, facts.assuming(expr.condition, holds=False, pure=True))
            self.types(expr)
            return
        for child in children(expr):
            self._part(child, facts)  # type: ignore[arg-type]
        self.types(expr)
        if isinstance(expr, Load):
            for buffer in self.buffers.all_names(expr.buffer):
                self.read.setdefault(buffer, expr)
            self.access(expr, expr.buffer, expr.indices, facts)
        if isinstance(expr, BinOp):
            self._check_operand(expr)

    def _check_operand(self, expr: BinOp) -> None:
        """Refuse undefined operations: a division by zero, a shift by too many bits."""
        if not isinstance(expr.rhs, IntImm):
            return
        by = expr.rhs.value
        if expr.op in ("//", "%") and by == 0:
            raise VerifyError(f"{show_expr(expr)} divides by zero", expr, "arithmetic")
        most = 8 * size_bytes(dtype_of(expr)) - 1
        if expr.op in ("<<", ">>") and not 0 <= by <= most:
            raise VerifyError(
                f"{show_expr(expr)} shifts by {by} bits: expected 0 to {most}", expr, "arithmetic"
            )

    def types(self, node: Expr | Stmt) -> None:
        """Check that the types of a node's parts agree."""
        try:
            check_types(node)
        except TypeProblem as problem:
            raise VerifyError(str(problem), node, "type") from None

    def access(
        self, node: Load | Store, buffer: Buffer, indices: tuple[Expr, ...], facts: Facts
    ) -> None:
        """Check that an access is in bounds, and in a region that its block declares."""
        self.buffers.use(buffer, node)
        if len(indices) != len(buffer.shape):
            raise VerifyError(
                f"{buffer.name} has {len(buffer.shape)} dimension(s), got {len(indices)} index(es)",
                node,
                "rank",
            )
        if isinstance(node, Store):
            for index in indices:
                self.expr(index, facts)
        for index, extent in zip(indices, buffer.shape, strict=True):
            for end in ends(index) or (index,):
                is_proved = self.prover.is_below(facts, end, extent)
                if not (is_proved or self._is_checked_when_run(node, index)):
                    access = show_expr(Load(buffer, indices))
                    block = f", in block {self.blocks[-1][0].name}" if self.blocks else ""
                    last = simplify(BinOp("-", extent, IntImm(1, dtype_of(extent))))
                    raise VerifyError(
                        f"can't prove that {access} is in bounds: {show_expr(end)} "
                        f"{runs(facts, end)}, the dimension from 0 to {show_expr(last)}{block}",
                        node,
                        "bounds",
                    )
        if self.blocks:
            self._check_declared(node, buffer, indices, facts)

    def _is_checked_when_run(self, node: Load | Store, index: Expr) -> bool:
        """Return whether an index is loaded from a buffer, so that the kernel checks it."""
        if isinstance(node, Store) and lanes_of(index) > 1:
            return False
        return is_loaded(index, self.loaded)

    def _check_declared(
        self, node: Load | Store, buffer: Buffer, indices: tuple[Expr, ...], facts: Facts
    ) -> None:
        """Refuse an access outside of the regions that the enclosing block declares.

        Schedules move blocks by their regions, so a wrong region breaks the program.
        """
        block, outer_buffers = self.blocks[-1]
        if buffer.data not in outer_buffers or facts.is_contradiction or not self.proves_bounds:
            return
        # A block that initialises what it writes need not declare it as read.
        reads = (*block.reads, *block.writes) if block.init is not None else block.reads
        regions = block.writes if isinstance(node, Store) else reads
        if not any(r.buffer == buffer and self.prover.covers(r, indices, facts) for r in regions):
            verb, call = ("writes", "T.writes") if isinstance(node, Store) else ("reads", "T.reads")
            raise VerifyError(
                f"block {block.name} {verb} {show_expr(Load(buffer, indices))}, "
                f"which its {call} does not name",
                node,
                "region",
            )


def runs(facts: Facts, expr: Expr) -> str:
    """Return words for the range of an expression."""
    bounds = facts.bounds(expr)
    return "has no known bounds" if bounds is None else f"runs from {bounds[0]} to {bounds[1]}"
