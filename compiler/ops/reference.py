"""References: operators by NumPy, to compare results with.

Inputs are widened to float64 or int64, so that a reference is more exact than the result to check.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from compiler.ir.interpret.inputs import param_roles
from compiler.ir.interpret.oracle.vectorized_eval import wide
from compiler.ops.operator import OPERATORS, Array
from compiler.ops.spec import Spec, check_name, parse_spec


def reference(operator: str, *args: Any, **options: Any) -> Callable[..., Any]:
    """Return a function that computes an operator by NumPy.

        lw.ops.reference("matmul:4,5,6,activation=relu")(a, b)
        lw.ops.reference("matmul", 4, 5, 6, activation="relu")(a, b)

    Args:
        operator: The name of an operator with its arguments in `args`, or a line of text.
        args: The arguments.
        options: Further arguments by name.

    Returns:
        A function of the inputs, in the order of the program's parameters; it returns the output,
        or a tuple of them.

    Raises:
        OperatorError: If the operator does not exist, or does not take these arguments.
    """
    if args or options:
        check_name(operator)
        spec = Spec(operator, args, options)
    else:
        spec = parse_spec(operator)
    func = spec.build()
    names = param_roles(func).outputs
    dtypes = [buffer.dtype for buffer in func.buffers if buffer.name in names]
    bound = SimpleNamespace(**spec.bound())
    function = OPERATORS[spec.name].reference

    def computed(*inputs: Array) -> Any:
        widened = (array.astype(wide(str(array.dtype))) for array in inputs)  # type: ignore[arg-type]
        with np.errstate(all="ignore"):
            result = function(bound, *widened)
        several = result if isinstance(result, tuple) else (result,)
        outputs = tuple(np.asarray(a).astype(t) for a, t in zip(several, dtypes, strict=True))
        return outputs if isinstance(result, tuple) else outputs[0]

    return computed
