"""Merge consecutive loop nests into one nest: `merge`."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Buffer, Expr, For, Seq, Stmt, Var, seq
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.print_expr import show_expr
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.independence import IterationNest, has_disjoint_iterations
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.rewrite.rebind import rebind
from compiler.schedule.tree.plain_loop import require_plain
from compiler.schedule.tree.tree import Path, extents_of, loop_path, loops_on, replace_at


def merge(func: PrimFunc, loops: Sequence[Var]) -> tuple[PrimFunc, Var]:
    """Merge loops: run their bodies one after another in one loop.

    The loops around them, up to the shared ones, are merged, too. The new nest is at the position
    of the last nest.

    Requires:
        There are at least two loops, in different nests of one sequence of statements. The nests
        are chains of the same number of loops, of the same extents, without annotations or threads.
        An element that one of them writes and another accesses is accessed in the same iteration by
        both, in the order of the given loops. Nothing between the nests accesses it.

    Rewrites:
        for i in range(n):         for i_m in range(n):
            B[i] = f(A[i])   ->        B[i_m] = f(A[i_m])
        for i in range(n):             C[i_m] = g(B[i_m])
            C[i] = g(B[i])

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("merge", func)
    if len(set(loops)) < 2:
        raise refuse("expected at least two different loops to merge", func, "invalid_argument")
    paths = [loop_path(func, var, refuse) for var in loops]
    depth = _common_depth(paths, refuse)
    chains = [_chain(path[depth:], refuse) for path in paths]
    _require_same_extents(chains, refuse)

    first = chains[0]
    merged = [Var(f"{loop.var.name}_m", dtype_of(loop.var)) for loop in first]
    extents = extents_of(loops_on(paths[0][:depth]))
    extents.update((v, extent_or_unknown(f.extent)) for f, v in zip(first, merged, strict=True))
    bodies: list[Stmt] = []
    for chain in chains:
        values: dict[Var, Expr] = {f.var: v for f, v in zip(chain, merged, strict=True)}
        bodies.append(rebind(chain[-1].body, values, extents))
    body = seq(*bodies)
    for loop, var in zip(reversed(first), reversed(merged), strict=True):
        body = For(var, loop.extent, body)

    holder = paths[0][depth - 1]
    assert isinstance(holder, Seq), "the nests are statements of one sequence"
    scope = BlockScope.around(func, paths[0], refuse)
    groups = [[site for site in scope.sites if site.is_under(path[depth])] for path in paths]
    _require_settled(scope, groups, holder)
    nests = [path[depth] for path in paths]
    new = replace_at(func, paths[0][:depth], _with_nest(holder, nests, body))
    path = loop_path(new, merged[-1], refuse)
    new_nest = IterationNest(BlockScope.around(new, path, refuse), loops_on(path)[-len(merged) :])
    _require_independent(new_nest, groups, refuse)
    return new, merged[-1]


def _common_depth(paths: Sequence[Path], refuse: Refuse) -> int:
    """Return the length of the path to the sequence of statements that holds the nests."""
    shortest = min(map(len, paths))
    depth = 0
    while depth < shortest and all(path[depth] is paths[0][depth] for path in paths):
        depth += 1
    if not isinstance(paths[0][depth - 1], Seq) or depth == shortest:
        raise refuse(
            "the loops are not in different nests of one sequence of statements",
            paths[0][-1],
            "structure",
        )
    if len({id(path[depth]) for path in paths}) < len(paths):
        raise refuse("two of the loops are in the same nest", paths[0][-1], "structure")
    return depth


def _chain(path: Path, refuse: Refuse) -> list[For]:
    """Return the loops of a path; refuse a path that is not a chain of loops."""
    chain: list[For] = []
    for stmt in path:
        if not isinstance(stmt, For):
            at = chain[-1] if chain else path[-1]
            raise refuse(f"loop {_last(path).var.name} is not in a chain of loops", at, "structure")
        require_plain(stmt, refuse)
        chain.append(stmt)
    return chain


def _last(path: Path) -> For:
    loop = path[-1]
    assert isinstance(loop, For), "the path leads to a loop"
    return loop


def _require_same_extents(chains: Sequence[Sequence[For]], refuse: Refuse) -> None:
    first = chains[0]
    for chain in chains[1:]:
        if len(chain) != len(first):
            names = f"{first[-1].var.name} and {chain[-1].var.name}"
            raise refuse(
                f"loops {names} are at different depths of their nests", chain[-1], "structure"
            )
        for a, b in zip(first, chain, strict=True):
            if a.extent != b.extent:
                extents = f"{show_expr(a.extent)} and {show_expr(b.extent)}"
                reason = f"loops {a.var.name} and {b.var.name} have different extents: {extents}"
                raise refuse(reason, b, "loop_kind")


def _with_nest(holder: Seq, nests: Sequence[Stmt], body: Stmt) -> Stmt:
    """Return a sequence of statements with one nest in the position of the last of several."""
    last = max(n for n, stmt in enumerate(holder.stmts) if any(stmt is nest for nest in nests))
    remaining = (
        body if n == last else stmt
        for n, stmt in enumerate(holder.stmts)
        if n == last or not any(stmt is nest for nest in nests)
    )
    return seq(*remaining)


def _require_settled(
    scope: BlockScope, groups: Sequence[Sequence[PlacedBlock]], holder: Seq
) -> None:
    """Refuse if nests can't move past the statements between them, or past one another."""
    positions = [next(n for n, s in enumerate(holder.stmts) if g[0].is_under(s)) for g in groups]
    for position, group in zip(positions, groups, strict=True):
        for number, stmt in enumerate(holder.stmts[: max(positions)]):
            if number <= position or number in positions:
                continue
            for other in (site for site in scope.sites if site.is_under(stmt)):
                _require_no_conflict(scope, group, other, "which stands between the loops")
    for number, group in enumerate(groups):
        for earlier in groups[number + 1 :]:
            if positions[number] > positions[groups.index(earlier)]:
                for other in earlier:
                    _require_no_conflict(scope, group, other, "which would come after it")


def _require_no_conflict(
    scope: BlockScope, group: Sequence[PlacedBlock], other: PlacedBlock, which: str
) -> None:
    for site in group:
        for buffer in _shared(site, other):
            reason = f"block {site.name} shares {buffer.name} with block {other.name}, {which}"
            raise scope.refuse(reason, other.realize, "dependence")


def _shared(a: PlacedBlock, b: PlacedBlock) -> list[Buffer]:
    """Return the buffers that one of two blocks writes and the other accesses."""
    written = (*a.facts.written_buffers(), *b.facts.written_buffers())
    return [buffer for buffer in dict.fromkeys(written) if a.touches(buffer) and b.touches(buffer)]


def _require_independent(
    nest: IterationNest, groups: Sequence[Sequence[PlacedBlock]], refuse: Refuse
) -> None:
    """Refuse if an iteration of one body depends on another iteration of another body."""
    for number, group in enumerate(groups):
        for other in (site for later in groups[number + 1 :] for site in later):
            for site in group:
                for buffer in _shared(site, other):
                    if not has_disjoint_iterations(nest, buffer):
                        reason = f"blocks {site.name} and {other.name} share {buffer.name} across"
                        raise refuse(f"{reason} iterations", other.realize, "dependence")
