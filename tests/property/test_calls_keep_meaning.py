"""A program that is split at random into functions that call each other computes the same.

The program is a list of stages, each of which makes a new vector of earlier ones. NumPy computes
what they should come to; the module is parsed, inlined and evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.modules.inline_calls import entries
from compiler.ir.text.printer import script
from compiler.script import parse, parse_module

SIZE = 4
INPUTS = 2
KINDS = {
    "shift": "{out}[i] = {a}[i] + 3",
    "product": "{out}[i] = {a}[i] * {b}[i]",
    "reverse": "{out}[i] = {a}[3 - i]",
    "difference": "{out}[i] = {a}[i] - {b}[i]",
}

Vector = NDArray[np.int32]


@dataclass(frozen=True)
class Stage:
    """Makes vector number `out` of two earlier ones."""

    kind: str
    out: int
    a: int
    b: int

    @property
    def reads(self) -> set[int]:
        return {self.a, self.b} if self.kind in ("product", "difference") else {self.a}

    def compute(self, values: list[Vector]) -> Vector:
        a, b = values[self.a], values[self.b]
        match self.kind:
            case "shift":
                return a + np.int32(3)
            case "product":
                return a * b
            case "reverse":
                return a[::-1]
            case _:
                return a - b


@st.composite
def programs(draw: st.DrawFn) -> list[Stage]:
    stages: list[Stage] = []
    for out in range(INPUTS, INPUTS + draw(st.integers(1, 6))):
        a, b = (draw(st.integers(0, out - 1)) for _ in "ab")
        stages.append(Stage(draw(st.sampled_from(sorted(KINDS))), out, a, b))
    return stages


class Splitter:
    """Writes a program as a module, with calls where it is drawn so."""

    def __init__(self, data: st.DataObject, stages: list[Stage]) -> None:
        self._draw = data.draw
        self._stages = stages
        self._numbers = count()
        self.functions: list[str] = []

    def function(self, name: str, low: int, high: int, params: list[int]) -> None:
        """Write a function of the stages from `low` to `high`."""
        inner = sorted({stage.out for stage in self._stages[low:high]} - set(params))
        prefix = self._draw(st.sampled_from("ABX"))
        body = [f'{prefix}{p} = T.alloc_buffer(({SIZE},), "int32")' for p in inner]
        start = low
        while low < high:
            end = self._draw(st.integers(low + 1, high))
            # A function that calls another for all of its stages could do so without end.
            may_call = end - low < high - start or name == "main"
            body += self._part(prefix, low, end, may_call=may_call)
            low = end
        # What it calls, and what it allocates, is of a constant size.
        may_vary = all(line.lstrip().startswith(("for", prefix)) for line in body) and not inner
        size = '"n"' if may_vary and name != "main" and self._draw(st.booleans()) else str(SIZE)
        head = ", ".join(f'{prefix}{p}: T.Buffer(({size},), "int32")' for p in params)
        lines = "".join(f"        {line}\n" for line in body)
        self.functions.append(f"    @T.prim_func\n    def {name}({head}):\n{lines}")

    def _part(self, prefix: str, low: int, end: int, *, may_call: bool) -> list[str]:
        if not (may_call and self._draw(st.booleans())):
            return [line for stage in self._stages[low:end] for line in self._loop(prefix, stage)]
        name = f"f{next(self._numbers)}"
        part = self._stages[low:end]
        made = {stage.out for stage in part}
        later = {read for stage in self._stages[end:] for read in stage.reads}
        inputs = sorted({read for stage in part for read in stage.reads} - made)
        outputs = sorted(made & (later | {self._stages[-1].out}))
        if not outputs:  # nothing needs what these stages make
            return [line for stage in part for line in self._loop(prefix, stage)]
        self.function(name, low, end, inputs + outputs)
        owner = self._draw(st.sampled_from(["Module", "cls"]))
        suffix = self._draw(st.sampled_from(["", ".data"]))
        args = ", ".join(f"{prefix}{p}{suffix}" for p in inputs + outputs)
        return [f"{owner}.{name}({args})"]

    def _loop(self, prefix: str, stage: Stage) -> list[str]:
        names = {key: f"{prefix}{getattr(stage, key)}" for key in ("out", "a", "b")}
        return [f"for i in range({SIZE}):", f"    {KINDS[stage.kind].format(**names)}"]


@given(st.data(), programs())
def test_a_program_in_functions_computes_what_numpy_does(
    data: st.DataObject, stages: list[Stage]
) -> None:
    splitter = Splitter(data, stages)
    last = stages[-1].out
    splitter.function("main", 0, len(stages), [*range(INPUTS), last])
    order = data.draw(st.permutations(splitter.functions))
    text = "@I.ir_module\nclass Module:\n" + "\n".join(order)

    values = [np.arange(SIZE, dtype="int32") - 1, np.array([2, -3, 5, 7], "int32")]
    inputs = list(values)
    for stage in stages:
        values.append(stage.compute(values))

    module = parse_module(text)
    assert [func.name for func in entries(module)] == ["main"]
    func = parse(text)
    arrays = dict(zip((b.name for b in func.buffers), [*inputs, values[-1] * 0], strict=True))
    np.testing.assert_array_equal(evaluate(func, arrays)[func.buffers[-1].name], values[-1])
    assert structural_equal(parse_module(script(module)), module)
    assert structural_equal(parse(script(module)), func)
