"""The C interface of kernels: `docs/cross_compiling.md` describes it.

An object exports one function, which takes the address of 64-bit words: the addresses of the
arrays, the workspace, the number of threads, and the function that runs parallel loops. The header
has an inline function with a parameter for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..memory import ALIGNMENT
from ..params import Param

if TYPE_CHECKING:
    from ..artifact import Artifact

ABI_VERSION = 1
"""The version of the interface, a part of the names of symbols: a header and an object of different
versions do not link."""

LAUNCH_TYPES = """\
#ifndef LW_LAUNCH_TYPES
#define LW_LAUNCH_TYPES
/* One part of a parallel loop: the iterations begin, ..., end - 1. */
typedef void (*lw_task)(int64_t begin, int64_t end, int64_t number, void *context);
/* Runs `task` over parts of 0, ..., extent - 1, and returns when all are done. Each part that runs
   at one time has another number below `threads`. */
typedef void (*lw_launch_function)(lw_task task, int64_t extent, void *context, int64_t threads);
#endif"""
_SERIAL_LAUNCH = """\
#ifndef LW_LAUNCH_SERIALLY
#define LW_LAUNCH_SERIALLY
static inline void lw_launch_serially(lw_task task, int64_t extent, void *context, int64_t threads)
{
    (void)threads;
    task(0, extent, 0, context);
}
#endif"""
_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t"}
# Words that are no names of parameters in C or in C++, or are macros of common headers.
_RESERVED = frozenset(
    (
        *("alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char"),
        *("class", "complex", "const", "constexpr", "continue", "decltype", "default", "delete"),
        *("do", "double", "else", "enum", "explicit", "export", "extern", "false", "float", "for"),
        *("friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "not"),
        *("nullptr", "operator", "or", "private", "protected", "public", "register", "requires"),
        *("restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch"),
        *("template", "this", "throw", "true", "try", "typedef", "typename", "typeof", "union"),
        *("unsigned", "using", "virtual", "void", "volatile", "while", "xor"),
        *("words", "workspace", "threads", "launch", "offered", "unix", "linux", "I"),
    )
)


def c_name(name: str) -> str:
    """Return the name of a kernel as one of C: letters, digits and underscores."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"


def c_comment(name: str) -> str:
    """Return a name as text that can't end a comment or a line of C."""
    return "".join(c if c.isascii() and (c.isalnum() or c in " _.:,=+-[]") else "_" for c in name)


def entry_symbol(name: str) -> str:
    """Return the name of the function that an object for C exports."""
    return f"lw{ABI_VERSION}_{c_name(name)}"


def pack_name(name: str) -> str:
    """Return the name of the kernel that prepares the constants of another one."""
    return f"{c_name(name)}_pack"


def c_header(artifact: Artifact, objects: Sequence[str]) -> str:
    """Return the text of the header of a kernel.

    Args:
        artifact: The kernel.
        objects: The names of the files to link.
    """
    name = c_name(artifact.name)
    prefix = name.upper()
    lines = [
        f"/* The kernel {name} for {c_comment(artifact.target)}, by Loopwright.",
        f"   Link {c_comment(', '.join(objects))}, and -lm. */",
        f"#ifndef LW_KERNEL_{prefix}_H",
        f"#define LW_KERNEL_{prefix}_H",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        "/* The memory that a call uses besides its arrays, at a multiple of the alignment. */",
        f"#define {prefix}_WORKSPACE_BYTES {artifact.workspace_bytes}",
        f"#define {prefix}_ALIGNMENT {ALIGNMENT}",
        "/* More threads are of no use. */",
        f"#define {prefix}_MAX_THREADS {artifact.num_threads}",
        "",
        LAUNCH_TYPES,
        _SERIAL_LAUNCH,
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
    ]
    if artifact.packer is not None:
        lines += _packer(artifact, artifact.packer)
    lines += _function(f"{name}_run", entry_symbol(artifact.name), artifact, _CALL)
    if artifact.pool:
        lines += [
            "/* The pool of threads; link it with -lpthread. */",
            "void lw_launch(lw_task task, int64_t extent, void *context, int64_t threads);",
        ]
    lines += ["#ifdef __cplusplus", "}", "#endif", "#endif"]
    return "\n".join(lines) + "\n"


_CALL = """\
/* Runs the kernel once. Arrays are dense, in C order, each at a multiple of the size of its
   elements; one that is written overlaps no other. `launch` runs parallel loops on `threads`
   threads; without a pool of threads, pass 1 and NULL. Calls at the same time need a workspace
   each. */"""
_PACK = """\
/* Prepares the constants, once, with a workspace of {prefix}_PACK_WORKSPACE_BYTES. The copies that
   it writes begin at a multiple of {prefix}_ALIGNMENT, and hold zeros before. */"""


def _packer(artifact: Artifact, packer: Artifact) -> Iterator[str]:
    prefix = c_name(artifact.name).upper()
    yield from _function(
        pack_name(artifact.name),
        entry_symbol(pack_name(artifact.name)),
        packer,
        _PACK.format(prefix=prefix),
    )
    yield f"#define {prefix}_PACK_WORKSPACE_BYTES {packer.workspace_bytes}"
    for position, copy in enumerate(artifact.packed_copies):
        yield f"#define {prefix}_COPY_{position}_BYTES {copy.size_bytes}"


def _function(name: str, symbol: str, kernel: Artifact, comment: str) -> Iterator[str]:
    """Yield the declaration of a function of an object, and the inline function that calls it."""
    params, num_threads = kernel.params, kernel.num_threads
    arrays = [_array_name(param, position) for position, param in enumerate(params)]
    width = max([len(array) for array in arrays], default=0)
    yield f"void {symbol}(const uint64_t *words);"
    yield comment
    for param, array in zip(params, arrays, strict=True):
        role = "written" if param.is_output else "read"
        extents = ", ".join(map(str, param.shape))
        shape = f"{param.dtype}[{extents}], {param.size_bytes} bytes, {role}"
        yield f"/* {array:{width}}  {shape} */"
    yield f"static inline void {name}("
    for param, array in zip(params, arrays, strict=True):
        yield f"    {_type(param)}{array},"
    yield "    void *workspace, int64_t threads, lw_launch_function launch)"
    yield "{"
    words = [f"(uint64_t)(uintptr_t){array}" for array in (*arrays, "workspace")]
    yield "    const int64_t offered = launch == NULL || threads < 1 ? 1 : threads;"
    yield f"    const uint64_t words[{len(words) + 2}] = {{"
    for word in words:
        yield f"        {word},"
    yield f"        (uint64_t)(offered < {num_threads} ? offered : {num_threads}),"
    yield "        (uint64_t)(uintptr_t)(launch == NULL ? lw_launch_serially : launch)};"
    yield f"    {symbol}(words);"
    yield "}"


def _array_name(param: Param, position: int) -> str:
    is_plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", param.name) and param.name not in _RESERVED
    return param.name if is_plain else f"array{position}"


def _type(param: Param) -> str:
    """Return the type of an array in C; narrow floats are unsigned integers of their size."""
    name = _TYPES.get(param.dtype)
    if name is None:
        is_integer = re.fullmatch(r"u?int(8|16|32|64)", param.dtype)
        name = f"{param.dtype}_t" if is_integer else f"uint{8 * param.element_bytes}_t"
    return f"{name} *" if param.is_output else f"const {name} *"
