"""`@primitive`: the only declaration of a schedule primitive.

mypy, editors and `help()` show the signature of a method of `Schedule`. All data for traces follows
from it: the arguments of an instruction, the handles that it returns, and its name in JSON.

    @primitive()
    def compute_at(self, block: BlockRV | str, loop: LoopRV, index: int = -1) -> None

declares the instruction `compute_at` (TVM: ComputeAt) of a block, a loop and an optional integer,
which returns no handles.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from compiler.keywords import check_keywords, keywords_of
from compiler.schedule.error import ScheduleError
from compiler.schedule.methods.check_arguments import argument_check
from compiler.schedule.state import State
from compiler.schedule.trace.instruction_kinds import (
    HandleKind,
    InstructionKind,
    Parameter,
    ParameterKind,
    register,
)

S = TypeVar("S", bound=State)
P = ParamSpec("P")
R = TypeVar("R")

_KINDS: Mapping[str, ParameterKind] = {
    "BlockRV | str": "block",
    "Sequence[BlockRV | str] | None": "blocks",
    "LoopRV": "loop",
    "BlockRV | LoopRV | str": "block_or_loop",
    "LoopRV | Sequence[BlockRV | str]": "loop_or_blocks",
    "Sequence[FactorLike]": "factors",
    "Sequence[FactorLike] | None": "factors",
    "int": "int",
    "bool": "bool",
    "str": "str",
    "str | None": "optional_str",
    "Note": "note",
    "Sequence[int]": "ints",
    "Sequence[float]": "probabilities",
    "BufferLike": "buffer",
    "BufferIndex": "int",
    "IndexMapLike": "index_map",
    "RangesLike": "index_map",
    "PadValueLike | None": "pad_value",
}
"""The kind of a parameter, by its annotation."""

_OUTPUTS: Mapping[str, HandleKind] = {"BlockRV": "b", "LoopRV": "l", "ExprRV": "v"}
"""The kind of handle that a method returns, by its annotation."""

# TVM passes these among the inputs of an instruction, and all others among its attributes.
_INPUT_KINDS = frozenset(
    {
        "block",
        "blocks",
        "loop",
        "loops",
        "block_or_loop",
        "loop_or_blocks",
        "factors",
        "index_map",
        "note",
    }
)


def primitive(
    tvm_name: str | None = None,
    *,
    num_outputs: int | str | None = None,
    is_pure: bool = False,
    inputs: tuple[str, ...] = (),
    positional: tuple[str, ...] = (),
    shorthands: tuple[str, ...] = (),
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Declare a method of `Schedule` as a primitive that traces record.

    A parameter called `decision` makes it a sampling instruction, which is pure.

    Args:
        tvm_name: TVM's name of the instruction, by default the method's name in camel case.
        num_outputs: The number of handles, for a method that returns a list: a number, the
            parameter that determines it, or None if the program decides.
        is_pure: Whether it leaves the program unchanged.
        inputs: Parameters that TVM has among the inputs although their kind is an attribute's.
        positional: Parameters that are printed without their names.
        shorthands: Parameters that instructions lack, because others express the same.
    """

    def declare(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        signature = inspect.signature(method)
        parameters = [*signature.parameters.values()][1:]
        decides = any(p.name == "decision" for p in parameters)
        handles, count = _outputs_of(signature.return_annotation, num_outputs)

        def parameter(p: inspect.Parameter) -> Parameter:
            kind = _kind_of(p, is_count=p.name == num_outputs)
            return Parameter(
                "loops" if kind == "loops" else p.name,
                kind,
                # Arguments that determine a decision or the number of results are always recorded.
                is_optional=p.default is not p.empty and kind != "factors" and not decides,
                is_attribute=kind not in _INPUT_KINDS and p.name not in inputs,
                is_positional=kind == "loops" or p.name in positional,
            )

        instruction = InstructionKind(
            method.__name__,
            tvm_name or "".join(word.title() for word in method.__name__.split("_")),
            tuple(parameter(p) for p in parameters if p.name not in ("decision", *shorthands)),
            handles,
            count,
            is_pure or decides,
            decides,
        )
        register(instruction)
        return undone_if_refused(instruction)(method)

    return declare


def undone_if_refused(
    instruction: InstructionKind,
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Wrap a primitive: if it is refused, record nothing and limit what the error shows.

    Arguments of a wrong type are refused before the primitive runs.
    """

    def decorate(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        problem_of = argument_check(method, instruction)
        keywords = keywords_of(method)

        @wraps(method)
        def checked(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            num_before = len(self._instructions)
            check_keywords(method.__name__, kwargs, keywords)
            try:
                problem = problem_of(*args, **kwargs)
                if problem is not None:
                    raise self._fail(instruction.name, problem)
                return method(self, *args, **kwargs)
            except ScheduleError as error:
                del self._instructions[num_before:]
                error.detail = self._detail
                raise

        return checked

    return decorate


def _kind_of(parameter: inspect.Parameter, *, is_count: bool) -> ParameterKind:
    if parameter.kind is parameter.VAR_POSITIONAL:
        assert parameter.annotation == "LoopRV", "only loops are given in a row"
        return "loops"
    kind = _KINDS[parameter.annotation]
    return "count" if is_count and kind == "int" else kind


def _outputs_of(
    annotation: str, num_outputs: int | str | None
) -> tuple[HandleKind | None, int | str | None]:
    """Return the kind and the number of the handles that a method returns."""
    if annotation == "None":
        return None, 0
    if annotation in _OUTPUTS:
        return _OUTPUTS[annotation], 1
    item = annotation.removeprefix("list[").removesuffix("]").removesuffix(" | None")
    return _OUTPUTS[item], num_outputs
