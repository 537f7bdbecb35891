"""The names that users write, and what importing them costs."""

from __future__ import annotations

import builtins
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

import loopwright as lw

NAMES = [
    "AccessDeniedError",
    "ArgumentError",
    "Artifact",
    "ArtifactError",
    "ArtifactRefusedError",
    "AsyncClient",
    "AsyncGroupHandle",
    "AsyncJobHandle",
    "AsyncShapesHandle",
    "Best",
    "BlockFacts",
    "BuildError",
    "Client",
    "ClientClosedError",
    "ConflictError",
    "DesignSpace",
    "Executable",
    "Executor",
    "ExtractedTask",
    "FallbackWarning",
    "Graph",
    "GroupHandle",
    "IRModule",
    "IndexMap",
    "IndexMapError",
    "Inspection",
    "InvalidAddressError",
    "InvalidRequestError",
    "JobFailedError",
    "JobHandle",
    "Kernel",
    "KernelSchedule",
    "KernelSet",
    "KernelSource",
    "LibraryCallError",
    "LockError",
    "LoopwrightError",
    "LoweringError",
    "ManifestError",
    "ModelError",
    "Module",
    "NotFoundError",
    "NothingMeasuredError",
    "OperatorError",
    "PackageError",
    "Prefetched",
    "PrimFunc",
    "ProtocolError",
    "RequestError",
    "Schedule",
    "ScheduleError",
    "ScheduleRuleError",
    "ScriptError",
    "ServerFailedError",
    "ServerUnreachableError",
    "ShapeError",
    "ShapeKernel",
    "ShapeTime",
    "ShapesHandle",
    "ShapesResult",
    "SignatureError",
    "SketchBuilder",
    "StageError",
    "StaleAnswerWarning",
    "Target",
    "TargetError",
    "TensorIntrin",
    "TensorIntrinError",
    "Timing",
    "Trace",
    "TraceError",
    "Trial",
    "TuneResult",
    "UnknownFunctionError",
    "VerifyError",
    "WaitTimeoutError",
    "__version__",
    "aligned_empty",
    "build",
    "compile",
    "compile_kernel",
    "cpu",
    "design_space",
    "extract_tasks",
    "flops",
    "fma_peak_gflops",
    "inline_calls",
    "inspect",
    "kernel",
    "load",
    "load_kernel",
    "load_kernels",
    "lock",
    "lower",
    "nd",
    "ops",
    "parse",
    "parse_graph",
    "parse_module",
    "prefetch",
    "random_inputs",
    "register_func",
    "remove_func",
    "remove_schedule_rule",
    "rpc",
    "schedule_rule",
    "script",
    "structural_equal",
    "structural_hash",
    "te",
    "time_evaluator",
    "tir",
    "tune",
]


def test_the_public_names_are_these() -> None:
    """A change of this list is a change of the public face: say so in CHANGELOG.md."""
    assert sorted(lw.__all__) == NAMES
    assert dir(lw) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_public_name_is_found_in_a_fresh_process_state(name: str) -> None:
    lw.__dict__.pop(name, None) if name != "__version__" else None
    assert getattr(lw, name) is not None


def docstrings() -> Iterator[str]:
    """Yield those of all that is public: functions, classes and what these have."""
    for name in lw.__all__:
        value = getattr(lw, name)
        names = dir(value) if inspect.isclass(value) else getattr(value, "__all__", [])
        # A property is documented itself; a module may make its names when they are asked for.
        look_up = inspect.getattr_static if inspect.isclass(value) else getattr
        members = [look_up(value, n) for n in names if not n.startswith("_")]
        yield from (inspect.getdoc(each) or "" for each in (value, *members))


def test_each_error_that_is_documented_can_be_caught_by_a_public_name() -> None:
    sections = [text.partition("Raises:\n")[2].split("\n\n")[0] for text in docstrings()]
    documented = {name for s in sections for name in re.findall(r"^    (\w+):", s, re.MULTILINE)}
    assert len(documented) > 15
    public = {*lw.__all__, *lw.rpc.__all__}
    assert {name for name in documented if not hasattr(builtins, name)} <= public


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = lw.no_such_name


def test_a_function_is_not_hidden_by_the_module_that_holds_it() -> None:
    code = "import loopwright as lw; lw.Trial; lw.Client; assert callable(lw.tune), lw.tune"
    subprocess.run([sys.executable, "-c", code], check=True)


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = ran.stdout.split()
    # Of the service, the wire models belong to both ends.
    return {
        ".".join(name.split(".")[:2]) if name.startswith("service.") else name.partition(".")[0]
        for name in names
    }


def test_importing_loopwright_loads_nothing_heavy() -> None:
    assert not loaded_by("import loopwright") & {"numpy", "llvmlite", "pydantic", "compiler"}


def test_the_client_loads_no_server_and_no_cost_model() -> None:
    heavy = {"fastapi", "uvicorn", "sqlalchemy", "alembic", "xgboost", "distributed", "dask"}
    loaded = loaded_by("import loopwright; loopwright.Client")
    assert "compiler" in loaded
    assert not loaded & (heavy | {"tuner", "workers"})
    assert {name for name in loaded if name.startswith("service.")} == {"service.wire"}


def test_a_command_that_needs_no_compiler_starts_without_llvm() -> None:
    assert not loaded_by("import loopwright.cli.main") & {"llvmlite", "scipy", "tuner", "workers"}
