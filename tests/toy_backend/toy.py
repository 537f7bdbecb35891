"""A third kind of target, in one file: it "compiles" a program into a call of the evaluator.

Its clock counts loops instead of time, so that the fastest schedule is known: see `cost_secs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from compiler.backends.backend import BACKENDS, Backend, SourceCode
from compiler.backends.module import Module
from compiler.executor.arrays import ArrayCheck, check_overlaps
from compiler.executor.artifact import Artifact
from compiler.executor.memory import address_of
from compiler.executor.params import Param
from compiler.ir.core.nodes import For, IntImm, Stmt
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.text.printer import script
from compiler.runtime.resources import KernelResources
from compiler.script.parser import parse
from compiler.target.error import TargetError
from compiler.target.target import TARGET_KINDS, Target
from tuner.space.registry import SEARCH_SPACES
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.search_space import FeatureMatrix, Mask, SearchSpace
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

ROWS = (1, 2, 4, 8, 16, 32)
COLUMNS = (1, 2, 4, 8)
RESOURCES = KernelResources(registers=1, stack_bytes=2, spill_bytes=3, shared_bytes=4)
_STEP_SECS = 1e-5


@dataclass(frozen=True, slots=True, repr=False)
class ToyTarget(Target):
    kind: ClassVar[str] = "toy"

    @property
    def label(self) -> str:
        return "toy/evaluator"

    @property
    def num_cores(self) -> int:
        return 1

    @classmethod
    def _canonical(cls, text: str) -> str:
        if text.split() != ["toy"]:
            raise TargetError(f"a toy has no options: {text!r}")
        return "toy"


class ToyRun:
    def __init__(self, func: PrimFunc, arrays: Sequence[Any]) -> None:
        self._func = func
        self._arrays = {b.name: a for b, a in zip(func.buffers, arrays, strict=True)}
        self.secs = cost_secs(func)

    def __call__(self) -> None:
        for name, result in evaluate(self._func, self._arrays).items():
            np.copyto(self._arrays[name], result)


class ToyModule(Module):
    languages = ("py",)

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        self.bind(*arrays, num_threads=num_threads)()

    def bind(self, *arrays: Any, num_threads: int | None = None) -> Callable[[], None]:
        params = self.artifact.params
        checks = [ArrayCheck(param) for param in params]
        checked = [check.array(a) for check, a in zip(checks, arrays, strict=True)]
        outputs = [number for number, param in enumerate(params) if param.is_output]
        check_overlaps(checks, [address_of(array) for array in checked], outputs)
        return ToyRun(parse(self.artifact.code.decode()), checked)

    def close(self) -> None:
        pass


class ToyBackend(Backend):
    kind = "toy"
    module_class = ToyModule
    source_language = "TVMScript"

    def toolchain(self) -> str:
        return "toy evaluator 1"

    def host_targets(self) -> Sequence[Target]:
        return (ToyTarget("toy"),)

    def lower(self, func: PrimFunc, target: Target) -> Stmt:
        return func.body

    def emit(self, func: PrimFunc, target: Target) -> SourceCode:
        return SourceCode(script(func))

    def compile(
        self, name: str, params: tuple[Param, ...], source: SourceCode, target: Target
    ) -> Artifact:
        return Artifact(
            name=name,
            target=target.name,
            triple="",
            features="",
            toolchain=self.toolchain(),
            params=params,
            workspace_bytes=source.workspace_bytes,
            num_threads=source.num_threads,
            code=source.text.encode(),
            backend=self.kind,
        )

    def resources(self, artifact: Artifact) -> KernelResources:
        return RESOURCES

    def time_calls(self, run: Callable[[], object], num_threads: int, calls: int) -> float:
        run()
        assert isinstance(run, ToyRun)
        return run.secs


class SplitBoth:
    """Splits the rows and the columns of the only block: one knob each."""

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        split = draft.fork("split_both")
        if len(split.block_facts()) != 1:
            return []  # a rule leaves programs alone that it does not know
        (block,) = split.block_facts()
        rows, columns = split.loops(block)
        split.schedule.split(rows, [None, split.choose(ROWS)[0]])
        split.schedule.split(columns, [None, split.choose(COLUMNS)[0]])
        return [split]


def _features(sketch: Sketch, choices: Ints, target: Target) -> FeatureMatrix:
    rows, columns = sketch.values(choices).T
    return np.stack([rows, columns, 1 / rows + 1 / columns], axis=1).astype(np.float32)


def _passes(sketch: Sketch, choices: Ints, target: Target) -> Mask:
    """Drop what leaves the rows whole."""
    kept: Mask = sketch.values(choices)[:, 0] > 1
    return kept


SPACE = SearchSpace(
    kind="toy",
    first_rules=(),
    rules=(SplitBoth(),),
    feature_version=1,
    feature_names=("rows", "columns", "steps"),
    estimate="steps",
    features=_features,
    passes=_passes,
)


def loop_extents(func: PrimFunc) -> list[int]:
    """Return the extents of the loops, the outermost first."""
    loops = (node for node in walk(func.body) if isinstance(node, For))
    return [loop.extent.value for loop in loops if isinstance(loop.extent, IntImm)]


def cost_secs(func: PrimFunc) -> float:
    """Return the time by the toy's clock: pieces of rows weigh eight times those of columns."""
    rows, *rest = loop_extents(func)
    columns = rest[1] if len(rest) > 1 else rest[0]
    return _STEP_SECS * (8 * rows + columns)


@contextmanager
def registered() -> Iterator[None]:
    """Have the toy for a while."""
    TARGET_KINDS.register("toy", ToyTarget)
    BACKENDS.register("toy", ToyBackend())
    SEARCH_SPACES.register("toy", SPACE)
    try:
        yield
    finally:
        for registry in (TARGET_KINDS, BACKENDS, SEARCH_SPACES):
            registry.unregister("toy")
