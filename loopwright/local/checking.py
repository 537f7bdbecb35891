"""Check scripts: each parses, prints and parses back, builds, and computes correct results.

A script passes if that is true for each of its functions that no other calls. The results of a
kernel on random inputs are compared with the oracle's. If the oracle does not support the program,
they are compared with the evaluator's, if the program is small enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.executor.error import ArgumentError
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.core.nodes import (
    Allocate,
    BlockRealize,
    Evaluate,
    For,
    If,
    IntImm,
    Let,
    Seq,
    Stmt,
    Store,
    While,
    static_shape,
)
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.core.spelling import Dialect
from compiler.ir.interpret.compare_case import compare_case
from compiler.ir.interpret.error_growth import CheckCase, check_case
from compiler.ir.interpret.evaluator.evaluate import EvaluationError, evaluate
from compiler.ir.interpret.inputs import param_roles, random_inputs
from compiler.ir.interpret.oracle.oracle import Mismatch, OracleError, compare
from compiler.ir.interpret.spot_check.signed_sums import SumMismatchError
from compiler.ir.modules.inline_calls import inline_calls
from compiler.ir.verify.verify import VerifyError
from compiler.script import ScriptError, parse_module

SUFFIXES = frozenset({".py", ".script", ".tvmscript"})

_SEED = 0
_LARGEST = 1_000_000
"""The limit on statements for the evaluator: some ten seconds. Chosen."""
_SIZES = (24, 20, 28, 12, 36, 16)
"""Values of symbolic variables, in their order: small, different, of several divisors. Chosen."""
_UNWRITTEN = 77  # what outputs hold before: elements that only one side writes are seen

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Report: TypeAlias = Callable[[str], None]


class FunctionCheck(BaseModel):
    """The result for one function."""

    name: str
    compared_with: str | None = None  # "oracle", "evaluation", or None if it was not compared
    not_compared: str | None = None  # why it was not
    max_error: float | None = None  # as a share of the largest magnitude of the output


class ScriptCheck(BaseModel):
    """The result for one script; it passes unless `failed` names a step."""

    path: str
    failed: str | None = None  # "read", "parse", "round trip", "build", "run" or "compare"
    reason: str | None = None
    functions: list[FunctionCheck] = []
    secs: float = 0.0


class _Failure(Exception):  # noqa: N818 (it never leaves this module)
    def __init__(self, step: str, reason: str) -> None:
        super().__init__(reason)
        self.step = step


def find_scripts(paths: list[Path]) -> list[Path]:
    """Return the files among paths, and those with a script's suffix in folders among them.

    Raises:
        FileNotFoundError: If a path is neither.
    """
    scripts: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = (p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
            scripts += sorted(p for p in inside if not _is_hidden(p.relative_to(path)))
        elif path.exists():
            scripts.append(path)
        else:
            raise FileNotFoundError(f"no file or folder {path}")
    return list(dict.fromkeys(scripts))


def check_script(path: Path, report: Report = lambda _: None) -> ScriptCheck:
    """Check one script.

    Args:
        path: The file.
        report: Called with a description of each step as it begins.
    """
    result = ScriptCheck(path=str(path))
    start = time.perf_counter()
    try:
        _check(path, result, report)
    except _Failure as failure:
        result.failed, result.reason = failure.step, str(failure)
    result.secs = time.perf_counter() - start
    return result


def _check(path: Path, result: ScriptCheck, report: Report) -> None:
    report("parsing")
    with _step("read", OSError, UnicodeDecodeError):
        text = path.read_text(encoding="utf-8")
    with _step("parse", ScriptError):
        module = parse_module(text, filename=str(path))
    report("printing")
    _check_round_trip(module)
    for func in inline_calls(module).functions:
        function_check = FunctionCheck(name=func.name)
        result.functions.append(function_check)
        _check_results(_specialized(func), function_check, report)


def _check_round_trip(module: IRModule) -> None:
    for dialect in get_args(Dialect):
        with _step(f"round trip ({dialect})", ScriptError):
            back = parse_module(module.script(dialect))
        if not structural_equal(back, module):
            raise _Failure(f"round trip ({dialect})", "the printed text is another program")


def _specialized(func: PrimFunc) -> PrimFunc:
    symbols = symbolic_vars(func)
    if not symbols:
        return func
    with _step("specialize", VerifyError, ValueError):
        return func.specialize(
            {var: _SIZES[number % len(_SIZES)] for number, var in enumerate(symbols)}
        )


def _check_results(func: PrimFunc, function_check: FunctionCheck, report: Report) -> None:
    report(f"building {func.name}")
    with _step("build", BuildError):
        kernel = build(func)
    report(f"running {func.name}")
    with _step("run", ArgumentError):
        case = _case(func)
        inputs = random_inputs(func, _SEED) if isinstance(case, OracleError) else case.inputs
        arrays = {b.name: inputs.get(b.name, _unwritten(func, b.name)) for b in func.buffers}
        before = {name: array.copy() for name, array in arrays.items()}
        kernel(*(arrays[buffer.name] for buffer in func.buffers))
    kernel.close()
    report(f"comparing {func.name}")
    with _step("compare", Mismatch, SumMismatchError, EvaluationError, ValueError):
        if not isinstance(case, OracleError):
            function_check.compared_with = "oracle"
            function_check.max_error = compare_case(func, arrays, case)
        elif (expected := _evaluated(func, before, case, function_check, report)) is not None:
            function_check.max_error = compare(func, arrays, expected)


def _case(func: PrimFunc) -> CheckCase | OracleError:
    try:
        return check_case(func, _SEED)
    except OracleError as error:
        return error


def _evaluated(
    func: PrimFunc,
    before: Arrays,
    error: OracleError,
    function_check: FunctionCheck,
    report: Report,
) -> Arrays | None:
    """Return the expected outputs if the oracle can't compute them; None if that takes too long."""
    size = _statements(func.body)
    if size > _LARGEST:
        function_check.not_compared = f"{error}; evaluating it takes {size} steps"
        return None
    report(f"evaluating {func.name}: {size} steps")
    everything = evaluate(func, before)
    function_check.compared_with = "evaluation"
    return {name: everything[name] for name in param_roles(func).outputs}


def _unwritten(func: PrimFunc, name: str) -> NDArray[Any]:
    buffer = next(b for b in func.buffers if b.name == name)
    return np.full(static_shape(buffer), _UNWRITTEN, dtype=buffer.dtype)


def _statements(stmt: Stmt) -> int:
    """Return the maximum number of statements in one run of a program."""
    match stmt:
        case Seq(stmts):
            return sum(_statements(s) for s in stmts)
        case If(_, then, otherwise):
            return 1 + max(_statements(then), 0 if otherwise is None else _statements(otherwise))
        case For(_, extent, body):
            return _statements(body) * (extent.value if isinstance(extent, IntImm) else 1)
        case Let(_, _, body) | Allocate(_, body) | While(_, body):
            return 1 + _statements(body)
        case BlockRealize(_, _, block):
            return 1 + _statements(block.body) + (0 if block.init is None else 1)
        case Store() | Evaluate():
            return 1


@contextmanager
def _step(name: str, *errors: type[Exception]) -> Iterator[None]:
    """Convert the errors that a script may cause to the failure of a step."""
    try:
        yield
    except _Failure:
        raise
    except errors as error:
        raise _Failure(name, str(error)) from error
    except Exception as error:
        # A bug of ours must not end the check of all other scripts.
        raise _Failure(name, f"internal error: {type(error).__name__}: {error}") from error


def _is_hidden(path: Path) -> bool:
    return any(name.startswith((".", "__")) for name in path.parts)
