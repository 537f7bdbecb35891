"""Random traces of small programs, and inputs to run them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ir.core.dtypes import is_float
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, BlockRealize, Call, For, IntImm, Let, Stmt, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, transform, walk
from compiler.ir.interpret.oracle.oracle import random_inputs
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from tests.property.generators import loops as random_loops
from tests.property.generators import placement as random_placement
from tests.property.generators import storage as random_storage
from tests.property.generators import tensors as random_tensors
from tests.property.generators.choice import STEPS, Choose, Draw, NotApplicableError

__all__ = ["STEPS", "RandomTrace", "reverse_concurrent_loops", "whole_number_inputs"]

# Importing them registers their steps.
FAMILIES = (random_loops, random_placement, random_storage, random_tensors)
Array = NDArray[Any]


@dataclass
class RandomTrace:
    """Applies random primitives to a schedule, and counts accepted and refused ones."""

    schedule: Schedule
    choose: Choose
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def step(self) -> None:
        """Try one random primitive that applies to some block or loop."""
        for _ in range(20):
            if self.attempt(self.choose(list(STEPS))) is not None:
                return

    def attempt(self, name: str) -> bool | None:
        """Try one primitive; return whether it was accepted, None if it does not apply."""
        before = self.schedule.func
        try:
            STEPS[name](Draw(self.schedule, self.choose))
        except NotApplicableError:
            return None
        except ScheduleError:
            if name not in COMPOSED:
                assert self.schedule.func is before, "a refused primitive changes nothing"
            self.refused[name] += 1
            return False
        self.accepted[name] += 1
        return True


# These do several primitives one after another, of which a later one may be refused.
COMPOSED = frozenset(
    {
        "annotate_software_pipeline",
        "online_softmax",
        "rolling_buffer",
        "sample_categorical",
        "sample_compute_location",
        "sample_partitioned_tile",
        "sample_perfect_tile",
        "tensorize",
    }
)


def whole_number_inputs(func: PrimFunc, seed: int) -> dict[str, Array]:
    """Return inputs whose sums and products are exact, so that their order does not matter.

    A program that divides or calls a function is never exact, so its inputs are arbitrary. So are
    those of a program that finds the position of an extreme, because it must be unique.
    """
    inputs = random_inputs(func, seed)
    if not is_exact(func) or any(isinstance(node, Let) for node in walk(func.body)):
        return inputs
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(-3, 4, values.shape).astype(values.dtype)
        if np.issubdtype(values.dtype, np.floating)
        else values
        for name, values in inputs.items()
    }


def is_exact(func: PrimFunc) -> bool:
    """Return whether a program only adds, multiplies and compares."""
    return not any(
        isinstance(node, Call)
        or (isinstance(node, BinOp) and node.op == "/" and is_float(dtype_of(node)))
        for node in walk(func.body)
    )


# Steps that try a primitive in another way than the step of its name.
PRIMITIVES = {
    **{name: name for name in STEPS},
    "annotate_buffer_tile": "annotate",
    "annotate_double_buffer": "annotate",
    "annotate_dynamic_partition": "annotate",
    "annotate_interleave": "annotate",
    "annotate_reduce_in_lanes": "annotate",
    "annotate_software_pipeline": "annotate",
    "bind_anywhere": "bind",
    "bind_reduction": "bind",
    "compute_anywhere": "compute_at",
}

CONCURRENT = ("parallel", "vectorized", "thread_binding")


def is_concurrent(func: PrimFunc) -> bool:
    """Return whether a program has loops whose iterations are concurrent."""
    return any(isinstance(node, For) and node.kind in CONCURRENT for node in walk(func.body))


def may_be_unbuilt(func: PrimFunc) -> bool:
    """Return whether a program has threads or pipelines, which lowering may refuse."""
    return any(
        isinstance(node, For)
        and (node.kind == "thread_binding" or "software_pipeline_stage" in dict(node.annotations))
        for node in walk(func.body)
    )


def reverse_concurrent_loops(func: PrimFunc) -> PrimFunc:
    """Return the program with its concurrent loops reversed, except for reducing threads.

    Threads that reduce together keep their order, because the first one holds the initial value.
    """
    reduced = {
        node
        for realize in walk(func.body)
        if isinstance(realize, BlockRealize)
        for value, iter_var in zip(realize.iter_values, realize.block.iter_vars, strict=True)
        if iter_var.kind == "reduce"
        for node in walk(value)
    }

    def on_stmt(stmt: Stmt) -> Stmt | None:
        if not isinstance(stmt, For) or stmt.kind not in CONCURRENT or stmt.var in reduced:
            return None
        dtype = dtype_of(stmt.var)
        var = Var(stmt.var.name, dtype)
        last = BinOp("-", stmt.extent, IntImm(1, dtype))
        body = substitute(stmt.body, {stmt.var: BinOp("-", last, var)})
        kind = stmt.kind if stmt.kind == "thread_binding" else "serial"
        return replace(stmt, var=var, body=body, kind=kind)

    body = transform(func.body, on_stmt=on_stmt)
    assert isinstance(body, BlockRealize)
    return replace(func, body=body)
