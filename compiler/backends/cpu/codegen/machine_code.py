"""From LLVM IR text to an object file.

The text is optimized already, so one pass suffices: SROA, which turns local arrays into registers.
"""

from __future__ import annotations

import threading
from functools import lru_cache

import llvmlite.binding as llvm

from compiler.target.cpu import CpuTarget

# LLVM's options are process-wide. These passes do not improve code that is optimized already. Of
# the time to compile, loop strength reduction takes a third. The scheduling after register
# allocation, which out-of-order CPUs make needless, takes a twelfth. The others, whose patterns are
# never emitted, take 2% together.
_LLVM_OPTIONS = (
    "-disable-lsr",
    "-disable-post-ra",
    "-disable-constant-hoisting",
    "-disable-mergeicmps",
    "-disable-partial-libcall-inlining",
)


@lru_cache(maxsize=1)
def initialize() -> None:
    """Initialize LLVM, once a process."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _LLVM_OPTIONS:
        llvm.set_option("loopwright", option)


def target_machine(target: CpuTarget) -> llvm.TargetMachine:
    """Return a new TargetMachine; two engines must not share one, or LLVM crashes."""
    initialize()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.instruction_set,
        features=target.features,
        opt=2,
        reloc="pic",
        codemodel="small",
    )


def compile_object(text: str, target: CpuTarget) -> bytes:
    """Compile LLVM IR text to the bytes of a relocatable object.

    Raises:
        RuntimeError: If LLVM refuses the text, which is a bug of the code generator.
    """
    module = llvm.parse_assembly(text)
    try:
        return compile_module(module, target)
    finally:
        module.close()


def compile_module(module: llvm.ModuleRef, target: CpuTarget) -> bytes:
    """Compile a module in memory to the bytes of a relocatable object."""
    tools = _Tools.get(target)
    _promote_memory(module, tools)
    return bytes(tools.machine.emit_object(module))


def disassemble(text: str, target: CpuTarget) -> str:
    """Return the assembly that `compile_object` would make."""
    module = llvm.parse_assembly(text)
    tools = _Tools.get(target)
    _promote_memory(module, tools)
    return str(tools.machine.emit_assembly(module))


class _Tools:
    """The target machine and the pass builder of a thread for a target.

    The first use of a machine takes as long as compiling a small function. A pass builder leaks
    1.5 KB when it is disposed of, and becomes slower with each run, since it collects callbacks. So
    both serve for `_MODULES` modules.
    """

    _MODULES = 32
    _of_thread = threading.local()

    def __init__(self, target: CpuTarget) -> None:
        self._target = target
        self._modules = 0
        self.machine = target_machine(target)
        options = llvm.create_pipeline_tuning_options(speed_level=0)
        self.pass_builder = llvm.create_pass_builder(self.machine, options)

    @classmethod
    def get(cls, target: CpuTarget) -> _Tools:
        """Return the tools for the next module."""
        tools: _Tools | None = getattr(cls._of_thread, "tools", None)
        if tools is None or tools._target != target or tools._modules >= cls._MODULES:
            tools = cls._of_thread.tools = cls(target)
        tools._modules += 1
        return tools


def _promote_memory(module: llvm.ModuleRef, tools: _Tools) -> None:
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, tools.pass_builder)


def verify_module(text: str) -> None:
    """Check LLVM IR text; for tests.

    Raises:
        RuntimeError: If LLVM finds it malformed.
    """
    initialize()
    llvm.parse_assembly(text).verify()


def llvm_version() -> str:
    """Return LLVM's version, such as `22.1.0`."""
    return ".".join(str(part) for part in llvm.llvm_version_info)
