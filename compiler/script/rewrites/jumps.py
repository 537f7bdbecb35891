"""`break` and `continue`, which become scalars that guard what they skip.

    for i in range(8):                stopped: T.bool = False
        if A[i] > 3:                  for i in range(8):
            break            ->           if not stopped:
        B[0] = i                              if A[i] > 3:
                                                  stopped = True
                                              if not stopped:
                                                  B[0] = i

A `while` tests the scalar before its condition. A `for` runs its other iterations without effect.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from compiler.script.blocks import is_block
from compiler.script.context import call_name

# A chosen bound: each jump nests the statements after it one deeper.
_MAX_JUMPS = 16

_Loop: TypeAlias = ast.For | ast.While
_Jump: TypeAlias = ast.Break | ast.Continue
_Node = TypeVar("_Node", bound=ast.AST)
Refuse: TypeAlias = Callable[[str, ast.AST], Exception]


def without_jumps(function: ast.FunctionDef, refuse: Refuse) -> None:
    """Replace the jumps of a function; `refuse` makes the error of a place.

    Raises:
        Exception: That of `refuse`, if a jump leaves a block or a loop that is not serial.
    """
    jumps = [n for n in ast.walk(function) if isinstance(n, ast.Break | ast.Continue)]
    if len(jumps) > _MAX_JUMPS:
        reason = f"{len(jumps)} break and continue: expected {_MAX_JUMPS} at most"
        raise refuse(reason, jumps[_MAX_JUMPS])
    _JumpRemover(function, refuse).visit(function)


class _JumpRemover(ast.NodeTransformer):
    def __init__(self, function: ast.FunctionDef, refuse: Refuse) -> None:
        self._names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        self._names |= {n.arg for n in ast.walk(function) if isinstance(n, ast.arg)}
        self._refuse = refuse

    def visit_For(self, loop: ast.For) -> list[ast.stmt]:
        return self._loop(loop)

    def visit_While(self, loop: ast.While) -> list[ast.stmt]:
        return self._loop(loop)

    def _loop(self, loop: _Loop) -> list[ast.stmt]:
        self.generic_visit(loop)
        jumps = _jumps(loop.body)
        if not jumps:
            return [loop]
        self._check(loop, jumps)
        flags: dict[type[ast.stmt], str] = {}
        for kind, name in ((ast.Break, "stopped"), (ast.Continue, "skipped")):
            if any(isinstance(jump, kind) for jump in jumps):
                flags[kind] = self._unused(name)
        body = _guarded(loop.body, flags)
        if ast.Continue in flags:
            body.insert(0, _declared(flags[ast.Continue], loop.body[0]))
        loop.body = body
        if ast.Break not in flags:
            return [loop]
        stopped = flags[ast.Break]
        goes_on = _placed(ast.UnaryOp(ast.Not(), ast.Name(stopped, ast.Load())), loop)
        if isinstance(loop, ast.For):
            loop.body = [_placed(ast.If(goes_on, body, []), loop.body[0])]
        elif isinstance(loop.test, ast.Constant) and loop.test.value is True:
            loop.test = goes_on
        else:
            loop.test = _placed(ast.BoolOp(ast.And(), [goes_on, loop.test]), loop.test)
        return [_declared(stopped, loop), loop]

    def _check(self, loop: _Loop, jumps: Sequence[_Jump]) -> None:
        first = jumps[0]
        word = _word(first)
        if any(isinstance(n, ast.With) and is_block(n) for n in ast.walk(loop)):
            reason = f"{word} in a loop around blocks, whose number of runs is unknown"
            raise self._refuse(f"{reason}: put the loop into a block", first)
        if isinstance(loop, ast.While):
            return
        kind = call_name(loop.iter)
        if kind == "grid":
            for jump in jumps:
                if isinstance(jump, ast.Break):
                    reason = "break in T.grid may mean one loop or all"
                    raise self._refuse(f"{reason}: write a loop for each", jump)
        elif kind not in (None, "serial"):
            raise self._refuse(f"{word} in T.{kind}: only serial loops and while have it", first)

    def _unused(self, name: str) -> str:
        number, unused = 0, name
        while unused in self._names:
            number += 1
            unused = f"{name}_{number}"
        self._names.add(unused)
        return unused


def _jumps(body: Sequence[ast.stmt]) -> list[_Jump]:
    """Return the jumps of the loop around some statements, not those of loops in it."""
    jumps: list[_Jump] = []
    for node in body:
        match node:
            case ast.Break() | ast.Continue():
                jumps.append(node)
            case ast.If(body=then, orelse=otherwise):
                jumps += (*_jumps(then), *_jumps(otherwise))
            case ast.With(body=inner):
                jumps += _jumps(inner)
            case _:
                pass
    return jumps


def _guarded(body: Sequence[ast.stmt], flags: dict[type[ast.stmt], str]) -> list[ast.stmt]:
    """Replace the jumps in some statements; a condition guards those after a jump."""
    done: list[ast.stmt] = []
    for position, node in enumerate(body):
        jumps = _jumps([node])
        if not jumps:
            done.append(node)
            continue
        if isinstance(node, ast.Break | ast.Continue):
            flag = ast.Name(flags[type(node)], ast.Store())
            done.append(_placed(ast.Assign([flag], ast.Constant(True)), node))
            return done
        assert isinstance(node, ast.If | ast.With), "other statements have no jumps"
        node.body = _guarded(node.body, flags)
        if isinstance(node, ast.If):
            node.orelse = _guarded(node.orelse, flags)
        done.append(node)
        rest = body[position + 1 :]
        if rest:
            kinds = dict.fromkeys(type(jump) for jump in jumps)
            tests: list[ast.expr] = [
                ast.UnaryOp(ast.Not(), ast.Name(flags[kind], ast.Load())) for kind in kinds
            ]
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            done.append(_placed(ast.If(test, _guarded(rest, flags), []), rest[0]))
        return done
    return done


def _declared(name: str, origin: ast.stmt) -> ast.stmt:
    note = ast.Attribute(ast.Name("T", ast.Load()), "bool", ast.Load())
    target = ast.Name(name, ast.Store())
    return _placed(ast.AnnAssign(target, note, ast.Constant(False), 1), origin)


def _placed(node: _Node, origin: ast.AST) -> _Node:
    return ast.fix_missing_locations(ast.copy_location(node, origin))


def _word(jump: _Jump) -> str:
    return "break" if isinstance(jump, ast.Break) else "continue"
