"""Parse blocks: the head (axes, predicate, regions, buffers, initialisation) and the body."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from compiler.ir.analysis.regions import with_regions
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    Annotations,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Expr,
    IntImm,
    IterKind,
    IterVar,
    MatchBuffer,
    Stmt,
    Var,
)
from compiler.ir.core.promotion import converted
from compiler.script.arguments import bind, literal_dict, string
from compiler.script.buffers import ALLOCATIONS, allocation, check_regions, match, regions
from compiler.script.context import BlockAxis, Context, call_name
from compiler.script.error import near
from compiler.script.expressions import condition, index, interval
from compiler.script.extents import extent_of
from compiler.script.symbols import declare_symbol

BLOCKS = frozenset({"block", "sblock"})
Body: TypeAlias = Callable[[Context, Sequence[ast.stmt], ast.AST], Stmt]

_AXES: dict[str, IterKind] = {
    "R": "reduce",
    "S": "spatial",
    "opaque": "opaque",
    "reduce": "reduce",
    "scan": "scan",
    "spatial": "spatial",
}
_REMAP_LETTERS: dict[str, IterKind] = {"S": "spatial", "R": "reduce", "O": "opaque"}
AXES = (*_AXES, "remap")
HEAD_CALLS = frozenset({"where", "reads", "writes", "block_attr", "sblock_attr"})


def block(context: Context, node: ast.With, body: Body) -> BlockRealize:
    """Parse `with T.sblock("C"):` and its body; `body` parses the statements.

    Raises:
        ScriptError: If the statement is not a block of the dialect.
    """
    name = _name(context, node)
    if name == "root":
        raise context.error(
            'block "root" is the whole function: it must be the only statement of a function',
            node.items[0].context_expr,
        )
    with context.scope():
        head = _Head(context)
        computation = head.take_all(node.body)
        return context.at(head.realize(name, computation, body, node), node)


def root(
    context: Context, statements: Sequence[ast.stmt], body: Body, origin: ast.AST
) -> BlockRealize:
    """Parse the body of a function: the block "root", explicit or implied.

    Raises:
        ScriptError: If the body is not legal in the dialect.
    """
    name = "root"
    if len(statements) == 1 and _is_root(only := statements[0]):
        assert isinstance(only, ast.With)
        name = _name(context, only)
        statements, origin = only.body, only
    head = _Head(context)
    computation = head.take_all(statements)
    if head.iter_vars or head.predicate is not None or head.init is not None:
        raise context.error("the whole function has no axes, no predicate and no T.init", origin)
    root_block = head.block(name, body(context, computation, origin), origin)
    return BlockRealize((), TRUE, context.at(root_block, origin))


def is_block(node: ast.stmt) -> bool:
    """Return whether a statement is a block."""
    return isinstance(node, ast.With) and call_name(node.items[0].context_expr) in BLOCKS


def _is_root(node: ast.stmt) -> bool:
    """Return whether the only statement of a function is its explicit root.

    The root is a block without iterators. A block with iterators has an implied root around it.
    """
    if not is_block(node):
        return False
    assert isinstance(node, ast.With)
    return not any(_belongs_to_no_root(statement) for statement in node.body)


def _belongs_to_no_root(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(value=value):
            return (call_name(value) or "").startswith("axis.")
        case ast.Expr(value=value):
            return call_name(value) == "where"
        case ast.With(items=[ast.withitem(context_expr=value)]):
            return call_name(value) == "init"
        case _:
            return False


def _name(context: Context, node: ast.With) -> str:
    call = node.items[0].context_expr
    assert isinstance(call, ast.Call)
    if node.items[0].optional_vars is not None:
        raise context.error(
            "a block takes its name from its argument: leave out `as`", node.items[0].optional_vars
        )
    name_argument = bind(context, call, (), ("name", "no_realize", "exec_scope")).get("name")
    return "" if name_argument is None else string(context, name_argument, "a block's name")


class _Head:
    """The head of a block: everything before its computation."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.iter_vars: list[IterVar] = []
        self.predicate: Expr | None = None
        self.init: ast.With | None = None
        self._values: list[Expr] = []
        self._reads: tuple[BufferRegion, ...] | None = None
        self._writes: tuple[BufferRegion, ...] | None = None
        self._annotations: Annotations = ()
        self._buffers: list[Buffer] = []
        self._matches: list[MatchBuffer] = []

    def take_all(self, statements: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
        """Parse the statements that belong to the head; return the others."""
        for number, statement in enumerate(statements):
            if not self._take(statement):
                return [s for s in statements[number:] if not self._take_late(s)]
        return []

    def _take_late(self, statement: ast.stmt) -> bool:
        """Take an allocation that stands between statements; it belongs to the whole block."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=ast.Call() as call) if (
                call_name(call) == "sblock_alloc_buffer"
            ):
                if self._context.get(name) is not None:
                    reason = f"{name} is defined already: a buffer needs a name of its own"
                    raise self._context.error(reason, target, code="duplicate")
                self._buffers.append(allocation(self._context, statement))
                return True
            case _:
                return False

    def realize(
        self, name: str, computation: Sequence[ast.stmt], body: Body, origin: ast.AST
    ) -> BlockRealize:
        """Parse the rest, which is the computation, and build the block."""
        init = None
        outer, self._context.block_buffers = self._context.block_buffers, self._buffers
        if self.init is not None:
            with self._context.scope():
                init = body(self._context, self.init.body, self.init)
        inner = body(self._context, computation, origin)
        self._context.block_buffers = outer
        computed = self.block(name, inner, origin, init, is_root=False)
        predicate = TRUE if self.predicate is None else self.predicate
        return BlockRealize(tuple(self._values), predicate, self._context.at(computed, origin))

    def block(
        self,
        name: str,
        body: Stmt,
        origin: ast.AST,
        init: Stmt | None = None,
        *,
        is_root: bool = True,
    ) -> Block:
        """Build the block; infer regions that the text does not give from the body."""
        plain = Block(
            name,
            tuple(self.iter_vars),
            self._reads or (),
            self._writes or (),
            body,
            init,
            tuple(self._buffers),
            self._annotations,
            tuple(self._matches),
        )
        if is_root or (self._reads is not None and self._writes is not None):
            return plain
        derived_block = with_regions(plain)
        for derived in (derived_block.reads, derived_block.writes):
            check_regions(self._context, len(derived), origin)
        return replace(
            plain,
            reads=derived_block.reads if self._reads is None else self._reads,
            writes=derived_block.writes if self._writes is None else self._writes,
        )

    def _take(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                return True  # a docstring
            case ast.Assign(value=ast.Call() as call) if call_name(call) in ALLOCATIONS:
                self._buffers.append(allocation(self._context, statement))
            case ast.Assign(targets=[target], value=ast.Call() as call) if (
                call_name(call) == "match_buffer"
            ):
                view = match(self._context, target, call)
                self._matches.append(self._context.at(view, statement))
            case ast.Assign() if declare_symbol(self._context, statement):
                pass
            case ast.Assign(value=ast.Call() as call) if (call_name(call) or "")[:5] == "axis.":
                self._axis(statement, call)
            case ast.Expr(value=ast.Call() as call) if call_name(call) in HEAD_CALLS:
                self._call(call)
            case ast.With(items=[ast.withitem(context_expr=init)]) if call_name(init) == "init":
                self._require_first(self.init, statement)
                bind(self._context, init, ())  # type: ignore[arg-type]
                self.init = statement
            case _:
                return False
        return True

    def _call(self, call: ast.Call) -> None:
        match call_name(call):
            case "where":
                self._require_first(self.predicate, call)
                argument = bind(self._context, call, ("predicate",))["predicate"]
                self.predicate = condition(self._context, argument)
            case "reads":
                self._require_first(self._reads, call)
                self._reads = regions(self._context, call)
            case "writes":
                self._require_first(self._writes, call)
                self._writes = regions(self._context, call)
            case _:
                self._require_first(self._annotations or None, call)
                argument = bind(self._context, call, ("attrs",))["attrs"]
                self._annotations = literal_dict(self._context, argument)

    def _require_first(self, already: object, origin: ast.AST) -> None:
        if already is not None:
            raise self._context.error("this appears twice in the block", origin, code="duplicate")

    def _axis(self, statement: ast.Assign, call: ast.Call) -> None:
        target = statement.targets[0]
        kind = (call_name(call) or "").removeprefix("axis.")
        if len(statement.targets) != 1:
            raise self._context.error("expected the names of axes", target)
        if kind == "remap":
            self._remap(target, call)
        elif kind not in _AXES:
            hint = near(kind, AXES)
            raise self._context.error(
                f"unknown kind of axis {kind}{hint}", call.func, code="undefined"
            )
        elif not isinstance(target, ast.Name):
            raise self._context.error("expected one name for the axis", target)
        else:
            arguments = bind(self._context, call, ("dom", "binding"), ("dtype",))
            minimum, extent = self._domain(arguments["dom"])
            value = index(self._context, arguments["binding"])
            self._add(target.id, _AXES[kind], minimum, extent, value)

    def _domain(self, node: ast.expr) -> tuple[Expr, Expr]:
        if not isinstance(node, ast.Tuple | ast.List):
            extent = extent_of(index(self._context, node))
            return IntImm(0, dtype_of(extent)), extent
        if len(node.elts) != 2:
            raise self._context.error("expected an extent, or the two ends of a range", node)
        return interval(self._context, node.elts[0], node.elts[1])

    def _remap(self, target: ast.expr, call: ast.Call) -> None:
        arguments = bind(self._context, call, ("kinds", "bindings"))
        letters = string(self._context, arguments["kinds"], "the kinds of the axes")
        bindings = arguments["bindings"]
        loops = bindings.elts if isinstance(bindings, ast.List | ast.Tuple) else [bindings]
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        if not len(letters) == len(loops) == len(targets):
            raise self._context.error(
                f"expected as many names as kinds as loops, got {len(targets)} names, "
                f"{len(letters)} kinds and {len(loops)} loops",
                call,
            )
        for letter, loop, name in zip(letters, loops, targets, strict=True):
            if letter not in _REMAP_LETTERS:
                raise self._context.error(
                    f"unknown kind of axis {letter!r}: expected S, R or O",
                    arguments["kinds"],
                    code="undefined",
                )
            if not isinstance(name, ast.Name):
                raise self._context.error("expected the name of an axis", name)
            axis = self._context.lookup(loop) if isinstance(loop, ast.Name) else None
            if not isinstance(axis, BlockAxis) or axis.step != 1:
                raise self._context.error("expected a loop variable", loop)
            # The axis starts at the first value of the loop.
            self._bind(name.id, _REMAP_LETTERS[letter], axis, axis.var)

    def _add(self, name: str, kind: IterKind, minimum: Expr, extent: Expr, value: Expr) -> None:
        dtype = dtype_of(value)
        axis = BlockAxis(Var(name, dtype), converted(extent, dtype), converted(minimum, dtype))
        starts_at_zero = isinstance(minimum, IntImm) and minimum.value == 0
        shifted = value if starts_at_zero else simplify(BinOp("-", value, axis.minimum))
        self._bind(name, kind, axis, shifted)

    def _bind(self, name: str, kind: IterKind, axis: BlockAxis, value: Expr) -> None:
        var = Var(name, dtype_of(value))
        self.iter_vars.append(IterVar(var, axis.extent, kind))
        self._values.append(value)
        self._context.define(name, BlockAxis(var, axis.extent, axis.minimum))
