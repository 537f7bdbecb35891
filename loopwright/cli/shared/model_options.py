"""Arguments and options of commands on whole models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray

from compiler.executor.package import MANIFEST, Package, read_package
from loopwright.cli.shared.failure import InputError
from service.wire.requests import MAX_SEED
from service.wire.trial_limit import MAX_TRIALS

Array: TypeAlias = NDArray[Any]

ModelArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(help="An ONNX model, a .onnx file.", metavar="MODEL", show_default=False),
]
PackageArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(
        help="A compiled model: a .lwm file, or a folder.", metavar="PACKAGE", show_default=False
    ),
]
ShapeOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=SHAPE",
        help="Shape of an input, such as x=1x3x224x224; may be repeated.",
    ),
]
FixOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--fix",
        metavar="NAME=FILE",
        help="Value of an input, a .npy file: it becomes a constant; may be repeated.",
    ),
]
InputOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="NAME=FILE", help="Array of an input, a .npy file; may be repeated."
    ),
]
AUTO = "auto"
TrialsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--trials",
        metavar=f"N|{AUTO}",
        help="Trial limit of all programs together; auto ends when gains are small.",
    ),
]
SeedOption: TypeAlias = Annotated[
    int, typer.Option("--seed", min=0, max=MAX_SEED, help="Random seed of the search.")
]


def is_model(argument: str) -> bool:
    """Return whether an argument names an ONNX model."""
    return argument.endswith(".onnx")


def is_package(argument: str) -> bool:
    """Return whether an argument names a compiled model."""
    return argument.endswith(".lwm") or (Path(argument) / MANIFEST).is_file()


def read_model_package(path: Path) -> Package:
    """Read a compiled model.

    Raises:
        InputError: If it can't be read, or is an ONNX model.
        PackageError: If it is not a package, is damaged, or has a newer format.
    """
    if is_model(path.name):
        raise InputError(f"{path} is not compiled: loopwright compile {path}")
    try:
        return read_package(path)
    except OSError as error:
        raise InputError(f"the package {path} cannot be read: {error.strerror}") from error


def require_file(path: Path) -> None:
    """Refuse a file that does not exist.

    Raises:
        InputError: If there is no such file.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}")


def read_trials(text: str) -> int | None:
    """Return the trials of `--trials`; None for `auto`.

    Raises:
        InputError: If it is no number of trials.
    """
    if text == AUTO:
        return None
    if not text.isdecimal() or int(text) > MAX_TRIALS:
        raise InputError(f"--trials {text}: expected a number from 0 to {MAX_TRIALS}, or {AUTO}")
    return int(text)


def read_shapes(options: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Return the shapes of `--shape` by the names of inputs.

    Raises:
        InputError: If an option has another form.
    """
    return {name: _shape(name, text) for name, text in _named("--shape", options).items()}


def read_arrays(option: str, values: Sequence[str] | None) -> dict[str, Array]:
    """Return the arrays of an option by the names of inputs.

    Args:
        option: The option, for errors.
        values: What the user wrote for it.

    Raises:
        InputError: If an option has another form, or a file is not an array.
    """
    return {name: _array(name, Path(file)) for name, file in _named(option, values).items()}


def named_files(option: str, values: Sequence[str] | None) -> dict[str, Path]:
    """Return the files of an option by name.

    Raises:
        InputError: If an option has another form.
    """
    return {name: Path(file) for name, file in _named(option, values).items()}


def _named(option: str, values: Sequence[str] | None) -> dict[str, str]:
    named: dict[str, str] = {}
    for value in values or ():
        # Names of inputs may contain the sign, and files seldom do.
        name, sign, text = value.rpartition("=")
        if not (name and sign and text):
            form = "NAME=SHAPE" if option == "--shape" else "NAME=FILE"
            raise InputError(f"{option} {value}: expected {form}")
        if name in named:
            raise InputError(f"{option} {value}: {name} is repeated")
        named[name] = text
    return named


def _shape(name: str, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+([x,]\d+)*", text):
        raise InputError(f"--shape {name}={text}: expected extents such as 1x3x224x224")
    return tuple(map(int, re.split("[x,]", text)))


def _array(name: str, file: Path) -> Array:
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "it is not a .npy file of numbers"
        raise InputError(f"{name}: the array {file} cannot be read: {reason}") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{name}: {file} has several arrays: pass a .npy file of one")
    return array
