"""Link object code into this process."""

from __future__ import annotations

import llvmlite.binding as llvm

from compiler.backends.cpu.codegen.machine_code import initialize


def load_object(code: bytes, triple: str) -> llvm.ExecutionEngine:
    """Return an engine that holds the code; the code lives as long as the engine.

    Raises:
        RuntimeError: If LLVM can't link it.
    """
    initialize()
    machine = llvm.Target.from_triple(triple).create_target_machine()
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, machine)
    # An engine begins with a module; to compile an empty one takes longer than to link the object.
    engine.remove_module(empty)
    try:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
    except RuntimeError:
        engine.close()
        raise
    return engine
