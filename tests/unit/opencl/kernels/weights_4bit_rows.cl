// MatMulNBits(MatMulNBits0.0, MatMulNBits0.1, MatMulNBits0.2)
//
// launch 0: weights4bit_467e43ec8325(arena[0, +4096], weight 0, weight 1, arena[4096, +2560]), 5 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights4bit_467e43ec8325(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global float* p3)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 5); ++u) {
    float f[1024];
    const int n0 = min(u * 8, 32);
    __global const int* w = p1 + (size_t)u * 64 + 0;
    __global const float* scales = p2 + u * 16 + 0;
    for (int k0 = 0; k0 < 64; k0 += 128) {
      const int depth = min(128, 64 - k0);
      for (int c = 0; c < 4 && k0 / 32 + c < 2; ++c) {
        const int b = k0 / 32 + c;
        const float8 scale0 = vload8(0, scales + b * 8 + 0);
        const float8 zero0 = (float8)(8.0f);
        for (int i = 0; i < 4; ++i) {
          float* to = f + (c * 32 + i * 8) * 8;
          const int8 w0 = vload8(0, w + 0);
          vstore8((convert_float8(((w0 >> 0) & 15)) - zero0) * scale0, 0, to + 0);
          vstore8((convert_float8(((w0 >> 4) & 15)) - zero0) * scale0, 0, to + 8);
          vstore8((convert_float8(((w0 >> 8) & 15)) - zero0) * scale0, 0, to + 16);
          vstore8((convert_float8(((w0 >> 12) & 15)) - zero0) * scale0, 0, to + 24);
          vstore8((convert_float8(((w0 >> 16) & 15)) - zero0) * scale0, 0, to + 32);
          vstore8((convert_float8(((w0 >> 20) & 15)) - zero0) * scale0, 0, to + 40);
          vstore8((convert_float8(((w0 >> 24) & 15)) - zero0) * scale0, 0, to + 48);
          vstore8((convert_float8(((w0 >> 28) & 15)) - zero0) * scale0, 0, to + 56);
          w += 8;
        }
      }
      for (int m = 0; m < 12; m += 12) {
        __global const float* x0 = p0 + 0 + (m + 0) * 64 + k0;
        __global float* y0 = p3 + 0 + (m + 0) * 40 + n0;
        __global const float* x1 = p0 + 0 + (m + 1) * 64 + k0;
        __global float* y1 = p3 + 0 + (m + 1) * 40 + n0;
        __global const float* x2 = p0 + 0 + (m + 2) * 64 + k0;
        __global float* y2 = p3 + 0 + (m + 2) * 40 + n0;
        __global const float* x3 = p0 + 0 + (m + 3) * 64 + k0;
        __global float* y3 = p3 + 0 + (m + 3) * 40 + n0;
        __global const float* x4 = p0 + 0 + (m + 4) * 64 + k0;
        __global float* y4 = p3 + 0 + (m + 4) * 40 + n0;
        __global const float* x5 = p0 + 0 + (m + 5) * 64 + k0;
        __global float* y5 = p3 + 0 + (m + 5) * 40 + n0;
        __global const float* x6 = p0 + 0 + (m + 6) * 64 + k0;
        __global float* y6 = p3 + 0 + (m + 6) * 40 + n0;
        __global const float* x7 = p0 + 0 + (m + 7) * 64 + k0;
        __global float* y7 = p3 + 0 + (m + 7) * 40 + n0;
        __global const float* x8 = p0 + 0 + (m + 8) * 64 + k0;
        __global float* y8 = p3 + 0 + (m + 8) * 40 + n0;
        __global const float* x9 = p0 + 0 + (m + 9) * 64 + k0;
        __global float* y9 = p3 + 0 + (m + 9) * 40 + n0;
        __global const float* x10 = p0 + 0 + (m + 10) * 64 + k0;
        __global float* y10 = p3 + 0 + (m + 10) * 40 + n0;
        __global const float* x11 = p0 + 0 + (m + 11) * 64 + k0;
        __global float* y11 = p3 + 0 + (m + 11) * 40 + n0;
        float8 a0_0 = k0 ? vload8(0, y0 + 0) : (float8)(0.0f);
        float8 a1_0 = k0 ? vload8(0, y1 + 0) : (float8)(0.0f);
        float8 a2_0 = k0 ? vload8(0, y2 + 0) : (float8)(0.0f);
        float8 a3_0 = k0 ? vload8(0, y3 + 0) : (float8)(0.0f);
        float8 a4_0 = k0 ? vload8(0, y4 + 0) : (float8)(0.0f);
        float8 a5_0 = k0 ? vload8(0, y5 + 0) : (float8)(0.0f);
        float8 a6_0 = k0 ? vload8(0, y6 + 0) : (float8)(0.0f);
        float8 a7_0 = k0 ? vload8(0, y7 + 0) : (float8)(0.0f);
        float8 a8_0 = k0 ? vload8(0, y8 + 0) : (float8)(0.0f);
        float8 a9_0 = k0 ? vload8(0, y9 + 0) : (float8)(0.0f);
        float8 a10_0 = k0 ? vload8(0, y10 + 0) : (float8)(0.0f);
        float8 a11_0 = k0 ? vload8(0, y11 + 0) : (float8)(0.0f);
        for (int k = 0; k < depth; ++k) {
          const float8 f0 = vload8(0, f + k * 8 + 0);
          const float8 b0 = (float8)(x0[k]);
          a0_0 = mad(b0, f0, a0_0);
          const float8 b1 = (float8)(x1[k]);
          a1_0 = mad(b1, f0, a1_0);
          const float8 b2 = (float8)(x2[k]);
          a2_0 = mad(b2, f0, a2_0);
          const float8 b3 = (float8)(x3[k]);
          a3_0 = mad(b3, f0, a3_0);
          const float8 b4 = (float8)(x4[k]);
          a4_0 = mad(b4, f0, a4_0);
          const float8 b5 = (float8)(x5[k]);
          a5_0 = mad(b5, f0, a5_0);
          const float8 b6 = (float8)(x6[k]);
          a6_0 = mad(b6, f0, a6_0);
          const float8 b7 = (float8)(x7[k]);
          a7_0 = mad(b7, f0, a7_0);
          const float8 b8 = (float8)(x8[k]);
          a8_0 = mad(b8, f0, a8_0);
          const float8 b9 = (float8)(x9[k]);
          a9_0 = mad(b9, f0, a9_0);
          const float8 b10 = (float8)(x10[k]);
          a10_0 = mad(b10, f0, a10_0);
          const float8 b11 = (float8)(x11[k]);
          a11_0 = mad(b11, f0, a11_0);
        }
        vstore8(a0_0, 0, y0 + 0);
        vstore8(a1_0, 0, y1 + 0);
        vstore8(a2_0, 0, y2 + 0);
        vstore8(a3_0, 0, y3 + 0);
        vstore8(a4_0, 0, y4 + 0);
        vstore8(a5_0, 0, y5 + 0);
        vstore8(a6_0, 0, y6 + 0);
        vstore8(a7_0, 0, y7 + 0);
        vstore8(a8_0, 0, y8 + 0);
        vstore8(a9_0, 0, y9 + 0);
        vstore8(a10_0, 0, y10 + 0);
        vstore8(a11_0, 0, y11 + 0);
      }
      for (int m = 12; m < 16; m += 4) {
        __global const float* x0 = p0 + 0 + (m + 0) * 64 + k0;
        __global float* y0 = p3 + 0 + (m + 0) * 40 + n0;
        __global const float* x1 = p0 + 0 + (m + 1) * 64 + k0;
        __global float* y1 = p3 + 0 + (m + 1) * 40 + n0;
        __global const float* x2 = p0 + 0 + (m + 2) * 64 + k0;
        __global float* y2 = p3 + 0 + (m + 2) * 40 + n0;
        __global const float* x3 = p0 + 0 + (m + 3) * 64 + k0;
        __global float* y3 = p3 + 0 + (m + 3) * 40 + n0;
        float8 a0_0 = k0 ? vload8(0, y0 + 0) : (float8)(0.0f);
        float8 a1_0 = k0 ? vload8(0, y1 + 0) : (float8)(0.0f);
        float8 a2_0 = k0 ? vload8(0, y2 + 0) : (float8)(0.0f);
        float8 a3_0 = k0 ? vload8(0, y3 + 0) : (float8)(0.0f);
        for (int k = 0; k < depth; ++k) {
          const float8 f0 = vload8(0, f + k * 8 + 0);
          const float8 b0 = (float8)(x0[k]);
          a0_0 = mad(b0, f0, a0_0);
          const float8 b1 = (float8)(x1[k]);
          a1_0 = mad(b1, f0, a1_0);
          const float8 b2 = (float8)(x2[k]);
          a2_0 = mad(b2, f0, a2_0);
          const float8 b3 = (float8)(x3[k]);
          a3_0 = mad(b3, f0, a3_0);
        }
        vstore8(a0_0, 0, y0 + 0);
        vstore8(a1_0, 0, y1 + 0);
        vstore8(a2_0, 0, y2 + 0);
        vstore8(a3_0, 0, y3 + 0);
      }
    }
  }
}
