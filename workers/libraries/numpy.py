"""NumPy as a user would write it, on the BLAS that it came with."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from threadpoolctl import ThreadpoolController

from compiler.ops.operator import OPERATORS
from compiler.ops.spec import parse_spec
from workers.libraries.kernel_sets import CORE_TYPE, LibraryCode
from workers.libraries.library import Array, LibraryCall, LibraryError

_NAMES = {"blis": "BLIS", "mkl": "MKL", "openblas": "OpenBLAS"}
_TYPES = ("float32", "float64")


def start(num_threads: int) -> str:
    """Set the number of threads of BLAS; return the versions of both."""
    np.seterr(all="ignore")  # as a kernel does
    controller = ThreadpoolController().select(user_api="blas")
    controller.limit(limits=num_threads)
    blas = [f"{_NAMES.get(i['internal_api'], '?')} {i['version']}" for i in controller.info()]
    return ", ".join([f"NumPy {np.__version__}", *blas[:1]])


def kernel_set() -> LibraryCode:
    """Return the architecture that OpenBLAS chose; other libraries do not report theirs."""
    libraries = ThreadpoolController().select(user_api="blas").info()
    chosen = next((i for i in libraries if i.get("architecture")), None)
    if chosen is None:
        return LibraryCode()
    is_openblas = chosen["internal_api"] == "openblas"
    return LibraryCode(chosen["architecture"], CORE_TYPE if is_openblas else "")


def prepare(operator: str, inputs: Sequence[Array]) -> LibraryCall:
    """Return the call of an operator; its result lies as an array usually does.

    Raises:
        LibraryError: If NumPy has no code of its own for it.
    """
    spec = parse_spec(operator)
    bound = spec.bound()
    if bound["dtype"] not in _TYPES:
        raise LibraryError(f"NumPy computes with {bound['dtype']} only in steps of other types")
    is_exact = spec.name == "gelu" and bound["approximate"] == "none"
    if spec.name == "erf" or is_exact or bound.get("activation") == "gelu":
        raise LibraryError("NumPy has no error function")
    options, function = SimpleNamespace(**bound), OPERATORS[spec.name].reference
    return LibraryCall(
        lambda: np.ascontiguousarray(function(options, *inputs)), lambda output: output
    )
