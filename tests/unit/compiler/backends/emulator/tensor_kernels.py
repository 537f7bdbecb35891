"""Correct kernels with tensor cores and asynchronous copies, whose mutants must be caught."""

PIPELINE = r"""
// C[64, 64] += A[64, k] * B[k, 64] in bfloat16: three stages of 32 columns, four warps of 32 x 32.
#define STAGES 3
#define SWIZZLE_WRITE_A(r, c) ((c) ^ (((r) >> 1) & 3))
#define SWIZZLE_READ_A(r, c) ((c) ^ (((r) >> 1) & 3))
#define SWIZZLE_WRITE_B(r, c) ((c) ^ ((r) & 7))
#define SWIZZLE_READ_B(r, c) ((c) ^ ((r) & 7))
typedef unsigned u32;
typedef unsigned short u16;
__device__ __forceinline__ void copy(u32 to, const u16* of) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(of) : "memory");
}
extern "C" __global__ void __launch_bounds__(128) pipeline(const u16* a, const u16* b, float* c,
                                                           int k) {
  extern __shared__ __align__(128) unsigned char arena[];
  u32 base = (u32)__cvta_generic_to_shared(arena);
  int t = threadIdx.x, lane = t & 31, m0 = (t >> 5 & 1) * 32, n0 = (t >> 6) * 32, steps = k / 32;
  float sums[2][4][4] = {};
  auto load = [&](int stage, int step) {
    for (int i = t; i < 256; i += 128) {
      int r = i >> 2, col = i & 3;
      copy(base + stage * 8192 + r * 64 + (SWIZZLE_WRITE_A(r, col) << 4),
           a + r * k + step * 32 + col * 8);
    }
    for (int i = t; i < 256; i += 128) {
      int r = i >> 3, col = i & 7;
      copy(base + stage * 8192 + 4096 + r * 128 + (SWIZZLE_WRITE_B(r, col) << 4),
           b + (step * 32 + r) * 64 + col * 8);
    }
  };
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) {
    if (s < steps) load(s, s);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    if (step + STAGES - 1 < steps) load((step + STAGES - 1) % STAGES, step + STAGES - 1);
    asm volatile("cp.async.commit_group;" ::: "memory");
    u32 tile_a = base + step % STAGES * 8192, tile_b = tile_a + 4096;
#pragma unroll
    for (int kk = 0; kk < 2; kk++) {
      u32 x[2][4], y[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        int r = m0 + i * 16 + (lane & 15), col = kk * 2 + (lane >> 4);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[i][0]), "=r"(x[i][1]), "=r"(x[i][2]), "=r"(x[i][3])
                     : "r"(tile_a + r * 64 + (SWIZZLE_READ_A(r, col) << 4)));
        r = kk * 16 + (lane & 15), col = (n0 >> 3) + i * 2 + (lane >> 4);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(y[i][0]), "=r"(y[i][1]), "=r"(y[i][2]), "=r"(y[i][3])
                     : "r"(tile_b + r * 128 + (SWIZZLE_READ_B(r, col) << 4)));
      }
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7},"
              " {%8,%9}, {%0,%1,%2,%3};"
              : "+f"(sums[i][j][0]), "+f"(sums[i][j][1]), "+f"(sums[i][j][2]), "+f"(sums[i][j][3])
              : "r"(x[i][0]), "r"(x[i][1]), "r"(x[i][2]), "r"(x[i][3]),
                "r"(y[j >> 1][j % 2 * 2]), "r"(y[j >> 1][j % 2 * 2 + 1]));
    }
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        c[(m0 + i * 16 + (lane >> 2) + e / 2 * 8) * 64 + n0 + j * 8 + (lane & 3) * 2 + e % 2] =
            sums[i][j][e];
}
"""

WARPGROUP = r"""
// C[64, 64] = A[64, k] * B[64, k]^T in bfloat16: thread 0 loads by TMA into two stages of 64
// columns with a swizzle of 128 bytes, the second warpgroup computes.
#define STAGES 2
typedef unsigned u32;
typedef unsigned long long u64;
struct __align__(128) TensorMap { u64 words[16]; };
__device__ __forceinline__ u32 shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void wait(u32 barrier, int parity) {
  asm volatile("{\n.reg .pred done;\nagain:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
               ::"r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void load(u32 to, const TensorMap* map, u32 barrier, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%3, %4}], [%2];"
               ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y) : "memory");
}
__device__ __forceinline__ u64 descriptor(u32 address) {
  return (u64)((address & 0x3FFFF) >> 4) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62;
}
extern "C" __global__ void __launch_bounds__(256) warpgroup(const __grid_constant__ TensorMap a,
                                                            const __grid_constant__ TensorMap b,
                                                            float* c, int k) {
  extern __shared__ __align__(1024) unsigned char arena[];
  __shared__ __align__(8) u64 full[STAGES], empty[STAGES];
  u32 base = shared(arena);
  int t = threadIdx.x, steps = k / 64;
  if (t == 0) {
    for (int s = 0; s < STAGES; s++) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&full[s])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&empty[s])) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (t < 128) {
    if (t == 0)
#pragma unroll 1
      for (int i = 0; i < steps; i++) {
        int s = i % STAGES, parity = i / STAGES & 1;
        wait(shared(&empty[s]), parity ^ 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     ::"r"(shared(&full[s])), "r"(16384) : "memory");
        load(base + s * 16384, &a, shared(&full[s]), i * 64, 0);
        load(base + s * 16384 + 8192, &b, shared(&full[s]), i * 64, 0);
      }
  } else {
    float d[32] = {};
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
      int s = i % STAGES, parity = i / STAGES & 1;
      wait(shared(&full[s]), parity);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int kk = 0; kk < 4; kk++) {
        u64 x = descriptor(base + s * 16384 + kk * 32);
        u64 y = descriptor(base + s * 16384 + 8192 + kk * 32);
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
                     "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                     "%32, %33, p, 1, 1, 0, 0;\n}"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                       "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                       "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
                       "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
                       "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]),
                       "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                     : "l"(x), "l"(y));
      }
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (t == 128)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(&empty[s]))
                     : "memory");
    }
    int lane = t & 31, row = (t / 32 & 3) * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < 32; j++)
      c[(row + j % 4 / 2 * 8) * 64 + j / 4 * 8 + lane % 4 * 2 + j % 2] = d[j];
  }
}
"""

STORE = r"""
// B = 2 * A for floats of 16 rows and 32 columns: a block computes in shared memory, and one
// thread stores the tile by TMA.
struct __align__(128) TensorMap { unsigned long long words[16]; };
extern "C" __global__ void __launch_bounds__(64) store(const float* a,
                                                       const __grid_constant__ TensorMap b) {
  __shared__ __align__(128) float tile[512];
  for (int i = threadIdx.x; i < 512; i += 64) tile[i] = 2 * a[blockIdx.x * 512 + i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                 ::"l"(&b), "r"((unsigned)__cvta_generic_to_shared(tile)), "r"(0),
                   "r"(blockIdx.x * 16) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
"""
