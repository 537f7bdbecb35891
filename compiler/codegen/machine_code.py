"""From LLVM IR text to an object file.

The text is finished code, so one pass suffices: SROA, which turns register tiles into registers.
"""

from __future__ import annotations

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
        _promote_memory(module, machine)
        return bytes(machine.emit_object(module))
    finally:
        module.close()
        machine.close()


def disassemble(text: str, target: Target) -> str:
    """Return the assembly that `compile_object` would make."""
    machine = target_machine(target)
    module = llvm.parse_assembly(text)
    _promote_memory(module, machine)
    return str(machine.emit_assembly(module))


def _promote_memory(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


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
