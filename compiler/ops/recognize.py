"""Find the operator that a program computes, whatever its names are.

The shapes of the parameters, how many blocks there are and which functions are called leave a few
lists of arguments. Those are built and compared with the program, so what is recognized is proved;
what is not among them is not recognized, and that is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, islice

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ops.error import OperatorError
from compiler.ops.recognizers.facts import Facts
from compiler.ops.recognizers.linear import products
from compiler.ops.recognizers.rows import (
    attentions,
    elementwise,
    normalizations,
    reductions,
    transposes,
)
from compiler.ops.recognizers.windows import convolutions, pools
from compiler.ops.spec import Spec

MAX_BUILT = 40
"""So many lists of arguments are tried at most; one costs some milliseconds."""

_RECOGNIZERS: tuple[Callable[[Facts], Iterable[Spec]], ...] = (
    products,
    convolutions,
    pools,
    attentions,
    normalizations,
    reductions,
    transposes,
    elementwise,
)


def recognize(func: PrimFunc) -> Spec | None:
    """Return an operator of the library that computes what a program does, block by block.

    Of several that are the same program, such as `dense` and a `matmul`, it is the more general.
    Operators that move elements by indices, and programs of several types, are not looked for.
    """
    if any(not isinstance(param, Buffer) for param in func.params) or len(func.params) < 2:
        return None
    try:
        shapes = [static_shape(buffer) for buffer in func.buffers]
    except ValueError:
        return None
    if len({buffer.dtype for buffer in func.buffers}) > 1:
        return None
    facts = Facts(func, shapes)
    candidates = chain.from_iterable(recognizer(facts) for recognizer in _RECOGNIZERS)
    return next((spec for spec in islice(candidates, MAX_BUILT) if _computes(spec, func)), None)


def _computes(spec: Spec, func: PrimFunc) -> bool:
    try:
        return structural_equal(spec.build(), func)
    except OperatorError:
        return False
