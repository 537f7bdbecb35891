"""From LLVM IR text to an object file.

The text is finished code, so one pass suffices: SROA, which turns register tiles into registers.
"""

from __future__ import annotations

import threading
from functools import lru_cache

import llvmlite.binding as llvm

from compiler.target import Target

# LLVM's options are process-wide: loop strength reduction costs a third of the time to compile
# and gains nothing on code whose addresses are hoisted already.
_LLVM_OPTIONS = ("-disable-lsr",)


@lru_cache(maxsize=1)
def initialize() -> None:
    """Prepare LLVM once a process."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _LLVM_OPTIONS:
        llvm.set_option("loopwright", option)


def target_machine(target: Target) -> llvm.TargetMachine:
    """Return a new TargetMachine: an engine that shares one with another crashes."""
    initialize()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.instruction_set,
        features=target.features,
        opt=2,
        reloc="pic",
        codemodel="small",
    )


def compile_object(text: str, target: Target) -> bytes:
    """Compile LLVM IR text to the bytes of a relocatable object.

    Raises:
        RuntimeError: If LLVM refuses the text, which is a bug of the code generator.
    """
    machine = target_machine(target)
    module = llvm.parse_assembly(text)
    try:
        _promote_memory(module, target)
        return bytes(machine.emit_object(module))
    finally:
        module.close()
        machine.close()


def disassemble(text: str, target: Target) -> str:
    """Return the assembly that `compile_object` would make."""
    machine = target_machine(target)
    module = llvm.parse_assembly(text)
    _promote_memory(module, target)
    return str(machine.emit_assembly(module))


class _PassBuilder:
    """The pass builder of a thread for a target.

    One that is disposed of leaves 1.5 KB behind, and one that is kept becomes slower with each run,
    by callbacks that it collects; so each serves for a while.
    """

    _RUNS = 64
    _of_thread = threading.local()

    def __init__(self, target: Target) -> None:
        self._target = target
        self._runs = 0
        self._machine = target_machine(target)
        options = llvm.create_pipeline_tuning_options(speed_level=0)
        self._builder = llvm.create_pass_builder(self._machine, options)

    @classmethod
    def get(cls, target: Target) -> llvm.PassBuilder:
        """Return a builder for the next function."""
        made: _PassBuilder | None = getattr(cls._of_thread, "made", None)
        if made is None or made._target != target or made._runs >= cls._RUNS:
            made = cls._of_thread.made = cls(target)
        made._runs += 1
        return made._builder


def _promote_memory(module: llvm.ModuleRef, target: Target) -> None:
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, _PassBuilder.get(target))


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
