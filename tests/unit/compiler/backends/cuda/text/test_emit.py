"""Whole programs become text that NVRTC compiles, with the instructions that it should have."""

from __future__ import annotations

import pytest

from compiler.backends.cuda.nvrtc import CompiledSource, compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.error import BuildError
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Buffer,
    Call,
    Compare,
    Conditional,
    Evaluate,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    Load,
    LoopKind,
    Ramp,
    Stmt,
    Store,
    StringImm,
    Var,
    make_buffer,
    seq,
)
from compiler.passes.device.kernel import Axis, DeviceKernel, DeviceProgram, Launch

SYNC = Evaluate(Call("tvm_storage_sync", (StringImm("shared"),), "int32"))
BX, TX = Var("bx"), Var("tx")
A, B = make_buffer("A", (64, 256)), make_buffer("B", (64, 256))


def loop(var: Var, extent: int, body: Stmt, kind: LoopKind = "serial") -> For:
    return For(var, IntImm(extent), body, kind)


def plus(a: Expr, b: Expr) -> BinOp:
    return BinOp("+", a, b)


def kernel(
    name: str,
    body: Stmt,
    *buffers: Buffer,
    shared: dict[Buffer, int] | None = None,
    shared_bytes: int = 0,
    scalars: tuple[Var, ...] = (),
) -> DeviceKernel:
    axes = (Axis("blockIdx.x", BX, 64), Axis("threadIdx.x", TX, 64))
    written = frozenset({buffers[-1]})
    return DeviceKernel(name, axes, buffers, written, scalars, body, shared or {}, shared_bytes)


def program(*kernels: DeviceKernel, launches: tuple[Launch, ...] = ()) -> DeviceProgram:
    buffers = dict.fromkeys(buffer for kernel in kernels for buffer in kernel.buffers)
    every = launches or tuple(Launch(kernel.name) for kernel in kernels)
    return DeviceProgram(tuple(buffers), (), kernels, every)


def vector_copy() -> DeviceKernel:
    v = Var("v")
    index = (BX, plus(BinOp("*", TX, IntImm(4)), v))
    return kernel("vector_copy", loop(v, 4, Store(B, index, Load(A, index)), "vectorized"), A, B)


def cut_vectors() -> DeviceKernel:
    """Vectors of which the last one is not whole."""
    v = Var("v")
    column = plus(BinOp("*", TX, IntImm(4)), v)
    copy = Store(B, (BX, column), Load(A, (BX, column)))
    body = loop(v, 4, If(Compare("<", column, IntImm(251)), copy), "vectorized")
    return kernel("cut_vectors", body, A, B)


def padded_vectors() -> DeviceKernel:
    """Vectors of 16-bit floats, of which the last ones are zeros."""
    half, wide = make_buffer("H", (64, 512), "float16"), make_buffer("W", (64, 512))
    v = Var("v")
    index = (BX, plus(BinOp("*", TX, IntImm(8)), v))
    is_inside = Compare("<", TX, IntImm(60))
    value = Conditional(is_inside, Load(half, index), FloatImm(0.0, "float16"))
    body = loop(v, 8, Store(wide, index, value), "vectorized")
    return kernel("padded_vectors", body, half, wide)


def shared_tile() -> DeviceKernel:
    tile, total = (
        make_buffer("tile", (64,), scope="shared"),
        make_buffer("total", (4,), scope="local"),
    )
    k, u = Var("k"), Var("u")
    sums = loop(
        u,
        4,
        Store(
            total,
            (u,),
            plus(
                Load(total, (u,)),
                Load(tile, (plus(BinOp("%", plus(TX, k), IntImm(16)), BinOp("*", u, IntImm(16))),)),
            ),
        ),
    )
    body = seq(
        Store(tile, (TX,), Load(A, (BX, TX))),
        loop(u, 4, Store(total, (u,), FloatImm(0.0))),
        SYNC,
        loop(k, 16, sums),
        loop(
            u,
            4,
            If(
                Compare("<", BX, IntImm(60)),
                Store(B, (BX, plus(TX, BinOp("*", u, IntImm(64)))), Load(total, (u,))),
            ),
        ),
    )
    body = Allocate(tile, Allocate(total, body))
    return kernel("shared_tile", body, A, B, shared={tile: 128}, shared_bytes=384)


def with_scalar() -> DeviceKernel:
    row = Var("row")
    return kernel(
        "with_scalar",
        Store(B, (row, TX), Load(A, (BinOp("//", row, IntImm(2)), TX))),
        A,
        B,
        scalars=(row,),
    )


SHARED_TILE = """\
// shared_tile: 64 x 1 x 1 blocks of 64 x 1 x 1 threads, 384 bytes of shared memory
extern "C" __global__ void __launch_bounds__(64) shared_tile(
    const float* __restrict__ A,
    float* __restrict__ B) {
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const int bx = blockIdx.x;
  const int tx = threadIdx.x;
  float* const tile = reinterpret_cast<float*>(shared_memory + 128);
  float total[4];
  tile[tx] = A[bx * 256 + tx];
  #pragma unroll
  for (int u = 0; u < 4; ++u) {
    total[u] = 0.0f;
  }
  __syncthreads();
  for (int k = 0; k < 16; ++k) {
    #pragma unroll
    for (int u = 0; u < 4; ++u) {
      total[u] += tile[(tx + k) % 16 + u * 16];
    }
  }
  #pragma unroll
  for (int u = 0; u < 4; ++u) {
    if (bx < 60) {
      B[bx * 256 + tx + u * 64] = total[u];
    }
  }
}
"""
LAUNCHES = (
    Launch("vector_copy"),
    Launch("cut_vectors"),
    Launch("padded_vectors"),
    Launch("shared_tile"),
    Launch("with_scalar", (0,)),
    Launch("with_scalar", (5,)),
)


@pytest.fixture(scope="module")
def text() -> str:
    kernels = (vector_copy(), cut_vectors(), padded_vectors(), shared_tile(), with_scalar())
    return emit_cuda(program(*kernels, launches=LAUNCHES))


@pytest.fixture(scope="module")
def compiled(text: str) -> CompiledSource:
    return compile_cuda(text, "sm_80")


def code_of(compiled: CompiledSource, name: str) -> str:
    return compiled.ptx.partition(f".entry {name}(")[2].partition("\n}")[0]


def text_of(text: str, name: str) -> str:
    return text.partition(f" {name}(")[2].partition("\n}")[0]


def test_every_kernel_has_its_launch_in_a_comment(text: str) -> None:
    assert "// vector_copy: 64 x 1 x 1 blocks of 64 x 1 x 1 threads\nextern" in text
    assert "64 x 1 x 1 threads, 384 bytes of shared memory\nextern" in text


def test_contiguous_lanes_are_one_instruction(text: str, compiled: CompiledSource) -> None:
    assert "store_vec(&B[bx * 256 + tx * 4], load_vec<4>(&A[bx * 256 + tx * 4]));" in text
    assert code_of(compiled, "vector_copy").count("ld.global.nc.v4.f32") == 1
    assert code_of(compiled, "vector_copy").count("st.global.v4.f32") == 1


def test_a_guarded_vector_is_loaded_under_its_guard(text: str, compiled: CompiledSource) -> None:
    assert "if (tx < 60) H_vec = load_vec<4>(" in text
    assert "H_vec[lane] : 0.0f" in text
    assert "ld.global.nc.v" in code_of(compiled, "padded_vectors")
    assert "st.global.v4.f32" in code_of(compiled, "padded_vectors")


def test_vectors_that_a_limit_cuts_are_stored_one_by_one(text: str) -> None:
    body = text_of(text, "cut_vectors")
    assert "if (tx * 4 + 3 < 251) {\n    store_vec(&B[" in body
    assert body.count("load_vec<4>") == body.count("else {") == 1
    assert "if (tx * 4 + v < 251) {" in body


def test_arrays_of_a_thread_stay_in_registers(compiled: CompiledSource) -> None:
    resources = compiled.resources["shared_tile"]
    assert (resources.stack_bytes, resources.spill_bytes) == (0, 0)
    assert "bar.sync" in code_of(compiled, "shared_tile")


def test_a_kernel_reads_as_a_person_would_write_it() -> None:
    assert emit_cuda(program(shared_tile())) == SHARED_TILE


def test_ranges_of_scalars_are_those_of_the_launches(text: str) -> None:
    """A quotient of a natural number is C++'s own."""
    assert "int row" in text_of(text, "with_scalar")
    assert "row / 2" in text_of(text, "with_scalar")


def test_a_store_of_a_vector_is_a_loop_over_its_lanes() -> None:
    ramp = (BX, Ramp(BinOp("*", TX, IntImm(4)), 1, 4))
    text = emit_cuda(program(kernel("ramps", Store(B, ramp, Load(A, ramp)), A, B)))
    assert "store_vec(&B[bx * 256 + tx * 4], load_vec<4>(&A[bx * 256 + tx * 4]));" in text


def test_lanes_that_are_not_aligned_are_scalars() -> None:
    v = Var("v")
    index = (BX, plus(plus(BinOp("*", TX, IntImm(2)), v), IntImm(1)))
    body = loop(v, 2, Store(B, index, Load(A, index)), "vectorized")
    text = emit_cuda(program(kernel("shifted", body, A, B)))
    assert "vec" not in text
    assert "B[bx * 256 + tx * 2 + v + 1] = A[bx * 256 + tx * 2 + v + 1];" in text


def test_names_are_legal_and_unique() -> None:
    """Buffers may have dots and words of C++ in their names, and loops the same name."""
    odd, other = make_buffer("A.shared", (64,)), make_buffer("float", (64,))
    i, j = Var("i"), Var("i")
    body = loop(
        i, 8, loop(j, 8, Store(other, (plus(BinOp("*", i, IntImm(8)), j),), Load(odd, (j,))))
    )
    text = emit_cuda(program(kernel("names", body, odd, other)))
    assert "float_1[i * 8 + i_1] = A_shared[i_1];" in text


@pytest.mark.parametrize(
    ("stmt", "message"),
    [
        (Allocate(make_buffer("F", (16, 16), scope="wmma.matrix_a"), SYNC), "'wmma.matrix_a'"),
        (Evaluate(Call("tvm_storage_sync", (StringImm("global"),), "int32")), "tvm_storage_sync"),
        (Evaluate(Load(A, (BX, TX))), "Load"),
    ],
)
def test_what_cuda_lacks_is_an_error(stmt: Stmt, message: str) -> None:
    with pytest.raises(BuildError, match=message) as refusal:
        emit_cuda(program(kernel("refused", stmt, A, B)))
    assert refusal.value.code == "codegen"
