"""The weight of a measurement in training a model for a kind of target.

    weight = 2^(-age / 180 days) * (1 if of the same kind of target, else 1/4)
                                 * (1 if made by the same toolchain, else 1/2)

The toolchain is the version of code generation and of LLVM. Older and foreign measurements are
still informative. If they contradict recent measurements of this target, the latter prevail.
"""

from __future__ import annotations

from datetime import timedelta

HALF_LIFE = timedelta(days=180)
"""After this time a measurement weighs half. Chosen, not measured."""
OTHER_TARGET = 0.25
"""Weight of a measurement for another kind of target: the order of candidates carries over in part.
Chosen, not measured.
"""
OTHER_TOOLCHAIN = 0.5
"""Weight of a measurement by another toolchain: most candidates get the same code. Chosen, not
measured.
"""


def weight(age: timedelta, *, is_same_target: bool, is_same_toolchain: bool) -> float:
    """Return the weight of a measurement, at most 1; one from the future counts as new."""
    recency: float = 2.0 ** -max(age / HALF_LIFE, 0.0)
    return (
        recency
        * (1.0 if is_same_target else OTHER_TARGET)
        * (1.0 if is_same_toolchain else OTHER_TOOLCHAIN)
    )
