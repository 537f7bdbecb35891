"""Build kernels from programs: verify a program, then call the backend of its target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Protocol, overload

from compiler.backends.backend import BACKENDS, SourceCode, backend_of, host_labels
from compiler.backends.error import BuildError
from compiler.backends.inspection import CodeText, Inspection
from compiler.backends.kernel_set import KernelSet
from compiler.backends.module import Module
from compiler.bounded_cache import BoundedCache
from compiler.calling_kernels import compile_calls
from compiler.executor.artifact import Artifact
from compiler.executor.error import MachineError
from compiler.executor.named_type import named_type
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.analysis.specialize import with_limits
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.analysis.symbols import size_problem, symbolic_vars
from compiler.ir.core.function_calls import calls_in
from compiler.ir.core.library_calls import library_functions
from compiler.ir.core.nodes import Buffer, Stmt
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.modules.inline_calls import inline_calls, only_entry
from compiler.ir.verify.verify import (
    VerifyError,
    verify,
    verify_all_sizes,
    verify_but_for_races,
)
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.keywords import check_keywords, keywords_of, suggests_keywords
from compiler.passes.common.plain_loops import plain_loops
from compiler.runtime.kernel_params import params_of
from compiler.target.target import Target, complete_target
from compiler.te.tensor import Tensor
from compiler.te.value import Variable
from compiler.te_schedule.separate_inits import with_separate_inits
from compiler.te_schedule.tensor_schedule import TensorSchedule

# Verified programs, by their structural hash; the oldest is dropped first.
_MOST_VERIFIED = 1024
_verified: BoundedCache[str, bool] = BoundedCache(_MOST_VERIFIED)


class Scheduled(Protocol):
    """An object that holds a scheduled program, such as a `Schedule`."""

    @property
    def func(self) -> PrimFunc:
        """Return the current program."""
        ...


_Args = Sequence[Tensor | Variable] | None


def _or_stages(
    of_stages: Callable[..., Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function take a `TensorSchedule`, too, with the arguments of another function."""

    def decorate(of_programs: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(of_programs)
        def either(*args: Any, **kwargs: Any) -> Any:
            if not args or not isinstance(args[0], TensorSchedule):
                return of_programs(*args, **kwargs)
            check_keywords(of_programs.__name__, kwargs, keywords_of(of_stages))
            return of_stages(*args, **kwargs)

        return either

    return decorate


def _lower_stages(
    schedule: TensorSchedule,
    args: _Args = None,
    name: str = "main",
    simple_mode: bool = False,
) -> IRModule:
    """Return the loops of a schedule of tensor expressions; `simple_mode` changes nothing."""
    del simple_mode
    sch = schedule.to_schedule(args, name)
    return IRModule((plain_loops(with_separate_inits(sch).func),))


@overload
def lower(program: PrimFunc, target: str | Target = "cpu") -> Stmt: ...
@overload
def lower(
    program: TensorSchedule, args: _Args = None, name: str = "main", simple_mode: bool = False
) -> IRModule: ...
@_or_stages(_lower_stages)
def lower(func: PrimFunc, target: str | Target = "cpu") -> Stmt:
    """Turn a scheduled program into one without blocks, ready for code generation.

    For a CPU that is loops over small buffers. A schedule of tensor expressions gives a module of
    plain loops, for readers: `lw.lower(s, [A, B, C], simple_mode=True)`.

    Raises:
        LoweringError: If extents are symbolic, or threads can't run one after another.
        TargetError: If the target is unknown.
        TypeError: If `func` is not a program.
    """
    argument: object = func
    if not isinstance(argument, PrimFunc):
        raise TypeError(f"expected a PrimFunc to lower, not {named_type(argument)}")
    goal = _target(target)
    return backend_of(goal).lower(with_limits(func), goal)


def emit(func: PrimFunc, target: Target) -> SourceCode:
    """Return the source code of a program: LLVM IR for a CPU.

    That of a program with constants is the part that runs in each call.

    Raises:
        BuildError: If it can't be lowered, or is too large once expanded.
    """
    backend = backend_of(target)
    func = with_limits(func)
    constants = _declared(func, target)
    if constants:
        return backend.emit_with_constants(func, constants, target).kernel
    return backend.emit(func, target)


def compile_kernel(
    program: PrimFunc | IRModule | Scheduled, target: str | Target = "cpu"
) -> Artifact:
    """Compile a program, scheduled or not, for a target that need not be this host.

    `Artifact.save` writes the kernel: as a file that `load_kernel` reads on such a machine, or as
    an object, a header and a library for programs in C.

    The artifact of a program with constant parameters (the attribute `layout_free_buffers`) takes
    them when it is loaded: `Module(artifact, const_params)`.

    Raises:
        BuildError: If it is not legal, or can't be compiled.
        TargetError: If the target is unknown.
        TypeError: If `program` is not a program.
    """
    func, goal = _legal(_only_function(program), is_schedule=_is_schedule(program)), _target(target)
    artifact = _compiled(func, goal, _declared(func, goal))[0]
    return replace(artifact, dispatcher=_dispatcher(program, func.name))


def inspect(program: PrimFunc | IRModule | Scheduled, target: str | Target = "cpu") -> Inspection:
    """Compile a program, scheduled or not, and return the code and the resources of its kernel.

    The target need not be this host: nothing runs on a device. A kernel for a GPU runs in the
    emulator, which finds races and other faults, and is compared with the oracle.

    Raises:
        BuildError: If it is not legal, or can't be compiled.
        TargetError: If the target is unknown.
        TypeError: If `program` is not a program.
    """
    func = _legal(_only_function(program), is_schedule=_is_schedule(program))
    goal = _target(target)
    backend = backend_of(goal)
    if functions := library_functions(func.body):
        problem = f"it calls {', '.join(functions)}: there is no code of it alone to inspect"
        raise BuildError(f"{func.name}: {problem}", "lowering")
    artifact, source = _compiled(func, goal, _declared(func, goal))
    return Inspection(
        name=func.name,
        target=goal.name,
        toolchain=artifact.toolchain,
        code_bytes=len(artifact.code),
        source=CodeText(backend.source_language, source),
        assembly=CodeText(backend.assembly_language, backend.assembly(source, goal)),
        resources=backend.resources(artifact),
        emulation=backend.emulate(func, artifact),
    )


def _compiled(
    func: PrimFunc, target: Target, constants: Collection[Buffer] = ()
) -> tuple[Artifact, str]:
    """Return a kernel, and the source code that it was compiled from."""
    backend = backend_of(target)
    if library_functions(func.body):
        return compile_calls(func, target, constants), ""
    if constants:
        split = backend.emit_with_constants(func, constants, target)
        packer = backend.compile(func.name, split.packer_params, split.packer, target)
        kernel = backend.compile(func.name, split.kernel_params, split.kernel, target)
        return replace(kernel, packer=packer), split.kernel.text
    source = backend.emit(func, target)
    params = params_of(func.params, stored_buffers(func.body))
    return backend.compile(func.name, params, source, target), source.text


def _declared(func: PrimFunc, target: Target) -> tuple[Buffer, ...]:
    """Return the constants of a program; none if they are passed in each call for this target."""
    return constant_params(func) if backend_of(target).packs_constants else ()


def _target(target: str | Target) -> Target:
    return complete_target(target, host_labels)


def _legal(func: PrimFunc, *, is_schedule: bool) -> PrimFunc:
    """Return the function to compile, verified once a program.

    A kernel must access only its arrays, whatever the source of its program. The order of accesses
    of a schedule is not checked again, because its primitives preserve it. A symbolic program is
    verified for all sizes of its ranges, and returned with them as limits of its variables.

    Raises:
        BuildError: If it is not legal.
    """
    try:
        key = f"{structural_hash(func)} {is_schedule}"
        if not _verified.get(key):
            if symbolic_vars(func):
                verify_all_sizes(func, has_races=not is_schedule)
            else:
                (verify_but_for_races if is_schedule else verify)(func)
    except ValueError as error:  # VerifyError is one; the hash knows variables without a definition
        raise BuildError(
            f"{func.name} is not a legal program: {error}", "illegal_program"
        ) from error
    _verified.put(key, True)
    limited = with_limits(func)
    problem = size_problem(limited)
    if problem is not None:
        raise BuildError(f"{func.name}: {problem}", "symbolic")
    return limited


def _build_stages(
    schedule: TensorSchedule,
    args: _Args = None,
    target: str | Target = "cpu",
    name: str = "main",
) -> Module:
    """Compile a schedule of tensor expressions and load it."""
    return build(schedule.to_schedule(args, name), target)


@overload
def build(
    program: TensorSchedule, args: _Args = None, target: str | Target = "cpu", name: str = "main"
) -> Module: ...
@overload
def build(
    program: PrimFunc | Scheduled,
    target: str | Target = "cpu",
    const_params: Mapping[str, Any] | None = None,
) -> Module: ...
@overload
def build(
    program: IRModule,
    target: str | Target = "cpu",
    const_params: Mapping[str, Any] | None = None,
) -> Module | KernelSet: ...
@_or_stages(_build_stages)
@suggests_keywords
def build(
    program: PrimFunc | IRModule | Scheduled,
    target: str | Target = "cpu",
    const_params: Mapping[str, Any] | None = None,
) -> Module | KernelSet:
    """Compile a program and load it.

    Each function of a module that no other function calls becomes a kernel, with its calls inlined:
    one `Module`, or a `KernelSet` if there are several. A schedule of tensor expressions comes with
    its parameters: `lw.build(s, [A, B, C], "llvm", name="add")`.

    Args:
        program: A program, a module, or a schedule.
        target: The target to compile for.
        const_params: Arrays for constant parameters, by name, such as weights: callers of the
            module omit them. Copies that the schedule makes of constants, for example into packed
            panels, are made now and not in each call. Without it, the kernel takes all parameters
            in each call, also those that the program declares as constants. For a module of several
            kernels it maps their names to the constants of each.

    Raises:
        BuildError: If it is not legal, can't be compiled, if a constant is not a parameter or is
            written, or if a constant that the program declares is missing.
        TargetError: If the target is unknown.
        TypeError: If `program` is not a program.
        ArtifactError: If this host can't run code for the target.
        ArgumentError: If a constant is not an array of the parameter's shape and type.
    """
    goal = _target(target)
    functions = _functions(program)
    legal = [_legal(func, is_schedule=_is_schedule(program)) for func in functions]
    constants = _constants_by_kernel(legal, const_params or {})
    kernels = {func.name: _loaded(program, func, goal, constants.get(func.name)) for func in legal}
    return KernelSet(kernels) if len(kernels) > 1 else kernels[legal[0].name]


def _constants_by_kernel(
    functions: Sequence[PrimFunc], const_params: Mapping[str, Any]
) -> Mapping[str, Mapping[str, Any]]:
    """Return the constants of each function by its name.

    Raises:
        BuildError: If there are several functions, and the constants do not name theirs.
    """
    names = [func.name for func in functions]
    if len(names) == 1:
        return {names[0]: const_params}
    for name, constants in const_params.items():
        if name not in names or not isinstance(constants, Mapping):
            raise BuildError(
                f"const_params has {name}: for several kernels it maps their names"
                f" ({', '.join(names)}) to constants",
                "several_functions",
            )
    return const_params


def _dispatcher(program: PrimFunc | IRModule | Scheduled, name: str) -> str:
    """Return the text of an entry as it was written, if it calls other functions."""
    if not isinstance(program, IRModule):
        return ""
    entry = program[name]
    return entry.script() if calls_in(entry.body) else ""


def _loaded(
    program: PrimFunc | IRModule | Scheduled,
    func: PrimFunc,
    target: Target,
    const_params: Mapping[str, Any] | None,
) -> Module:
    constants = _chosen_constants(func, target, const_params) if const_params else ()
    artifact, source = _compiled(func, target, constants)
    artifact = replace(artifact, dispatcher=_dispatcher(program, func.name))
    try:
        return Module(artifact, const_params, source or None)
    except MachineError as error:
        raise MachineError(
            f"{error}; compile_kernel compiles for other machines, and loads nothing"
        ) from None


def _chosen_constants(
    func: PrimFunc, target: Target, const_params: Mapping[str, Any]
) -> tuple[Buffer, ...]:
    """Return the parameters that a caller gives as constants.

    Raises:
        BuildError: If they are not parameters, are written, lack a constant that the program
            declares, or if the target has no constants.
    """
    names, written = list(const_params), stored_buffers(func.body)
    constants = tuple(buffer for buffer in func.buffers if buffer.name in const_params)
    unknown = [name for name in names if name not in {b.name for b in constants}]
    changed = [buffer.name for buffer in constants if buffer in written]
    missing = [buffer.name for buffer in constant_params(func) if buffer.name not in names]
    for wrong, reason in (
        ([] if backend_of(target).packs_constants else names, f"not supported for {target.name!r}"),
        (unknown, "not a parameter"),
        (changed, "the program writes it"),
        (missing, "missing, and the program declares it as a constant"),
    ):
        if wrong:
            readable = ", ".join(buffer.name for buffer in func.buffers if buffer not in written)
            problem = f"{', '.join(wrong)}: {reason}; it reads {readable}"
            raise BuildError(f"{func.name}: const_params: {problem}", "constants")
    return constants


def _is_schedule(program: PrimFunc | IRModule | Scheduled) -> bool:
    return not isinstance(program, PrimFunc | IRModule)


def _only_function(program: PrimFunc | IRModule | Scheduled) -> PrimFunc:
    """Return the function that becomes the kernel: of a module, its only entry.

    Raises:
        BuildError: If the module has several, or none.
        TypeError: If it is not a program.
    """
    if isinstance(program, IRModule):
        try:
            return only_entry(program)
        except VerifyError as error:
            raise BuildError(f"the module is not legal: {error}", "illegal_program") from error
        except ValueError as error:
            raise BuildError(f"a kernel is one function: {error}", "several_functions") from error
    return _functions(program)[0]


def _functions(program: PrimFunc | IRModule | Scheduled) -> tuple[PrimFunc, ...]:
    """Return the functions to compile, at least one: of a module, its entries.

    Raises:
        BuildError: If the module has no function, or a call is not legal.
        TypeError: If it is not a program.
    """
    if isinstance(program, IRModule):
        if not program.functions:
            raise BuildError("the module has no function to build", "several_functions")
        try:
            return inline_calls(program).functions
        except VerifyError as error:
            raise BuildError(f"the module is not legal: {error}", "illegal_program") from error
    func: object = program if isinstance(program, PrimFunc) else getattr(program, "func", None)
    if not isinstance(func, PrimFunc):
        raise TypeError(
            f"expected a PrimFunc or a Schedule, not {named_type(program)}: "
            "lw.parse makes one of the text of a script, lw.ops.from_spec of an operator"
        )
    return (func,)


def toolchain(kind: str = "cpu") -> str:
    """Return the toolchain of a kind of target: a measurement is valid for one only."""
    return BACKENDS.find(kind).toolchain()


def toolchains() -> frozenset[str]:
    """Return the current toolchains of all kinds of targets."""
    return frozenset(toolchain(kind) for kind in BACKENDS.kinds)
