"""The stable codes of the compiler's errors.

An error carries a code beside its text: `error.code`. Programs compare codes, people read texts.
A text may change in any version; a code never changes its meaning, and none is removed.
`docs/errors.md` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

ScheduleErrorCode: TypeAlias = Literal[
    "block_kind",
    "dependence",
    "fixed_buffer",
    "illegal_result",
    "intrinsic_mismatch",
    "invalid_argument",
    "invalid_handle",
    "loop_kind",
    "not_found",
    "not_proved",
    "structure",
    "threads",
]

VerifyErrorCode: TypeAlias = Literal[
    "arithmetic",
    "bounds",
    "call",
    "duplicate",
    "limit",
    "race",
    "rank",
    "region",
    "structure",
    "symbolic",
    "type",
    "undefined",
    "view",
]

ScriptErrorCode: TypeAlias = VerifyErrorCode | Literal["syntax", "unsupported"]

BuildErrorCode: TypeAlias = Literal[
    "codegen",
    "constants",
    "illegal_program",
    "lowering",
    "several_functions",
    "symbolic",
    "unknown_function",
]

SCHEDULE_ERROR_CODES: Mapping[str, str] = {
    "block_kind": "A block is not of the kind that the primitive requires, such as a reduction.",
    "dependence": "Reads and writes would happen in another order.",
    "fixed_buffer": "A buffer can't change: it is a parameter, or its storage is visible outside.",
    "illegal_result": "The verifier refuses the program that the primitive would make.",
    "intrinsic_mismatch": "A block does not compute what the tensor intrinsic computes.",
    "invalid_argument": "An argument is malformed, out of range, or does not fit the program.",
    "invalid_handle": "A handle is dead, of another kind, or of another schedule.",
    "loop_kind": "A loop is parallel, vectorized, bound, annotated, or its extent varies.",
    "not_found": "The program has no block, loop, function, buffer or annotation of that name.",
    "not_proved": "A requirement on regions, indices or iterations can't be proved.",
    "structure": "The blocks and loops are not nested as the primitive requires.",
    "threads": "Threads of a GPU kernel would conflict with each other.",
}
"""What each code of a `ScheduleError` means."""

VERIFY_ERROR_CODES: Mapping[str, str] = {
    "arithmetic": "An expression divides by zero, shifts by too much, or overflows its type.",
    "bounds": "An index or an iterator is not proved to stay in its range.",
    "call": "A call of a function does not fit it, is recursive, or is not inlined.",
    "duplicate": "A name is defined twice.",
    "limit": "The program, a buffer, a vector or a number is larger than the limits allow.",
    "race": "Two iterations that may run at once touch one element, and one of them writes it.",
    "rank": "A buffer is used with another number of dimensions than it has.",
    "region": "A block touches what its declared regions do not cover.",
    "structure": "Blocks, iterators, loops and threads are not nested as the language requires.",
    "symbolic": "An extent must be constant or bounded, and is not.",
    "type": "Operands, values and buffers do not agree in their types or lanes.",
    "undefined": "A name is used that is not defined at that point.",
    "view": "A view does not fit the region that it matches.",
}
"""What each code of a `VerifyError` means; a `ScriptError` uses them too."""

SCRIPT_ERROR_CODES: Mapping[str, str] = {
    **VERIFY_ERROR_CODES,
    "syntax": "The text is no statement, expression or declaration of the dialect.",
    "unsupported": "The text is legal Python that is not part of the dialect.",
}
"""What each code of a `ScriptError` means."""

BUILD_ERROR_CODES: Mapping[str, str] = {
    "codegen": "No machine code can be generated for the lowered program.",
    "constants": "The constants do not fit the program, or the backend takes none.",
    "illegal_program": "The verifier refuses the program.",
    "lowering": "A pass can't turn the program into loops.",
    "several_functions": "The module has several functions, and a kernel is one.",
    "symbolic": "The value of a symbolic variable follows from no argument of a call.",
    "unknown_function": "A function that it calls is not registered, or of another kind.",
}
"""What each code of a `BuildError` means."""
