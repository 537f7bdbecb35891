"""The helpers of a kernel for the instructions of a whole warp: `ldmatrix` and `mma.sync`.

Each is one instruction of inline PTX, and takes addresses: those of the first register of a tile,
and of a row in shared memory.
"""

from __future__ import annotations

from compiler.backends.cuda.text.effects import helper_of
from compiler.ir.core.dtypes import size_bytes
from compiler.target.tensor_cores import MMA_INSTRUCTIONS, MmaInstruction

_INLINE = "__device__ __forceinline__"


def _load_matrices(count: int, *, is_transposed: bool) -> str:
    name = f"ldmatrix_x{count}" + ("_trans" if is_transposed else "")
    registers = ", ".join(f"%{n}" for n in range(count))
    results = ", ".join(f'"=r"(registers[{n}])' for n in range(count))
    trans = ".trans" if is_transposed else ""
    return f"""\
// Load {count} matrices of 8 rows of 16 bytes; each lane gives the address of a row.
{_INLINE} void {name}(unsigned* registers, const void* row) {{
  const unsigned address = __cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [%{count}];"
               : {results} : "r"(address) : "memory");
}}"""


def _product(instruction: MmaInstruction) -> str:
    """Return the helper that adds the product of two tiles to a third."""
    m, n, k = instruction.shape
    result, operand = instruction.ptx_types
    num_a, num_b = (
        held.num_elements * size_bytes(instruction.operand) // 4
        for held in (instruction.a, instruction.b)
    )
    is_half = result == "f16"
    sums = 2 if is_half else 4
    kind = {"f32": "f", "s32": "r", "f16": "r"}[result]
    type_ = {"f32": "float", "s32": "int", "f16": "float16"}[result]
    names = [f"c{i}" if is_half else f"c[{i}]" for i in range(sums)]
    numbers = iter(range(sums + num_a + num_b))
    groups = [
        "{" + ", ".join(f"%{next(numbers)}" for _ in range(count)) + "}"
        for count in (sums, num_a, num_b)
    ]
    outputs = ", ".join(f'"+{kind}"({name})' for name in names)
    inputs = ", ".join(
        f'"r"({array}[{i}])' for array, count in (("a", num_a), ("b", num_b)) for i in range(count)
    )
    pack = unpack = ""
    if is_half:
        pack = "".join(
            f"  unsigned c{i} = c[{2 * i}].bits | (unsigned)c[{2 * i + 1}].bits << 16;\n"
            for i in range(sums)
        )
        unpack = "".join(
            f"\n  c[{2 * i}].bits = c{i};\n  c[{2 * i + 1}].bits = c{i} >> 16;" for i in range(sums)
        )
    types = f"{result}.{operand}.{operand}.{result}"
    return f"""\
// Add the product of tiles of {m} by {k} and {k} by {n} elements to a tile of sums.
{_INLINE} void {helper_of(instruction.name)}({type_}* c, const unsigned* a, const unsigned* b) {{
{pack}  asm volatile("mma.sync.aligned.m{m}n{n}k{k}.row.col.{types} "
               "{groups[0]}, {groups[1]}, {groups[2]}, {groups[0]};"
               : {outputs}
               : {inputs});{unpack}
}}"""


FRAGMENT_HELPERS: dict[str, str] = {
    **{
        f"ldmatrix_x{count}" + ("_trans" if is_transposed else ""): _load_matrices(
            count, is_transposed=is_transposed
        )
        for count in (1, 2, 4)
        for is_transposed in (False, True)
    },
    **{helper_of(name): _product(i) for name, i in MMA_INSTRUCTIONS.items()},
}
"""The declarations by name."""
