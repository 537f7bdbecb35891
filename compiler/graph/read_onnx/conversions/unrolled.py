"""Recurrent layers step by step, for options that no graph operator has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.conversions.activations import Activation, activations

MAX_STEPS = 64
"""Steps of a layer; each is about 20 nodes, and a kernel for most of them."""


@dataclass(frozen=True)
class Direction:
    """One direction of a layer; gates are in the order of ONNX.

    Attributes:
        x: The inputs, `[steps, batch, input]`.
        w: The weights of inputs, `[gates * hidden, input]`.
        r: The weights of states, `[gates * hidden, hidden]`.
        w_bias: The biases of inputs, `[gates * hidden]`.
        r_bias: The biases of states.
        h: The first state, `[batch, hidden]`.
        c: The first cell state of an LSTM.
        peepholes: The weights of cell states in the gates i, o and f, `[3 * hidden]`.
        is_reverse: Whether the last step comes first.
    """

    x: Operand
    w: Operand
    r: Operand
    w_bias: Operand
    r_bias: Operand
    h: Operand
    c: Operand | None
    peepholes: Operand | None
    is_reverse: bool

    @property
    def parameters(self) -> tuple[Operand, ...]:
        """Return the weights and the biases."""
        return self.w, self.r, self.w_bias, self.r_bias


def unrolled(
    call: OnnxCall,
    directions: Sequence[Direction],
    default: Sequence[str],
    lengths: Operand | None,
) -> list[tuple[Operand, ...]]:
    """Return the states after each step, and the last states, of each direction.

    Args:
        call: The layer.
        directions: Its directions.
        default: The default activations of a direction.
        lengths: The lengths of the sequences; beyond them states stay, and results are 0.

    Raises:
        ModelError: If there are too many steps.
    """
    functions = activations(call, default, len(directions))
    return [
        _Steps(call, direction, each, lengths).run()
        for direction, each in zip(directions, functions, strict=True)
    ]


@dataclass(frozen=True)
class _Steps:
    call: OnnxCall
    direction: Direction
    activations: Sequence[Activation]
    lengths: Operand | None

    def run(self) -> tuple[Operand, ...]:
        """Return the states after each step, the last state, and the last cell state if any."""
        inputs = self._inputs()
        h, c = self.direction.h, self.direction.c
        outputs: dict[int, Operand] = {}
        order = range(len(inputs))
        for t in reversed(order) if self.direction.is_reverse else order:
            next_h, next_c = self._step(inputs[t], h, c)
            outputs[t] = self._valid(t, next_h, self.call.like(h, 0))
            h = self._valid(t, next_h, h)
            c = None if next_c is None or c is None else self._valid(t, next_c, c)
        steps = [self.call.add("expand_dims", outputs[t], axis=(0,)) for t in order]
        states = steps[0] if len(steps) == 1 else self.call.add("concat", *steps, axis=0)
        return (states, h) if c is None else (states, h, c)

    def _inputs(self) -> list[Operand]:
        """Return the products of the inputs with their weights, with biases, for each step."""
        call, direction = self.call, self.direction
        num_steps = direction.x.type.shape[0]
        if not isinstance(num_steps, int) or num_steps > MAX_STEPS:
            raise ModelError(
                f"a layer over {num_steps} steps with lengths of sequences, peepholes, a clip or"
                f" other activations: expected at most {MAX_STEPS}"
            )
        product = call.add("matmul", direction.x, call.add("permute_dims", direction.w))
        total = call.add("add", product, direction.w_bias)
        steps = call.add_all("split", total, indices_or_sections=num_steps, axis=0)
        return [call.add("squeeze", step, axis=(0,)) for step in steps]

    def _valid(self, t: int, value: Operand, otherwise: Operand) -> Operand:
        """Return a value for the sequences that have a step, and another one for others."""
        if self.lengths is None:
            return value
        has_step = self.call.add("less", self.call.like(self.lengths, t), self.lengths)
        column = self.call.add("expand_dims", has_step, axis=(1,))
        return self.call.add("where", column, value, otherwise)

    def _step(
        self, inputs: Operand, h: Operand, c: Operand | None
    ) -> tuple[Operand, Operand | None]:
        if c is not None:
            return self._lstm_step(inputs, h, c)
        if self.call.op_type == "GRU":
            return self._gru_step(inputs, h), None
        return self._activated(0, self._add(inputs, self._recurrent(h))), None

    def _lstm_step(self, inputs: Operand, h: Operand, c: Operand) -> tuple[Operand, Operand]:
        i, o, f, new = self._gates(self._add(inputs, self._recurrent(h)), 4)
        peepholes = self.direction.peepholes
        p: Sequence[Operand | None] = (None, None, None)
        if peepholes is not None:
            p = self.call.add_all("split", peepholes, indices_or_sections=3, axis=0)
        i = self._activated(0, self._peeped(i, p[0], c))
        if self.call.int_attr("input_forget", 0):
            f = self.call.add("subtract", self.call.like(i, 1), i)
        else:
            f = self._activated(0, self._peeped(f, p[2], c))
        c = self._add(self._scaled(f, c), self._scaled(i, self._activated(1, new)))
        o = self._activated(0, self._peeped(o, p[1], c))
        return self._scaled(o, self.activations[2](c)), c

    def _gru_step(self, inputs: Operand, h: Operand) -> Operand:
        z_in, r_in, new_in = self._gates(inputs, 3)
        z_state, r_state, new_state = self._gates(self._recurrent(h), 3)
        z = self._activated(0, self._add(z_in, z_state))
        r = self._activated(0, self._add(r_in, r_state))
        if self.call.int_attr("linear_before_reset", 0):
            of_state = self._scaled(r, new_state)
        else:
            weights = self._gates(self.direction.r, 3, axis=0)[2]
            product = self._matmul(self._scaled(r, h), weights)
            of_state = self._add(product, self._gates(self.direction.r_bias, 3, axis=0)[2])
        new = self._activated(1, self._add(new_in, of_state))
        rest = self.call.add("subtract", self.call.like(z, 1), z)
        return self._add(self._scaled(rest, new), self._scaled(z, h))

    def _recurrent(self, h: Operand) -> Operand:
        return self._add(self._matmul(h, self.direction.r), self.direction.r_bias)

    def _matmul(self, rows: Operand, weights: Operand) -> Operand:
        return self.call.add("matmul", rows, self.call.add("permute_dims", weights))

    def _gates(self, value: Operand, count: int, axis: int = 1) -> tuple[Operand, ...]:
        return self.call.add_all("split", value, indices_or_sections=count, axis=axis)

    def _peeped(self, gate: Operand, weights: Operand | None, c: Operand) -> Operand:
        return gate if weights is None else self._add(gate, self._scaled(weights, c))

    def _activated(self, number: int, gate: Operand) -> Operand:
        """Return an activation of a gate, which is clipped before."""
        if "clip" in self.call.attributes:
            limit = self.call.float_attr("clip")
            gate = self.call.add("clip", gate, min=-limit, max=limit)
        return self.activations[number](gate)

    def _add(self, a: Operand, b: Operand) -> Operand:
        return self.call.add("add", a, b)

    def _scaled(self, a: Operand, b: Operand) -> Operand:
        return self.call.add("multiply", a, b)
