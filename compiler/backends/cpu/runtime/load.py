"""Link object code into this process."""

from __future__ import annotations

import llvmlite.binding as llvm

from compiler.backends.cpu.codegen.machine_code import initialize


def load_object(code: bytes, triple: str) -> llvm.ExecutionEngine:
    """Link object code into the process; it stays loaded as long as the returned engine lives.

    Args:
        code: A relocatable object file.
        triple: The triple of the host.

    Raises:
        RuntimeError: If LLVM cannot link it.
    """
    initialize()
    machine = llvm.Target.from_triple(triple).create_target_machine()
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, machine)
    # An engine starts with a module, and compiling even an empty one takes longer than linking.
    engine.remove_module(empty)
    try:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
    except RuntimeError:
        engine.close()
        raise
    return engine
