"""Random programs of plain loops whose statements depend on each other in many ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compiler.ir.core.program import PrimFunc
from compiler.script import parse

Choose = Callable[[Sequence[Any]], Any]

_HEAD = """
@T.prim_func
def main(
    A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32")
):
    s = T.alloc_buffer((1,), "int32")
    r = T.alloc_buffer((8,), "int32")
    s[0] = 0
    for x in range(8):
        r[x] = 1
"""


def plain_program(choose: Choose) -> PrimFunc:
    """Return loops around stores: sums, recurrences, values that are replaced, conditions."""
    lines = [line for _ in range(choose((1, 2))) for line in _nest(choose, ())]
    return parse(_HEAD + "\n".join(f"    {line}" for line in (*lines, "C[0] = s[0]")))


def _nest(choose: Choose, loops: tuple[str, ...]) -> list[str]:
    """Return the lines of a loop, with statements and perhaps a loop in it."""
    name = f"{choose('ijk')}{len(loops)}"
    inner = (*loops, name)
    lines: list[str] = []
    for _ in range(choose((1, 2, 3))):
        is_loop = len(inner) < 3 and choose((False, False, True))
        part = _nest(choose, inner) if is_loop else _statement(choose, inner)
        if choose((False, False, False, True)):
            part = [f"if {_condition(choose, inner)}:", *(f"    {line}" for line in part)]
        lines += part
    return [f"for {name} in range({choose((1, 2, 4))}):", *(f"    {line}" for line in lines)]


def _statement(choose: Choose, loops: tuple[str, ...]) -> list[str]:
    target = _element(choose, loops)
    if choose((False, False, True)):
        return _sum(choose, loops, target)
    operands = [_element(choose, loops), choose((target, _element(choose, loops)))]
    value = choose(("{} + {}", "{} * 2 + {}", "T.max({}, {})", "{} - {}")).format(*operands)
    return [f"{target} = {choose((value, value, '3'))}"]


def _sum(choose: Choose, loops: tuple[str, ...], target: str) -> list[str]:
    """Return an update, perhaps with a start: in the first iteration, or in each."""
    term = _element(choose, loops)
    reduced = choose(loops)
    start = f"{target} = {choose((_element(choose, loops), '0'))}"
    starts: tuple[list[str], ...] = ([], [start], [f"if {reduced} == 0:", f"    {start}"])
    return [
        *choose(starts),
        f"{target} = {choose(('{} + {}', 'T.max({}, {})')).format(target, term)}",
    ]


def _element(choose: Choose, loops: tuple[str, ...]) -> str:
    first, second = _index(choose, loops), _index(choose, loops)
    options = (f"B[{first}, {second}]", f"A[{first}, {second}]", f"C[{first}]", f"r[{first}]")
    return str(choose((*options, "s[0]")))


def _index(choose: Choose, loops: tuple[str, ...]) -> str:
    first, second = choose(loops), choose(loops)
    others = (f"{first} + 1", f"{first} + {second}", f"4 - {first}", f"{first} // 2", "0")
    return str(choose((first, first, *others)))


def _condition(choose: Choose, loops: tuple[str, ...]) -> str:
    name, other = choose(loops), choose(loops)
    options = (f"{name} == 0", f"{name} < 2", f"{name} + {other} < 3", f"A[{name}, 0] > 1")
    return str(choose(options))
