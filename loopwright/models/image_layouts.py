"""The layout of images in a model: the limit on images with channels last, chosen by measurement.

Whole models take turns, since a layout also decides which transpositions remain between programs.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.graph.nodes import Graph
from compiler.graph.rewrite.layout_regions import MAX_PIXELS
from compiler.graph.tasks import ModelTask
from compiler.package.lower_model import lower_model
from compiler.target.cpu import CpuTarget
from loopwright.client.progress import TrialProgress, format_ratio
from loopwright.models.comparison import compare_models, inputs_of
from loopwright.models.compilation import Compilation
from loopwright.models.executable import Executable
from loopwright.models.first_proposals import first_proposals
from tuner.task import Task

PIXEL_LIMITS = (MAX_PIXELS, 0, 1024)
"""Pixels of the largest images with channels last, in the order of trial: the limit for models
without trials, no such images, and images up to 32 x 32. Source: a Zen 4, first proposals. Without
such images, mobilenetv2, open_nsfw and ResNet-50 have 0.75, 0.85 and 0.91 of the speed; up to 1,024
pixels, 0.96, 1.02 and 1.00, ddddocr 1.20; up to 4,096 pixels, 0.97, 1.00, 1.01 and 1.18.
"""


def fastest_layout(
    first: Compilation,
    executable: Executable,
    cost_model: bytes,
    seed: int,
    *,
    progress: bool | None = None,
) -> tuple[Compilation, Executable]:
    """Return a model in the layout that is the fastest with first proposals.

    Another layout is chosen if the whole interval of its speed-up is above 1.

    Args:
        first: The model in the layout for models without trials.
        executable: The same model, built.
        cost_model: The stored model that proposes schedules.
        seed: Of the proposals, and of the order of turns.
        progress: Whether to draw a progress bar; None only on a terminal or in a notebook.
    """
    layouts = _layouts(first.graph).items()
    others = [limit for limit, tasks in layouts if tasks.keys() != first.tasks.keys()]
    chosen = (first, executable)
    if not others:
        return chosen
    inputs = inputs_of(executable.plan)
    with TrialProgress(f"{executable.plan.name}: layouts", len(others), show=progress) as bar:
        for number, max_pixels in enumerate(others):
            bar.draw(number, f"channels last up to {max_pixels} pixels")
            other = first_proposals(first.graph, first.target, cost_model, seed, max_pixels)
            built = other.executable(other.first)
            comparison = compare_models(chosen[1].executor, built.executor, inputs, seed)
            if comparison.interval[0] > 1.0:
                chosen = (other, built)
            bar.draw(number + 1, format_ratio(comparison.speedup))
    return chosen


def begun_layout(graph: Graph, target: CpuTarget, num_trials: Callable[[Task], int]) -> int | None:
    """Return the limit that an earlier search chose: programs of that layout alone have trials.

    Args:
        graph: The model.
        target: The CPU.
        num_trials: Returns the number of trials of a task so far.
    """
    layouts = _layouts(graph)
    if len(layouts) < 2:
        return None
    for max_pixels, tasks in layouts.items():
        elsewhere = {key for other in layouts if other != max_pixels for key in layouts[other]}
        exclusive = [task for key, task in tasks.items() if key not in elsewhere]
        if any(num_trials(Task(task.func, target, task.weight)) for task in exclusive):
            return max_pixels
    return None


def _layouts(graph: Graph) -> dict[int, dict[str, ModelTask]]:
    """Return the programs of a model under each limit by their keys, each set of programs once."""
    layouts: dict[int, dict[str, ModelTask]] = {}
    for max_pixels in PIXEL_LIMITS:
        tasks = {task.key: task for task in lower_model(graph, max_pixels).tasks}
        if all(tasks.keys() != other.keys() for other in layouts.values()):
            layouts[max_pixels] = tasks
    return layouts
