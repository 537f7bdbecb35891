"""Loopwright: an autotuner for tensor programs. Users write `import loopwright as lw`.

Everything public is a name of `__all__`. Names are looked up when first used (PEP 562), so that a
client does not load a cost model, and `import loopwright` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler import ops
    from compiler.backends.cpu.runtime.peak import fma_peak_gflops
    from compiler.backends.error import BuildError
    from compiler.backends.inspection import Inspection
    from compiler.backends.kernel_set import KernelSet
    from compiler.backends.module import Module
    from compiler.backends.time_evaluator import time_evaluator
    from compiler.driver import build, compile_kernel, inspect, lower
    from compiler.executor.artifact import Artifact
    from compiler.executor.error import (
        ArgumentError,
        ArtifactError,
        LibraryCallError,
        PackageError,
        ShapeError,
        UnknownFunctionError,
    )
    from compiler.executor.executor import Executor
    from compiler.executor.functions.registry import register_func, remove_func
    from compiler.executor.kernel import load_kernel
    from compiler.executor.kernel_file import load_kernels
    from compiler.executor.loading import load
    from compiler.executor.memory import aligned_empty
    from compiler.graph.error import ModelError
    from compiler.graph.nodes import Graph
    from compiler.graph.text.parser import parse_graph
    from compiler.ir.analysis.flops import flops
    from compiler.ir.analysis.structural import structural_equal, structural_hash
    from compiler.ir.core.program import IRModule, PrimFunc
    from compiler.ir.interpret.oracle.oracle import random_inputs
    from compiler.ir.modules.inline_calls import inline_calls
    from compiler.ir.verify.verify import VerifyError
    from compiler.ops import OperatorError
    from compiler.passes.common.error import LoweringError
    from compiler.runtime import nd
    from compiler.runtime.nd import cpu
    from compiler.runtime.timing import Timing
    from compiler.schedule.error import ScheduleError, TraceError
    from compiler.schedule.index.index_map import IndexMap, IndexMapError
    from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin, TensorIntrinError
    from compiler.schedule.schedule import Schedule
    from compiler.schedule.trace.trace import Trace
    from compiler.script import ScriptError, parse, parse_module
    from compiler.target.error import TargetError
    from compiler.target.target import Target
    from compiler.te_schedule.error import StageError
    from loopwright import rpc, script, te, tir
    from loopwright.client.best import Best
    from loopwright.client.client import AsyncClient, Client
    from loopwright.client.group import AsyncGroupHandle, GroupHandle
    from loopwright.client.job import AsyncJobHandle, JobHandle
    from loopwright.client.shapes import AsyncShapesHandle, ShapesHandle
    from loopwright.errors import (
        AccessDeniedError,
        ArtifactRefusedError,
        ClientClosedError,
        ConflictError,
        FallbackWarning,
        InvalidAddressError,
        InvalidRequestError,
        JobFailedError,
        LockError,
        LoopwrightError,
        ManifestError,
        NotFoundError,
        ProtocolError,
        RequestError,
        ServerFailedError,
        ServerUnreachableError,
        SignatureError,
        StaleAnswerWarning,
        WaitTimeoutError,
    )
    from loopwright.kernels.kernel import Kernel, KernelSchedule, KernelSource
    from loopwright.local.design_space import DesignSpace, design_space
    from loopwright.local.shapes_result import ShapeKernel, ShapesResult
    from loopwright.local.tune_result import Trial, TuneResult
    from loopwright.local.tuning import tune
    from loopwright.locks.lock import lock
    from loopwright.models.compiling import compile
    from loopwright.models.executable import Executable
    from loopwright.module_tasks import ExtractedTask, extract_tasks
    from loopwright.prefetching.prefetch import Prefetched, prefetch
    from loopwright.unmeasured_kernel import kernel
    from tuner.loop.search_result import NothingMeasuredError
    from tuner.shapes.shape_time import ShapeTime
    from tuner.space.analysis.block_facts import BlockFacts
    from tuner.space.own_rules import remove_schedule_rule, schedule_rule
    from tuner.space.rules.rule import ScheduleRuleError
    from tuner.space.rules.sketch_builder import SketchBuilder

__version__ = "0.1.0"

__all__ = [
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

_MODULES = {
    "nd": "compiler.runtime.nd",
    "ops": "compiler.ops",
    "rpc": "loopwright.rpc",
    "script": "loopwright.script",
    "te": "loopwright.te",
    "tir": "loopwright.tir",
}
_HOMES = {
    "compiler.backends.error": ("BuildError",),
    "compiler.backends.inspection": ("Inspection",),
    "compiler.driver": ("build", "compile_kernel", "inspect", "lower"),
    "compiler.graph.error": ("ModelError",),
    "compiler.graph.nodes": ("Graph",),
    "compiler.graph.text.parser": ("parse_graph",),
    "compiler.target.error": ("TargetError",),
    "compiler.ir.analysis.flops": ("flops",),
    "compiler.ir.core.program": ("IRModule", "PrimFunc"),
    "compiler.ir.interpret.oracle.oracle": ("random_inputs",),
    "compiler.ir.modules.inline_calls": ("inline_calls",),
    "compiler.ir.analysis.structural": ("structural_equal", "structural_hash"),
    "compiler.ir.verify.verify": ("VerifyError",),
    "compiler.ops": ("OperatorError",),
    "compiler.passes.common.error": ("LoweringError",),
    "compiler.executor.artifact": ("Artifact",),
    "compiler.backends.kernel_set": ("KernelSet",),
    "compiler.backends.module": ("Module",),
    "compiler.executor.error": (
        "ArgumentError",
        "ArtifactError",
        "LibraryCallError",
        "PackageError",
        "ShapeError",
        "UnknownFunctionError",
    ),
    "compiler.executor.functions.registry": ("register_func", "remove_func"),
    "compiler.executor.executor": ("Executor",),
    "compiler.executor.memory": ("aligned_empty",),
    "compiler.executor.kernel": ("load_kernel",),
    "compiler.executor.kernel_file": ("load_kernels",),
    "compiler.executor.loading": ("load",),
    "compiler.runtime.nd": ("cpu",),
    "compiler.backends.cpu.runtime.peak": ("fma_peak_gflops",),
    "compiler.backends.time_evaluator": ("time_evaluator",),
    "compiler.runtime.timing": ("Timing",),
    "compiler.schedule.error": ("ScheduleError", "TraceError"),
    "compiler.schedule.index.index_map": ("IndexMap", "IndexMapError"),
    "compiler.schedule.schedule": ("Schedule",),
    "compiler.schedule.intrinsics.tensor_intrin": ("TensorIntrin", "TensorIntrinError"),
    "compiler.schedule.trace.trace": ("Trace",),
    "compiler.script": ("ScriptError", "parse", "parse_module"),
    "compiler.target.target": ("Target",),
    "compiler.te_schedule.error": ("StageError",),
    "loopwright.client.best": ("Best",),
    "loopwright.client.client": ("AsyncClient", "Client"),
    "loopwright.local.design_space": ("DesignSpace", "design_space"),
    "loopwright.errors": (
        "AccessDeniedError",
        "ArtifactRefusedError",
        "ClientClosedError",
        "ConflictError",
        "FallbackWarning",
        "InvalidAddressError",
        "InvalidRequestError",
        "JobFailedError",
        "LockError",
        "LoopwrightError",
        "ManifestError",
        "NotFoundError",
        "ProtocolError",
        "RequestError",
        "ServerFailedError",
        "ServerUnreachableError",
        "SignatureError",
        "StaleAnswerWarning",
        "WaitTimeoutError",
    ),
    "loopwright.client.group": ("AsyncGroupHandle", "GroupHandle"),
    "loopwright.client.job": ("AsyncJobHandle", "JobHandle"),
    "loopwright.client.shapes": ("AsyncShapesHandle", "ShapesHandle"),
    "loopwright.prefetching.prefetch": ("Prefetched", "prefetch"),
    "loopwright.module_tasks": ("ExtractedTask", "extract_tasks"),
    "loopwright.kernels.kernel": ("Kernel", "KernelSchedule", "KernelSource"),
    "loopwright.local.shapes_result": ("ShapeKernel", "ShapesResult"),
    "loopwright.local.tune_result": ("Trial", "TuneResult"),
    "loopwright.local.tuning": ("tune",),
    "loopwright.locks.lock": ("lock",),
    "loopwright.unmeasured_kernel": ("kernel",),
    "loopwright.models.compiling": ("compile",),
    "loopwright.models.executable": ("Executable",),
    "tuner.space.analysis.block_facts": ("BlockFacts",),
    "tuner.space.rules.sketch_builder": ("SketchBuilder",),
    "tuner.space.own_rules": ("remove_schedule_rule", "schedule_rule"),
    "tuner.space.rules.rule": ("ScheduleRuleError",),
    "tuner.loop.search_result": ("NothingMeasuredError",),
    "tuner.shapes.shape_time": ("ShapeTime",),
}
_FORMER_NAMES = {"Draft": "SketchBuilder"}
"""Names of the previous version, which work for one version."""
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Find a public name in its module, and cache it here."""
    name = _FORMER_NAMES.get(name, name)
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _HOME_OF:
        extras = importlib.import_module("loopwright.extras")
        value = getattr(extras.load_extra(_HOME_OF[name], f"lw.{name}"), name)
    else:
        replacements = importlib.import_module("loopwright.replacements")
        if name in replacements.REPLACEMENTS:
            raise replacements.missing(__name__, name, replacements.REPLACEMENTS)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}")
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    difflib = importlib.import_module("difflib")  # on use: only a mistake needs it
    near = [] if name.startswith("__") else difflib.get_close_matches(name, __all__, n=1)
    return f": did you mean {near[0]!r}?" if near else ""


def __dir__() -> list[str]:
    return sorted(__all__)
