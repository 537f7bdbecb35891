"""Read symbolic programs with ranges of their sizes, and the sizes to tune. Nothing is executed."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from compiler.ir.analysis.structural import structural_hash
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.text.printer import script
from compiler.ir.verify.build_problem import build_problem
from compiler.ir.verify.verify import VerifyError
from compiler.target.target import Target
from service.common.errors import Flaw, UnprocessableError
from service.common.new_workload import NewWorkload
from service.intake.text_reader import child_reader
from service.intake.workload_text import num_blocks, parse_workload, pointer_of, stored_form
from service.wire.requests import MAX_WEIGHT, Workload
from tuner.shapes.ranges import Ranges, with_all_ranges
from tuner.shapes.sizes import ranges_of
from tuner.shapes.tune_shapes import tasks_of_sizes, tuned_sizes


class NewSize(BaseModel):
    """A size to tune; its weight makes all sizes count the same."""

    model_config = ConfigDict(frozen=True)

    sizes: Mapping[str, int]
    workload: NewWorkload
    weight: float


class NewShapes(BaseModel):
    """A symbolic program of a request: its text with all ranges, and the sizes to tune."""

    model_config = ConfigDict(frozen=True)

    name: str
    workload_key: str
    script: str
    ranges: Mapping[str, tuple[int, int]]
    sizes: tuple[NewSize, ...]


def read_shapes(workload: Workload, ranges: Ranges, num_sizes: int) -> NewShapes:
    """Return a symbolic program of a request; parse it in a child if one is set.

    Args:
        workload: The program.
        ranges: The least and the greatest size of each symbolic extent that has no range yet.
        num_sizes: The limit on sizes to tune.

    Raises:
        UnprocessableError: If the program is not legal at all sizes, or a range is wrong.
        ServiceBusyError: If too many requests wait for a child process.
    """
    reader = child_reader()
    if reader is None:
        return read_shapes_here(workload, ranges, num_sizes)
    asked = {"workload": workload.model_dump(), "ranges": dict(ranges), "num_sizes": num_sizes}
    return NewShapes.model_validate(reader.ask("shapes", **asked))


def read_shapes_here(workload: Workload, ranges: Ranges, num_sizes: int) -> NewShapes:
    """Return a symbolic program of a request, read in this process.

    Raises:
        UnprocessableError: If the program is not legal at all sizes, or a range is wrong.
    """
    func, pointer = parse_workload(workload), pointer_of(workload)
    if not symbolic_vars(func):
        raise _refused(
            f"function {func.name} has no symbolic extent, which ranges are of: submit it as a job",
            pointer,
        )
    if (problem := build_problem(func)) is not None:
        raise _refused(f"function {func.name}: {problem}", pointer)
    try:
        symbolic = with_all_ranges(func, ranges)
        sizes = tuned_sizes(symbolic, num_sizes)
        # Sizes are tuned alike for any target.
        tasks = tasks_of_sizes(symbolic, Target("cpu"), sizes)
    except VerifyError as error:
        raise _refused(str(error), pointer) from error
    except ValueError as error:
        raise _refused(str(error), "/ranges") from error
    num_blocks(tasks[-1].func, pointer)
    return NewShapes(
        name=symbolic.name[:255],
        workload_key=structural_hash(symbolic),
        script=script(symbolic),
        ranges=ranges_of(symbolic),
        sizes=tuple(
            NewSize(
                sizes=dict(of_size),
                workload=stored_form(task.func, pointer),
                weight=min(task.weight, MAX_WEIGHT),
            )
            for of_size, task in zip(sizes, tasks, strict=True)
        ),
    )


def _refused(detail: str, pointer: str) -> UnprocessableError:
    return UnprocessableError(detail, Flaw(detail, pointer))
