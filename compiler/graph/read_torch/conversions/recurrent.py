"""Recurrent layers, which torch.export keeps whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.conversions.moves import sliced
from compiler.graph.read_torch.registry import aten


@dataclass(frozen=True)
class _Layers:
    """The layers of a node, whose gates have the order of graph operators."""

    call: TorchCall
    op: str

    @property
    def num_directions(self) -> int:
        return 2 if self.call.flag("bidirectional") else 1

    def run(self, states: list[Operand]) -> tuple[Operand, ...]:
        """Return the states after each step, and the last ones of all layers."""
        call = self.call
        x = call.operand("input")
        if x.type.rank != 3:
            raise ModelError(f"the inputs have shape {x.type.shape}: expected 3 dimensions")
        if call.number("dropout") and call.flag("train"):
            raise ModelError("dropout is not supported", advice="call module.eval()")
        is_batch_first = call.flag("batch_first")
        x = self._exchanged(x) if is_batch_first else x
        last: list[tuple[Operand, ...]] = []
        for layer in range(call.integer("num_layers")):
            results = [
                self._direction(x, states, layer * self.num_directions + k, is_reverse=k == 1)
                for k in range(self.num_directions)
            ]
            steps = [result[0] for result in results]
            x = steps[0] if len(steps) == 1 else call.add("concat", *steps, axis=2)
            last += [result[1:] for result in results]
        ends = [self._stacked(list(each)) for each in zip(*last, strict=True)]
        return self._exchanged(x) if is_batch_first else x, *ends

    def _exchanged(self, x: Operand) -> Operand:
        return self.call.add("permute_dims", x, axes=(1, 0, 2))

    def _stacked(self, parts: list[Operand]) -> Operand:
        rows = [self.call.add("expand_dims", part, axis=(0,)) for part in parts]
        return rows[0] if len(rows) == 1 else self.call.add("concat", *rows, axis=0)

    def _parameters(self, number: int) -> list[Operand]:
        """Return the weights and biases of a direction of a layer."""
        call = self.call
        given = call.operands("params")
        has_biases = call.flag("has_biases")
        size = 4 if has_biases else 2
        if len(given) != size * self.num_directions * call.integer("num_layers"):
            raise ModelError("projections (proj_size) are not supported")
        parameters = given[number * size : (number + 1) * size]
        if not has_biases:
            weight = parameters[1].type
            parameters += [call.constant(np.zeros(weight.static_shape[:1], weight.dtype))] * 2
        return parameters

    def _direction(
        self, x: Operand, states: list[Operand], number: int, *, is_reverse: bool
    ) -> tuple[Operand, ...]:
        """Return the states after each step, the last one, and the last cell state if any."""
        call = self.call
        first = [
            call.add("squeeze", sliced(call, state, 0, number, number + 1), axis=(0,))
            for state in states
        ]
        x = call.add("flip", x, axis=0) if is_reverse else x
        steps, *cell = call.add_all(self.op, x, *first, *self._parameters(number))
        count = steps.type.static_shape[0]
        last = call.add("squeeze", sliced(call, steps, 0, count - 1, count), axis=(0,))
        return call.add("flip", steps, axis=0) if is_reverse else steps, last, *cell


@aten("lstm.input")
def _lstm(call: TorchCall) -> tuple[Operand, ...]:
    return _Layers(call, "nn.lstm").run(call.operands("hx"))


@aten("gru.input")
def _gru(call: TorchCall) -> tuple[Operand, ...]:
    return _Layers(call, "nn.gru").run([call.operand("hx")])


@aten("rnn_tanh.input")
def _rnn(call: TorchCall) -> tuple[Operand, ...]:
    return _Layers(call, "nn.rnn").run([call.operand("hx")])
