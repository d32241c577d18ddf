// MatMulNBits(MatMulNBits0.0, MatMulNBits0.1, MatMulNBits0.2)
//
// launch 0: weights4bit_d431528b819d(arena[0, +256], weight 0, weight 1, arena[256, +160]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights4bit_d431528b819d(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global float* p3)
{
  float x[64], sums[2];
  for (int m = 0; m < 1; ++m) {
    __global const float* row = p0 + 0 + m * 64;
    for (int b = 0; b < 2; ++b) {
      float sum = 0.0f;
      for (int i = b * 32; i < (b + 1) * 32; i += 8) {
        const float v0 = row[i + 0];
        x[i + 0] = v0 * 1.0f;
        const float v1 = row[i + 1];
        x[i + 1] = v1 * 0.0625f;
        const float v2 = row[i + 2];
        x[i + 2] = v2 * 0.00390625f;
        const float v3 = row[i + 3];
        x[i + 3] = v3 * 0.000244140625f;
        const float v4 = row[i + 4];
        x[i + 4] = v4 * 1.52587890625e-05f;
        const float v5 = row[i + 5];
        x[i + 5] = v5 * 9.5367431640625e-07f;
        const float v6 = row[i + 6];
        x[i + 6] = v6 * 5.960464477539063e-08f;
        const float v7 = row[i + 7];
        x[i + 7] = v7 * 1.0f;
        sum += v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7;
      }
      sums[b] = sum;
    }
    const int id = get_global_id(0);
    for (int u = id * 5; u < min(id * 5 + 5, 5); ++u) {
      const int n0 = min(u * 8, 32);
      __global const int* w = p1 + (size_t)u * 64 + 0;
      __global const float* scales = p2 + u * 16 + 0;
      float8 t0_0 = (float8)(0.0f);
      for (int b = 0; b < 2; ++b) {
        float8 a0_0 = (float8)(0.0f);
        for (int i = 0; i < 4; ++i) {
          __private const float* xi = x + b * 32 + i * 8;
          const int8 w0 = vload8(0, w + 0);
          w += 8;
          const float8 x0 = (float8)(xi[0]);
          a0_0 = mad(x0, convert_float8(w0 & 15), a0_0);
          const float8 x1 = (float8)(xi[1]);
          a0_0 = mad(x1, convert_float8(w0 & 240), a0_0);
          const float8 x2 = (float8)(xi[2]);
          a0_0 = mad(x2, convert_float8(w0 & 3840), a0_0);
          const float8 x3 = (float8)(xi[3]);
          a0_0 = mad(x3, convert_float8(w0 & 61440), a0_0);
          const float8 x4 = (float8)(xi[4]);
          a0_0 = mad(x4, convert_float8(w0 & 983040), a0_0);
          const float8 x5 = (float8)(xi[5]);
          a0_0 = mad(x5, convert_float8(w0 & 15728640), a0_0);
          const float8 x6 = (float8)(xi[6]);
          a0_0 = mad(x6, convert_float8(w0 & 251658240), a0_0);
          const float8 x7 = (float8)(xi[7]);
          a0_0 = mad(x7, convert_float8((w0 >> 28) & 15), a0_0);
        }
        t0_0 = mad(vload8(0, scales + b * 8 + 0), a0_0 - (float8)(8.0f) * sums[b], t0_0);
      }
      vstore8(t0_0, 0, p3 + (m) * 40 + (n0 + 0));
    }
  }
}
