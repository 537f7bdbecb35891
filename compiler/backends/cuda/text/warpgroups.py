"""The helpers of kernels whose warpgroups multiply what the copy engine fetches (sm_90a).

Each is an instruction of inline PTX: copies of boxes of tensors (TMA), barriers that count arrivals
(`mbarrier`), and products of warpgroups (`wgmma`).
"""

from __future__ import annotations

from compiler.backends.cuda.text.effects import helper_of
from compiler.target.tensor_cores import WARPGROUP_SIZE, WGMMA_INSTRUCTIONS, WgmmaInstruction

_INLINE = "__device__ __forceinline__"

SWIZZLE_BYTES = 128
"""The swizzle of all operands in shared memory."""
_GROUP_BYTES = 8 * SWIZZLE_BYTES
"""Eight rows, over which the swizzle repeats: the alignment of tiles in shared memory."""
_BOX_BYTES = 64 * SWIZZLE_BYTES
"""A box of an operand whose rows run along m or n: 64 rows along k."""


def tensor_copy_helper(rank: int) -> str:
    """Return the name of the helper that copies a box of a tensor of a rank."""
    return f"tensor_copy_{rank}d"


def _tensor_copy(rank: int) -> str:
    """Return the helper that copies a box of a tensor; the coordinates are innermost first."""
    names = "xyzuv"[:rank]
    coordinates = ", ".join(f"int {name}" for name in names)
    places = ", ".join(f"%{3 + n}" for n in range(rank))
    inputs = ", ".join(f'"r"({name})' for name in names)
    return f"""\
// Copy a box of a tensor of {rank} dimensions to shared memory; `barrier` counts its bytes.
{_INLINE} void {tensor_copy_helper(rank)}(
    void* target, const tensor_map* source, void* barrier, {coordinates}) {{
  const unsigned to = __cvta_generic_to_shared(target), signal = __cvta_generic_to_shared(barrier);
  asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile"
               ".mbarrier::complete_tx::bytes [%0], [%1, {{{places}}}], [%2];"
               :: "r"(to), "l"(source), "r"(signal), {inputs} : "memory");
}}"""


def _product(instruction: WgmmaInstruction) -> str:
    m, n, k = instruction.shape
    result, operand = instruction.ptx_types
    count = m * n // WARPGROUP_SIZE
    sums = ", ".join(f"%{i}" for i in range(count))
    outputs = ", ".join(f'"+f"(c[{i}])' for i in range(count))
    return f"""\
// Add the product of tiles of {m} by {k} and {k} by {n} elements to sums of a warpgroup, while its
// threads go on. `IsATransposed`: rows of A run along m; `IsBTransposed`: those of B along n.
template <int IsATransposed, int IsBTransposed>
{_INLINE} void {helper_of(instruction.name)}(float* c, const void* a, const void* b) {{
  const unsigned long long tile_a = matrix_descriptor(a), tile_b = matrix_descriptor(b);
  asm volatile("{{\\n.reg .pred adds;\\nsetp.ne.b32 adds, 1, 0;\\n"
               "wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{result}.{operand}.{operand} "
               "{{{sums}}}, "
               "%{count}, %{count + 1}, adds, 1, 1, %{count + 2}, %{count + 3};\\n}}"
               : {outputs}
               : "l"(tile_a), "l"(tile_b), "n"(IsATransposed), "n"(IsBTransposed));
}}"""


def _barrier_call(name: str, parameters: str, instruction: str, inputs: str) -> str:
    return f"""\
{_INLINE} void {name}(void* barrier{parameters}) {{
  const unsigned address = __cvta_generic_to_shared(barrier);
  asm volatile("{instruction}" :: "r"(address){inputs} : "memory");
}}"""


def _plain_call(name: str, instruction: str) -> str:
    return f'{_INLINE} void {name}() {{ asm volatile("{instruction}" ::: "memory"); }}'


def _constant_call(name: str, instruction: str) -> str:
    return f"""\
template <int N>
{_INLINE} void {name}() {{ asm volatile("{instruction}" :: "n"(N) : "memory"); }}"""


WARPGROUP_HELPERS: dict[str, str] = {
    "tensor_map": """\
// What the copy engine knows of a tensor: its address, shape and box (`CUtensorMap`).
struct __align__(64) tensor_map { unsigned long long words[16]; };""",
    **{tensor_copy_helper(rank): _tensor_copy(rank) for rank in range(2, 6)},
    "mbarrier_init": _barrier_call(
        "mbarrier_init", ", int count", "mbarrier.init.shared::cta.b64 [%0], %1;", ', "r"(count)'
    ),
    "mbarrier_fence": "// Show initialized barriers to the copy engine.\n"
    + _plain_call("mbarrier_fence", "fence.mbarrier_init.release.cluster;"),
    "mbarrier_expect": "// Arrive; the phase also waits for some bytes of the copy engine.\n"
    + _barrier_call(
        "mbarrier_expect",
        ", int num_bytes",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;",
        ', "r"(num_bytes)',
    ),
    "mbarrier_arrive": _barrier_call(
        "mbarrier_arrive", "", "mbarrier.arrive.shared::cta.b64 _, [%0];", ""
    ),
    "mbarrier_wait": "// Wait until the phase of a parity is complete.\n"
    + _barrier_call(
        "mbarrier_wait",
        ", int parity",
        "{\\n.reg .pred done;\\nagain:\\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\\n@!done bra again;\\n}",
        ', "r"(parity)',
    ),
    "increase_registers": _constant_call(
        "increase_registers", "setmaxnreg.inc.sync.aligned.u32 %0;"
    ),
    "decrease_registers": _constant_call(
        "decrease_registers", "setmaxnreg.dec.sync.aligned.u32 %0;"
    ),
    "fence_registers": f"""\
// Let the compiler move no access of sums across this point; it emits no instruction.
template <int N>
{_INLINE} void fence_registers(float* sums) {{
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(sums[i]) :: "memory");
}}""",
    "wgmma_fence": _plain_call("wgmma_fence", "wgmma.fence.sync.aligned;"),
    "wgmma_commit_group": _plain_call("wgmma_commit_group", "wgmma.commit_group.sync.aligned;"),
    "wgmma_wait_group": "// Wait until all but the last N groups of products are complete.\n"
    + _constant_call("wgmma_wait_group", "wgmma.wait_group.sync.aligned %0;"),
    "matrix_descriptor": f"""\
// A tile in shared memory in rows of {SWIZZLE_BYTES} bytes, swizzled; groups of eight rows follow
// each other. If rows run along m or n, the next 64 elements of these are {_BOX_BYTES} bytes away.
{_INLINE} unsigned long long matrix_descriptor(const void* tile) {{
  const unsigned address = __cvta_generic_to_shared(tile);
  return (address & 0x3ffff) >> 4 | {_BOX_BYTES}ull >> 4 << 16 | {_GROUP_BYTES}ull >> 4 << 32 |
         1ull << 62;
}}""",
    **{helper_of(name): _product(i) for name, i in WGMMA_INSTRUCTIONS.items()},
}
"""The declarations by name, each after those that it uses."""
