"""References: operators by NumPy, to compare results with.

Inputs are widened to float64 or int64, so that a reference is more exact than the result to check.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from compiler.ir.interpret.oracle.vectorized_eval import wide
from compiler.ops.operator import OPERATORS, Array
from compiler.ops.spec import Spec, check_name, parse_spec


def reference(operator: str, *args: Any, **options: Any) -> Callable[..., Array]:
    """Return a function that computes an operator by NumPy.

        lw.ops.reference("matmul:4,5,6,activation=relu")(a, b)
        lw.ops.reference("matmul", 4, 5, 6, activation="relu")(a, b)

    Args:
        operator: The name of an operator with its arguments in `args`, or a line of text.
        args: The arguments.
        options: Further arguments by name.

    Returns:
        A function of the inputs, in the order of the program's parameters; it returns the output.

    Raises:
        OperatorError: If the operator does not exist, or does not take these arguments.
    """
    if args or options:
        check_name(operator)
        spec = Spec(operator, args, options)
    else:
        spec = parse_spec(operator)
    output = spec.build().buffers[-1]
    bound = SimpleNamespace(**spec.bound())
    function = OPERATORS[spec.name].reference

    def computed(*inputs: Array) -> Array:
        widened = (array.astype(wide(str(array.dtype))) for array in inputs)  # type: ignore[arg-type]
        with np.errstate(all="ignore"):
            return np.asarray(function(bound, *widened)).astype(output.dtype)

    return computed
