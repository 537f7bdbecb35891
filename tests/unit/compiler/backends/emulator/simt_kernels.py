"""Correct kernels without tensor cores, whose mutants must be caught."""

MATMUL = """
extern "C" __global__ void __launch_bounds__(64) matmul(const float* __restrict__ a,
                                                        const float* __restrict__ b,
                                                        float* __restrict__ c, int n) {
  extern __shared__ float arena[];
  float* tile_a = arena;            // 16 columns of 32 rows, padded
  float* tile_b = arena + 16 * 36;  // 16 rows of 32 columns
  int x = threadIdx.x % 8, y = threadIdx.x / 8;
  int row = blockIdx.y * 32, column = blockIdx.x * 32;
  float sums[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    for (int i = threadIdx.x; i < 512; i += 64)
      tile_a[i % 16 * 36 + i / 16] = a[(row + i / 16) * n + k + i % 16];
    for (int i = threadIdx.x; i < 512; i += 64)
      tile_b[i] = b[(k + i / 32) * n + column + i % 32];
    __syncthreads();  // filled
#pragma unroll
    for (int kk = 0; kk < 16; kk++) {
      float4 u = *(float4*)(tile_a + kk * 36 + 4 * y), v = *(float4*)(tile_b + kk * 32 + 4 * x);
      float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i][j] += us[i] * vs[j];
    }
    __syncthreads();  // used
  }
  for (int i = 0; i < 4; i++)
    *(float4*)(c + (row + 4 * y + i) * n + column + 4 * x) =
        make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
}
"""

TRANSPOSE = """
#define STRIDE 33
extern "C" __global__ void transpose(const float* a, float* b, int rows, int columns) {
  __shared__ float tile[32 * STRIDE];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (int i = 0; i < 32; i += 8)
    tile[(y + i) * STRIDE + x] = a[(blockIdx.y * 32 + y + i) * columns + blockIdx.x * 32 + x];
  __syncthreads();  // filled
  for (int i = 0; i < 32; i += 8)
    b[(blockIdx.x * 32 + y + i) * rows + blockIdx.y * 32 + x] = tile[x * STRIDE + y + i];
}
"""

SOFTMAX = """
extern "C" __global__ void softmax(const float* a, float* b, int columns) {
  __shared__ float partial[4];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  a += blockIdx.x * columns; b += blockIdx.x * columns;
  float largest = -3e38f, total = 0;
  for (int i = threadIdx.x; i < columns; i += 128) largest = fmaxf(largest, a[i]);
  for (int d = 16; d; d /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, d));
  if (lane == 0) partial[warp] = largest;
  __syncthreads();  // maxima
  largest = fmaxf(fmaxf(partial[0], partial[1]), fmaxf(partial[2], partial[3]));
  for (int i = threadIdx.x; i < columns; i += 128) total += expf(a[i] - largest);
  for (int d = 16; d; d /= 2) total += __shfl_xor_sync(~0u, total, d);
  __syncthreads();  // used
  if (lane == 0) partial[warp] = total;
  __syncthreads();  // sums
  total = partial[0] + partial[1] + partial[2] + partial[3];
  for (int i = threadIdx.x; i < columns; i += 128) b[i] = expf(a[i] - largest) / total;
}
"""
