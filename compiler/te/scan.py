"""Recurrences: tensors whose steps along the first dimension depend on earlier steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.ir.arith.affine import affine
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import BinOp, IntImm, Load
from compiler.ir.core.visit import walk
from compiler.te.compute import outputs_of
from compiler.te.tensor import Compute, Scan, Tensor


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor] | None = None,
    name: str = "scan",
) -> Any:
    """Define tensors by a recurrence over their first dimension.

        state = te.placeholder((m, n))
        init = te.compute((1, n), lambda _, i: X[0, i])
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
        Y = te.scan(init, update, state, inputs=[X])

    Args:
        init: The first steps of each state.
        update: One step of each state, in terms of earlier steps of the states.
        state_placeholder: Placeholders for the states in `update`, of the same shape.
        inputs: Other tensors that `update` reads. Not required: they are found in `update`.
        name: The name of the result; several are called `name_v0, ...`.

    Returns:
        The tensor, or a list of as many as there are states.

    Raises:
        ValueError: If the shapes or types of the states, inits and updates do not fit together, or
            an update reads a step that is not computed yet.
    """
    firsts, updates, states = (_several(g) for g in (init, update, state_placeholder))
    if not len(firsts) == len(updates) == len(states) > 0:
        raise ValueError(
            f"{name} has {len(firsts)} init(s), {len(updates)} update(s) and {len(states)} "
            "state(s): expected as many of each"
        )
    for first, step, state in zip(firsts, updates, states, strict=True):
        _check_fit(name, first, step, state)
    definition = Scan(name, firsts, updates, states)
    if len({first.buffer.shape[0] for first in firsts}) > 1:
        raise ValueError(f"the states of {name} begin with different numbers of steps")
    for tensor in inputs or ():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"the inputs of {name} are tensors, got {tensor!r}")
    for compute in definition.steps:
        _check_order(definition, compute)
    definition.outputs = outputs_of(definition, [(s.buffer.shape, s.dtype) for s in states])
    return list(definition.outputs) if len(states) > 1 else definition.outputs[0]


def _several(tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    return (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)


def _check_fit(name: str, first: Tensor, step: Tensor, state: Tensor) -> None:
    """Raise if an init or an update does not fit its state."""
    if state.definition is not None:
        raise ValueError(f"the state {state.name} of {name} is computed: expected a placeholder")
    if not isinstance(step.definition, Compute):
        raise ValueError(f"the update {step.name} of {name} is not made by te.compute")
    if first.ndim == 0 or first.ndim != state.ndim or step.buffer.shape != state.buffer.shape:
        raise ValueError(
            f"{name}: state {state.name} has shape {state.shape}, its init {first.shape} and its "
            f"update {step.shape}: expected one shape but for the first extent of the init"
        )
    if first.buffer.shape[1:] != state.buffer.shape[1:]:
        raise ValueError(
            f"{name}: init {first.name} has shape {first.shape}, state {state.name} {state.shape}"
        )
    if not first.dtype == step.dtype == state.dtype:
        raise ValueError(
            f"{name}: state {state.name} holds {state.dtype}, its init {first.dtype} and its "
            f"update {step.dtype}"
        )
    left = simplify(BinOp("-", state.buffer.shape[0], first.buffer.shape[0]))
    if isinstance(left, IntImm) and left.value < 1:
        raise ValueError(f"{name} has no step after its init: state {state.name} is {state.shape}")


def _check_order(scan: Scan, compute: Compute) -> None:
    """Refuse a step that reads a state before it is computed, or values of another step."""
    before = scan.init[0].buffer.shape[0]
    time = compute.indices[0] if compute.indices else None
    states = {state.buffer for state in scan.state}
    step_buffers = {t.buffer for step in scan.steps for t in step.outputs}
    for node in (node for value in compute.values for node in walk(value.expr)):
        if not isinstance(node, Load) or node.buffer not in states | step_buffers:
            continue
        distance = None if time is None else affine(node.indices[0]) - affine(time)
        if node.buffer in step_buffers and (distance is None or distance.terms or distance.const):
            raise ValueError(
                f"{compute.name} reads {node.buffer.name}, which depends on a state of "
                f"{scan.name}, at another step than its own"
            )
        if node.buffer in states and not (
            distance is not None
            and not distance.terms
            and distance.const < 0
            and (not isinstance(before, IntImm) or -distance.const <= before.value)
        ):
            raise ValueError(
                f"{compute.name} reads state {node.buffer.name} at a step that {scan.name} has "
                f"not computed: expected one of the {_shown(before)} before"
            )


def _shown(extent: object) -> str:
    return str(extent.value) if isinstance(extent, IntImm) else "steps"
