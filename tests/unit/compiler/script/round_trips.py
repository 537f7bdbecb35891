"""Programs that are read, printed in each spelling and read back."""

import numpy as np

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    Block,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.spelling import Dialect
from compiler.ir.core.visit import walk
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.script import parse

DIALECTS: tuple[Dialect, ...] = ("new", "middle", "old")


def round_tripped(text: str) -> PrimFunc:
    """Parse a text, and check that what is printed of it in any spelling is the same program."""
    func = parse(text)
    for dialect in DIALECTS:
        printed = func.script(dialect)
        assert structural_equal(parse(printed), func), printed
        assert parse(printed).script(dialect) == printed
    return func


def block_named(func: PrimFunc, name: str) -> Block:
    """Return a block of a program."""
    return next(b for b in walk(func.body) if isinstance(b, Block) and b.name == name)


def in_block(body: str, head: str = "") -> PrimFunc:
    """Return the program of a block over `vi` of A (8 floats), N (8 integers) and B (8 floats)."""
    lines = "".join(f"            {line}\n" for line in (head + body).splitlines())
    return round_tripped(f"""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), N: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
{lines}""")


def outputs(func: PrimFunc, **inputs: object) -> dict[str, np.ndarray]:
    """Run a program by the evaluator."""
    return evaluate(func, {name: np.asarray(value) for name, value in inputs.items()})
