"""References of functions against SciPy."""

from __future__ import annotations

import numpy as np
import scipy.signal
import scipy.special

from compiler import ops
from tests.unit.compiler.ops.reference_checks import check, given


def test_functions() -> None:
    gauss = [(3, 4)]
    check("gelu:3,4", gauss, lambda a: a * scipy.special.ndtr(a))
    check("erf:3,4", gauss, scipy.special.erf)
    check("sigmoid:3,4", gauss, scipy.special.expit)
    check("silu:3,4", gauss, lambda a: a * scipy.special.expit(a))
    check("softmax:3,4", gauss, lambda a: scipy.special.softmax(a, axis=1))
    check("softmax:3,4,axis=0", gauss, lambda a: scipy.special.softmax(a, axis=0))
    check("log_softmax:3,4", gauss, lambda a: scipy.special.log_softmax(a, axis=1))
    tanh = ops.reference("gelu:3,4,approximate=tanh:float64")
    exact = ops.reference("gelu:3,4:float64")
    np.testing.assert_allclose(tanh(*given(*gauss)), exact(*given(*gauss)), atol=1e-3)
