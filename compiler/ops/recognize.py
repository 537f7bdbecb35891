"""Find the operator that a program computes, independent of its names.

The shapes of the parameters, the number of blocks and the called functions leave a few lists of
arguments. Each is built and compared with the program, so a recognized operator is proved. An
operator outside of the library is not recognized, which is not an error.
"""

from __future__ import annotations

from itertools import islice

from compiler.ir.analysis.constant_params import constant_params, without_constants
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ops.error import OperatorError
from compiler.ops.operator import CONSTANT, OPERATORS
from compiler.ops.recognizers.facts import ProgramFacts
from compiler.ops.spec import Spec

MAX_BUILT = 40
"""The number of argument lists to try for each recognizer; each costs some milliseconds."""


def recognize(func: PrimFunc) -> Spec | None:
    """Return an operator of the library that computes the same as a program, block by block.

    If several operators give the same program, such as `dense` and `matmul`, return the more
    general one. Operators that move elements by indices, and programs of several types, are not
    recognized.
    """
    spec = _recognize(without_constants(func))
    constants = constant_params(func)
    if spec is None or not constants:
        return spec
    named = zip(spec.build().buffers, func.buffers, strict=True)
    names = [of_operator.name for of_operator, buffer in named if buffer in constants]
    return Spec(spec.name, spec.args, {**spec.options, CONSTANT: "+".join(names)})


def _recognize(func: PrimFunc) -> Spec | None:
    if any(not isinstance(param, Buffer) for param in func.params) or len(func.params) < 2:
        return None
    try:
        shapes = [static_shape(buffer) for buffer in func.buffers]
    except ValueError:
        return None
    if len({buffer.dtype for buffer in func.buffers}) > 1:
        return None
    facts = ProgramFacts(func, shapes)
    recognizers = dict.fromkeys(op.recognize for op in OPERATORS.values() if op.recognize)
    for recognizer in recognizers:
        for spec in islice(recognizer(facts), MAX_BUILT):
            if _computes(spec, func):
                return spec
    return None


def _computes(spec: Spec, func: PrimFunc) -> bool:
    try:
        return structural_equal(spec.build(), func)
    except OperatorError:
        return False
