"""The table of shapes, each once, under the first model that has it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from benchmarks.model_shapes import language, other, vision

CPUS = (
    "znver3",
    "znver4",
    "znver5",
    "skylake-avx512",
    "sapphirerapids",
    "neoverse-n1",
    "cortex-a72",
    "x86-64-v2",
)
"""CPUs whose spaces must not be empty: vectors of 128, 256 and 512 bits, 16 and 32 registers."""

FEW_SCHEDULES = 32
"""A space of fewer schedules leaves a search little to choose. Chosen."""


class ModelShape(NamedTuple):
    """A layer of a model, as an operator's specification."""

    model: str
    layer: str
    spec: str


@lru_cache(maxsize=1)
def model_shapes() -> tuple[ModelShape, ...]:
    """Return all shapes, without repetitions."""
    by_spec: dict[str, ModelShape] = {}
    for shape in _all_shapes():
        by_spec.setdefault(shape.spec, shape)
    return tuple(by_spec.values())


def _all_shapes() -> Iterator[ModelShape]:
    for module in (language, vision, other):
        for model, layers in module.models():
            for layer, spec in layers:
                yield ModelShape(model, layer, spec)
