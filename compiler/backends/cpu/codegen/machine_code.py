"""From LLVM IR text to an object file.

The text is finished code, so one pass suffices: SROA, which turns register tiles into registers.
"""

from __future__ import annotations

import threading
from functools import lru_cache

import llvmlite.binding as llvm

from compiler.target.cpu import CpuTarget

# LLVM's options are process-wide. These passes gain nothing on code that is finished, and cost:
# loop strength reduction a third of the time to compile, the second scheduling, whose work the CPU
# does anyway, a twelfth, and the others, which look for what is never emitted, together 2%.
_LLVM_OPTIONS = (
    "-disable-lsr",
    "-disable-post-ra",
    "-disable-constant-hoisting",
    "-disable-mergeicmps",
    "-disable-partial-libcall-inlining",
)


@lru_cache(maxsize=1)
def initialize() -> None:
    """Prepare LLVM once a process."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _LLVM_OPTIONS:
        llvm.set_option("loopwright", option)


def target_machine(target: CpuTarget) -> llvm.TargetMachine:
    """Return a new TargetMachine: an engine that shares one with another crashes."""
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
        tools = _Tools.get(target)
        _promote_memory(module, tools)
        return bytes(tools.machine.emit_object(module))
    finally:
        module.close()


def disassemble(text: str, target: CpuTarget) -> str:
    """Return the assembly that `compile_object` would make."""
    module = llvm.parse_assembly(text)
    tools = _Tools.get(target)
    _promote_memory(module, tools)
    return str(tools.machine.emit_assembly(module))


class _Tools:
    """The target machine and the pass builder of a thread for a target.

    A machine learns its CPU on first use, which takes as long as a small function. A pass builder
    that is disposed of leaves 1.5 KB behind, and one that is kept becomes slower with each run, by
    callbacks that it collects; so both serve for a while.
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
        made: _Tools | None = getattr(cls._of_thread, "made", None)
        if made is None or made._target != target or made._modules >= cls._MODULES:
            made = cls._of_thread.made = cls(target)
        made._modules += 1
        return made


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
