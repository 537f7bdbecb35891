"""Recurrent layers: whole sequences as one node, or step by step if a layer has rare options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Constant, Operand
from compiler.graph.operators.slices import BEYOND
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.conversions.activations import activation_names
from compiler.graph.read_onnx.conversions.unrolled import Direction, unrolled
from compiler.graph.read_onnx.registry import onnx_operator

_ACTIVATIONS = {
    "GRU": ("Sigmoid", "Tanh"),
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    "RNN": ("Tanh",),
}

_RANKS = {1: 3, 2: 3, 3: 2, 5: 3, 6: 3, 7: 2}
"""The ranks of weights of inputs and of states, biases, first states and cells, peepholes."""
_GATES = {"GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1), "RNN": (0,)}
"""The positions in ONNX of the gates in the order of graph operators."""


@onnx_operator("LSTM", "GRU", "RNN")
def _recurrent(call: OnnxCall) -> Sequence[Operand]:
    """Return the states after each step, the last state, and the last cell state of an LSTM."""
    layer = _Layer(call)
    is_plain = layer.is_plain()
    directions = [layer.direction(number) for number in range(layer.num_directions)]
    if is_plain:
        results = [_whole(call, direction) for direction in directions]
    else:
        results = unrolled(call, directions, _ACTIVATIONS[call.op_type], layer.lengths())
    steps = _stacked(call, [states for states, *_ in results], 1)
    last = [_stacked(call, list(each), 0) for each in list(zip(*results, strict=True))[1:]]
    if layer.is_batch_first:
        steps = call.add("permute_dims", steps, axes=(2, 0, 1, 3))
        last = [call.add("permute_dims", each, axes=(1, 0, 2)) for each in last]
    return [steps, *last]


def _stacked(call: OnnxCall, parts: Sequence[Operand], axis: int) -> Operand:
    several = [call.add("expand_dims", part, axis=(axis,)) for part in parts]
    return several[0] if len(several) == 1 else call.add("concat", *several, axis=axis)


@dataclass(frozen=True)
class _Layer:
    """The operands and attributes of a node."""

    call: OnnxCall

    @property
    def is_batch_first(self) -> bool:
        """Return whether the batch comes before the steps."""
        return bool(self.call.int_attr("layout", 0))

    @property
    def num_directions(self) -> int:
        """Return 1 or 2."""
        direction = self.call.string_attr("direction", "forward")
        if direction not in {"forward", "reverse", "bidirectional"}:
            raise ModelError(f"direction is {direction!r}")
        return 2 if direction == "bidirectional" else 1

    @property
    def num_gates(self) -> int:
        """Return how many gates follow each other in the weights."""
        return len(_GATES[self.call.op_type])

    def lengths(self) -> Operand | None:
        """Return the lengths of the sequences, or None if all have all steps."""
        lengths = self.call.optional(4)
        steps = self.inputs().type.shape[0]
        is_full = isinstance(lengths, Constant) and (lengths.elements == steps).all()
        return None if is_full else lengths

    def is_plain(self) -> bool:
        """Return whether a graph operator computes the layer."""
        call = self.call
        default = _ACTIVATIONS[call.op_type]
        names = activation_names(call, default, self.num_directions)
        return (
            names == [name.lower() for name in default] * self.num_directions
            and "clip" not in call.attributes
            and not call.int_attr("input_forget", 0)
            and not call.has(7)
            and self.lengths() is None
        )

    def inputs(self) -> Operand:
        """Return the inputs, steps first."""
        x = self.call.operand(0)
        if x.type.rank != 3:
            raise ModelError(f"the inputs have shape {x.type.shape}: expected 3 dimensions")
        return self.call.add("permute_dims", x, axes=(1, 0, 2)) if self.is_batch_first else x

    def direction(self, number: int) -> Direction:
        """Return the operands of a direction."""
        x = self.inputs()
        weights = self._part(1, number), self._part(2, number)
        rows = self.num_gates * weights[1].type.static_shape[1]
        if weights[1].type.shape[0] != rows:
            raise ModelError(f"weights of shape {weights[1].type.shape}: expected {rows} rows")
        biases = self._biases(number, rows)
        batch, hidden = x.type.shape[1], weights[1].type.static_shape[1]
        if not isinstance(batch, int):
            raise ModelError(
                f"the batch has the symbolic extent {batch}",
                advice="fix the axes of the model's inputs: shapes={...}",
            )
        first = self._state(5, number, (batch, hidden))
        is_lstm = self.call.op_type == "LSTM"
        cell = self._state(6, number, (batch, hidden)) if is_lstm else None
        direction = self.call.string_attr("direction", "forward")
        is_reverse = direction == "reverse" or number == 1
        peepholes = self._part(7, number) if self.call.has(7) else None
        return Direction(x, *weights, *biases, first, cell, peepholes, is_reverse)

    def _part(self, position: int, number: int) -> Operand:
        """Return the part of an operand that belongs to a direction."""
        operand, rank = self.call.operand(position), _RANKS[position]
        if self.call.static_type(position).rank != rank:
            raise ModelError(
                f"operand {position} has shape {operand.type.shape}: expected {rank} dimensions"
            )
        if operand.type.shape[0] != self.num_directions:
            raise ModelError(
                f"operand {position} has shape {operand.type.shape}: expected"
                f" {self.num_directions} direction(s) first"
            )
        if self.num_directions > 1:
            operand = self.call.add_all("split", operand, indices_or_sections=2, axis=0)[number]
        return self.call.add("squeeze", operand, axis=(0,))

    def _biases(self, number: int, rows: int) -> tuple[Operand, Operand]:
        """Return the biases of inputs and of states."""
        if not self.call.has(3):
            zeros = self.call.constant(np.zeros(rows, self.call.type(0).dtype))
            return zeros, zeros
        both = self._part(3, number)
        of_inputs, of_states = self.call.add_all("split", both, indices_or_sections=2, axis=0)
        return of_inputs, of_states

    def _state(self, position: int, number: int, shape: tuple[int, int]) -> Operand:
        if not self.call.has(position):
            return self.call.constant(np.zeros(shape, self.call.type(0).dtype))
        if not self.is_batch_first:
            return self._part(position, number)
        state = self.call.operand(position)
        if self.num_directions > 1:
            state = self.call.add_all("split", state, indices_or_sections=2, axis=1)[number]
        return self.call.add("squeeze", state, axis=(1,))


def _whole(call: OnnxCall, direction: Direction) -> tuple[Operand, ...]:
    """Return the states after each step, the last state, and the last cell state of an LSTM."""
    x = direction.x
    if direction.is_reverse:
        x = call.add("flip", x, axis=0)
    parameters = [_reordered(call, each) for each in direction.parameters]
    last_cell: tuple[Operand, ...] = ()
    if direction.c is not None:
        states, *last_cell_list = call.add_all("nn.lstm", x, direction.h, direction.c, *parameters)
        last_cell = tuple(last_cell_list)
    elif call.op_type == "GRU":
        reset_after = bool(call.int_attr("linear_before_reset", 0))
        states = call.add("nn.gru", x, direction.h, *parameters, reset_after=reset_after)
    else:
        states = call.add("nn.rnn", x, direction.h, *parameters)
    last = call.add("strided_slice", states, axes=(0,), begin=(-1,), end=(BEYOND,), strides=(1,))
    last = call.add("squeeze", last, axis=(0,))
    if direction.is_reverse:
        states = call.add("flip", states, axis=0)
    return states, last, *last_cell


def _reordered(call: OnnxCall, parameter: Operand) -> Operand:
    """Return weights or biases with their gates in the order of graph operators."""
    order = _GATES[call.op_type]
    if len(order) == 1:
        return parameter
    gates = call.add_all("split", parameter, indices_or_sections=len(order), axis=0)
    return call.add("concat", *(gates[gate] for gate in order), axis=0)
