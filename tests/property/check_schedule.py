"""Check a scheduled program against the original one, after any primitives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from unittest import mock

import numpy as np

from compiler.backends.cpu.codegen import instruction_estimate
from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.analysis.specialize import specialize
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.core.nodes import Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate, poisoned
from compiler.ir.interpret.oracle.oracle import OracleError, compare, interpret
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.script import parse
from loopwright.script import T
from tests.property.generators.schedules import (
    Array,
    is_concurrent,
    is_exact,
    may_be_unbuilt,
    reverse_concurrent_loops,
    whole_number_inputs,
)

TARGET = "cpu -num-cores=2"
SYMBOLIC_EXTENT = 5


def numbered(func: PrimFunc) -> PrimFunc:
    """Return a program that can run: replace symbolic extents by numbers."""
    symbols = symbolic_vars(func)
    return specialize(func, dict.fromkeys(symbols, SYMBOLIC_EXTENT)) if symbols else func


@dataclass
class Meaning:
    """The results of a program for some inputs, which its schedules must compute, too."""

    func: PrimFunc

    @cached_property
    def numbered(self) -> PrimFunc:
        return numbered(self.func)

    @cached_property
    def inputs(self) -> dict[str, Array]:
        return whole_number_inputs(self.numbered, seed=1)

    @cached_property
    def expected(self) -> dict[str, Array]:
        # The oracle runs threads that share memory one after another.
        if may_be_unbuilt(self.numbered):
            return evaluate(self.numbered, self.inputs)
        try:
            return interpret(self.numbered, self.inputs)
        except OracleError:
            return evaluate(self.numbered, self.inputs)

    def hold(self, schedule: Schedule) -> None:
        """Check the conditions that must hold after each primitive.

        The result verifies. Its text parses to the same program. Its trace, read from JSON, replays
        to it. It computes the same results, in any order of concurrent loops.

        Raises:
            Exception: If a condition does not hold; an AssertionError if a result differs.
        """
        self.hold_form(schedule)
        runnable = numbered(schedule.func)
        self.assert_same(evaluate(runnable, self.inputs))
        if is_concurrent(runnable):
            self.assert_same(evaluate(reverse_concurrent_loops(runnable), self.inputs))

    def hold_form(self, schedule: Schedule) -> None:
        """Check the conditions of `hold` but for the results."""
        scheduled = schedule.func
        verify(scheduled)
        assert structural_equal(parse(scheduled.script()), scheduled), "the text is another program"
        self._check_replay(schedule)

    def hold_built(self, schedule: Schedule) -> bool:
        """Check the results of the built schedule; return whether it could be built.

        Lowering refuses some threads and pipelines. The results are the same if parameters that are
        only read are passed as constants, whose copies are made once.
        """
        runnable = numbered(schedule.func)
        try:
            self.assert_same(self._run(runnable))
            if runnable is not schedule.func:
                # What is legal at one size need not be proved to be legal at all.
                with suppress(BuildError):
                    self.assert_same(self._run(schedule.func))
            if self._constants:
                self.assert_same(self._run(runnable, self._constants))
            if is_concurrent(runnable):
                self.assert_same(self._run(reverse_concurrent_loops(runnable)))
        except BuildError:
            if may_be_unbuilt(runnable):
                return False
            raise
        return True

    def hold_texts(self, schedule: Schedule) -> None:
        """Check that a trace replays the same as Python code, and after simplification."""
        again = Schedule(self.func)
        exec(schedule.trace.python(), {"sch": again, "T": T})
        scheduled = schedule.func
        assert structural_equal(again.func, scheduled), "the trace as Python does something else"
        simplified = schedule.trace.simplified().apply_to(self.func).func
        assert structural_equal(simplified, scheduled), "the simplified trace does something else"

    def _check_replay(self, schedule: Schedule) -> None:
        trace = Trace.from_json(json.loads(json.dumps(schedule.trace.to_json())))
        assert trace == schedule.trace, "the trace is another one after JSON"
        replayed = trace.apply_to(self.func).func
        assert structural_equal(replayed, schedule.func), "the trace does something else"

    @cached_property
    def _constants(self) -> dict[str, Array]:
        """Return the inputs that are never written, except the first, if there are several."""
        only_read = [name for name in self.inputs if name not in self.expected]
        return {name: self.inputs[name] for name in only_read[1:] or only_read}

    def _run(
        self, func: PrimFunc, constants: Mapping[str, Array] = MappingProxyType({})
    ) -> dict[str, Array]:
        arrays = {
            p.name: self.inputs[p.name].copy() if p.name in self.inputs else poisoned(p)
            for p in numbered(func).buffers
        }
        # The programs are small, but their parallel loops must be launched, too.
        with mock.patch.object(instruction_estimate, "LAUNCH_INSTRUCTIONS", 0):
            module = build(func, TARGET, constants)
        numbers = [SYMBOLIC_EXTENT for param in func.params if isinstance(param, Var)]
        module(*numbers, *(array for name, array in arrays.items() if name not in constants))
        module.close()
        return arrays

    def assert_same(self, got: dict[str, Array]) -> None:
        """Compare the results of a schedule with those of the program.

        Raises:
            AssertionError: If they differ.
        """
        if not is_exact(self.numbered):
            compare(self.numbered, got, self.expected)
            return
        for name, value in self.expected.items():
            np.testing.assert_array_equal(got[name], value, err_msg=name)
