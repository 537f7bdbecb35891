"""`lw.compile`: from a model to an object that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from compiler.backends.backend import backend_of, host_labels
from compiler.graph.rewrite.layout_regions import MAX_PIXELS
from compiler.keywords import suggests_keywords
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target, complete_target
from compiler.user_cache import default_directory
from loopwright.client.client import Client
from loopwright.errors import FallbackWarning
from loopwright.local.measurable import require_measurable
from loopwright.models.executable import Executable
from loopwright.models.first_proposals import first_proposals
from loopwright.models.image_layouts import fastest_layout
from loopwright.models.locked_model import locked_model
from loopwright.models.read_model import ExampleInputs, Model, read_model
from loopwright.models.tuned_model import (
    ModelTuning,
    faster_model,
    layout_here,
    tune_here,
    tune_there,
)
from loopwright.user_warnings import warn_user
from service.wire.requests import MAX_SEED
from service.wire.trial_limit import MAX_TRIALS
from tuner.replay import base_model

_SMALL_BYTES = 8 << 10
"""Programs whose arrays have no more bytes take about as long as a call. Chosen."""
_WITHOUT_TRIALS = "without trials and url, a package for that CPU is compiled, and runs there"


@suggests_keywords
def compile(
    model: Model,
    example_inputs: ExampleInputs = None,
    *,
    target: Target | str = "cpu",
    trials: int | None = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    fixed_inputs: Mapping[str, NDArray[Any]] | None = None,
    url: str | None = None,
    token: str | None = None,
    seed: int = 0,
    progress: bool | None = None,
    lock: str | Path | None = None,
) -> Executable:
    """Compile a whole model.

    Without trials, the base model proposes a schedule for each program of the model, which takes
    seconds. With trials, other layouts of images are timed, whole models in turns; then a search
    measures schedules of the programs that matter, and stores each measurement at once: the same
    call continues a search that was interrupted. At the end, whole models take turns again, and the
    faster one is returned.

    Args:
        model: An ONNX model, as a file, as bytes or in memory; a graph; or a module of PyTorch.
        example_inputs: The arguments of a call of the module, in order or by name; their shapes
            and types are those of the model.
        target: The CPU to compile for. If this machine can't run the code, it can be saved alone.
        trials: The limit on trials of all programs together, with those that are recorded; a
            program needs 16. With None, the search of each program ends once 64 trials in a row
            shortened its time by less than 1%.
        shapes: The shapes of inputs by name, for models with symbolic axes.
        fixed_inputs: The values of inputs by name; they become constants of the model.
        url: The server that measures, by default this process. Without trials, schedules are taken
            from there.
        token: The access token of that server.
        seed: Of the choices among schedules.
        progress: Whether to draw a progress bar; by default only on a terminal or in a notebook.
        lock: A lock file with all programs of the model for this target: their schedules are used,
            and nothing is proposed, measured or asked of a server.

    Raises:
        LockError: If the lock file is damaged, lacks a program, or is of another compiler.
        ModelError: If the model is malformed, or needs what is not supported: with the node, the
            reason, and what to do if something helps.
        TargetError: If the target is unknown, or trials or a server are asked for, and this host
            can't run code for it.
        BuildError: If a program of the model can't be built.
        ValueError: If `trials` or `seed` is out of range, or comes with a lock file.
        ServerUnreachableError: If no server answers at `url`.
        LoopwrightError: If another process tunes a program of the model now.
    """
    if lock is not None:
        if trials != 0 or url is not None:
            raise ValueError("lock is given with trials or url: a lock file decides all schedules")
        cpu = _cpu(target)
        return locked_model(read_model(model, example_inputs, shapes, fixed_inputs), cpu, lock)
    with Client(url, token) if url is not None else nullcontext() as client:
        return compile_by(
            client,
            model,
            example_inputs,
            target=target,
            trials=trials,
            shapes=shapes,
            fixed_inputs=fixed_inputs,
            seed=seed,
            progress=progress,
        )


@suggests_keywords
def compile_by(
    client: Client | None,
    model: Model,
    example_inputs: ExampleInputs = None,
    *,
    target: Target | str = "cpu",
    trials: int | None = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    fixed_inputs: Mapping[str, NDArray[Any]] | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Executable:
    """Compile a whole model as `compile` does, by a client of a server, or in this process."""
    _check_number("trials", trials, MAX_TRIALS, "or None to end when gains are small")
    _check_number("seed", seed, MAX_SEED)
    cpu = _cpu(target)
    if client is not None or trials != 0:
        require_measurable("the model", cpu, _WITHOUT_TRIALS)
    if client is not None:
        client.health()  # before seconds are spent
    graph = read_model(model, example_inputs, shapes, fixed_inputs)
    base = base_model.base_model(default_directory())
    tuning = ModelTuning(trials, seed, progress)
    begun = None
    if client is None and trials != 0:
        begun = layout_here(graph, cpu, base, tuning)
    max_pixels = MAX_PIXELS if begun is None else begun
    compilation = first_proposals(graph, cpu, base.model, seed, max_pixels)
    result = compilation.executable(compilation.first)
    if trials != 0 and begun is None:
        compilation, result = fastest_layout(
            compilation, result, base.model, seed, progress=progress
        )
    if client is not None:
        tried = tune_there(compilation, client, tuning)
        result = faster_model(compilation, result, tried, seed)
    elif trials != 0:
        tried = tune_here(compilation, result, base, tuning)
        result = faster_model(compilation, result, tried, seed)
    _warn(result)
    return result


def _cpu(target: Target | str) -> CpuTarget:
    parsed_target = complete_target(target, host_labels)
    backend_of(parsed_target).require_host(parsed_target)
    return CpuTarget.of(parsed_target)


def _check_number(name: str, number: object, limit: int, otherwise: str = "") -> None:
    if number is None and otherwise:
        return
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= limit:
        expected = f"a number from 0 to {limit}"
        expected += f", {otherwise}" if otherwise else ""
        raise ValueError(f"{name} is {number!r}: expected {expected}")


def _warn(model: Executable) -> None:
    """Say which programs have the default schedule although they are not small."""
    kernels = model.inspect().kernels
    names = [k.name for k in kernels if k.problem and k.arrays_bytes > _SMALL_BYTES]
    if names:
        warn_user(
            f"{len(names)} of {len(kernels)} programs of the model have the default schedule:"
            f" {', '.join(names)}; inspect().show() prints the reasons",
            FallbackWarning,
        )
