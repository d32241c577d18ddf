// MatMulNBits(MatMulNBits0.0, MatMulNBits0.1, MatMulNBits0.2)
//
// launch 0: weights4bit_f81748e76d59(arena[0, +4096], weight 0, weight 1, arena[4096, +2560]), 3 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights4bit_f81748e76d59(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global float* p3)
{
  const int id = get_global_id(0);
  for (int unit = id * 1; unit < min(id * 1 + 1, 3); ++unit) {
    float f[1024] __attribute__((aligned(64)));
    const int count = min(2, 5 - unit * 2);
    for (int k0 = 0; k0 < 64; k0 += 64) {
      const int depth = min(64, 64 - k0);
      for (int p = 0; p < count; ++p) {
        const int u = unit * 2 + p;
        const int n0 = min(u * 8, 32);
        __global const int* w = p1 + (size_t)u * 64 + 0;
        __global const float* scales = p2 + u * 16 + 0;
        w += k0 / 8 * 8;
        for (int c = 0; c < 2; ++c) {
          const int b = k0 / 32 + c;
          const float8 scale0 = vload8(0, scales + b * 8 + 0);
          const float8 zero0 = (float8)(8.0f);
          for (int i = 0; i < 4; ++i) {
            __private float* to = f + p * 512 + (c * 32 + i * 8) * 8;
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
      }
      for (int m = 0; m < 12; m += 12) {
        __global const float* x0 = p0 + 0 + (m + 0) * 64 + k0;
        __global const float* x1 = p0 + 0 + (m + 1) * 64 + k0;
        __global const float* x2 = p0 + 0 + (m + 2) * 64 + k0;
        __global const float* x3 = p0 + 0 + (m + 3) * 64 + k0;
        __global const float* x4 = p0 + 0 + (m + 4) * 64 + k0;
        __global const float* x5 = p0 + 0 + (m + 5) * 64 + k0;
        __global const float* x6 = p0 + 0 + (m + 6) * 64 + k0;
        __global const float* x7 = p0 + 0 + (m + 7) * 64 + k0;
        __global const float* x8 = p0 + 0 + (m + 8) * 64 + k0;
        __global const float* x9 = p0 + 0 + (m + 9) * 64 + k0;
        __global const float* x10 = p0 + 0 + (m + 10) * 64 + k0;
        __global const float* x11 = p0 + 0 + (m + 11) * 64 + k0;
        for (int strip = 0; strip < count * 1; ++strip) {
          __private const float* fs = f + strip * 512;
          __global float* y = p3 + 0 + m * 40 + unit * 16 + strip * 8;
          float8 a0_0 = k0 ? vload8(0, y + 0) : (float8)(0.0f);
          float8 a1_0 = k0 ? vload8(0, y + 40) : (float8)(0.0f);
          float8 a2_0 = k0 ? vload8(0, y + 80) : (float8)(0.0f);
          float8 a3_0 = k0 ? vload8(0, y + 120) : (float8)(0.0f);
          float8 a4_0 = k0 ? vload8(0, y + 160) : (float8)(0.0f);
          float8 a5_0 = k0 ? vload8(0, y + 200) : (float8)(0.0f);
          float8 a6_0 = k0 ? vload8(0, y + 240) : (float8)(0.0f);
          float8 a7_0 = k0 ? vload8(0, y + 280) : (float8)(0.0f);
          float8 a8_0 = k0 ? vload8(0, y + 320) : (float8)(0.0f);
          float8 a9_0 = k0 ? vload8(0, y + 360) : (float8)(0.0f);
          float8 a10_0 = k0 ? vload8(0, y + 400) : (float8)(0.0f);
          float8 a11_0 = k0 ? vload8(0, y + 440) : (float8)(0.0f);
          for (int k = 0; k < depth; k += 4) {
            const float8 f0_0 = vload8(0, fs + (k + 0) * 8 + 0);
            const float8 b0_0 = (float8)(x0[k + 0]);
            a0_0 = mad(b0_0, f0_0, a0_0);
            const float8 b0_1 = (float8)(x1[k + 0]);
            a1_0 = mad(b0_1, f0_0, a1_0);
            const float8 b0_2 = (float8)(x2[k + 0]);
            a2_0 = mad(b0_2, f0_0, a2_0);
            const float8 b0_3 = (float8)(x3[k + 0]);
            a3_0 = mad(b0_3, f0_0, a3_0);
            const float8 b0_4 = (float8)(x4[k + 0]);
            a4_0 = mad(b0_4, f0_0, a4_0);
            const float8 b0_5 = (float8)(x5[k + 0]);
            a5_0 = mad(b0_5, f0_0, a5_0);
            const float8 b0_6 = (float8)(x6[k + 0]);
            a6_0 = mad(b0_6, f0_0, a6_0);
            const float8 b0_7 = (float8)(x7[k + 0]);
            a7_0 = mad(b0_7, f0_0, a7_0);
            const float8 b0_8 = (float8)(x8[k + 0]);
            a8_0 = mad(b0_8, f0_0, a8_0);
            const float8 b0_9 = (float8)(x9[k + 0]);
            a9_0 = mad(b0_9, f0_0, a9_0);
            const float8 b0_10 = (float8)(x10[k + 0]);
            a10_0 = mad(b0_10, f0_0, a10_0);
            const float8 b0_11 = (float8)(x11[k + 0]);
            a11_0 = mad(b0_11, f0_0, a11_0);
            const float8 f1_0 = vload8(0, fs + (k + 1) * 8 + 0);
            const float8 b1_0 = (float8)(x0[k + 1]);
            a0_0 = mad(b1_0, f1_0, a0_0);
            const float8 b1_1 = (float8)(x1[k + 1]);
            a1_0 = mad(b1_1, f1_0, a1_0);
            const float8 b1_2 = (float8)(x2[k + 1]);
            a2_0 = mad(b1_2, f1_0, a2_0);
            const float8 b1_3 = (float8)(x3[k + 1]);
            a3_0 = mad(b1_3, f1_0, a3_0);
            const float8 b1_4 = (float8)(x4[k + 1]);
            a4_0 = mad(b1_4, f1_0, a4_0);
            const float8 b1_5 = (float8)(x5[k + 1]);
            a5_0 = mad(b1_5, f1_0, a5_0);
            const float8 b1_6 = (float8)(x6[k + 1]);
            a6_0 = mad(b1_6, f1_0, a6_0);
            const float8 b1_7 = (float8)(x7[k + 1]);
            a7_0 = mad(b1_7, f1_0, a7_0);
            const float8 b1_8 = (float8)(x8[k + 1]);
            a8_0 = mad(b1_8, f1_0, a8_0);
            const float8 b1_9 = (float8)(x9[k + 1]);
            a9_0 = mad(b1_9, f1_0, a9_0);
            const float8 b1_10 = (float8)(x10[k + 1]);
            a10_0 = mad(b1_10, f1_0, a10_0);
            const float8 b1_11 = (float8)(x11[k + 1]);
            a11_0 = mad(b1_11, f1_0, a11_0);
            const float8 f2_0 = vload8(0, fs + (k + 2) * 8 + 0);
            const float8 b2_0 = (float8)(x0[k + 2]);
            a0_0 = mad(b2_0, f2_0, a0_0);
            const float8 b2_1 = (float8)(x1[k + 2]);
            a1_0 = mad(b2_1, f2_0, a1_0);
            const float8 b2_2 = (float8)(x2[k + 2]);
            a2_0 = mad(b2_2, f2_0, a2_0);
            const float8 b2_3 = (float8)(x3[k + 2]);
            a3_0 = mad(b2_3, f2_0, a3_0);
            const float8 b2_4 = (float8)(x4[k + 2]);
            a4_0 = mad(b2_4, f2_0, a4_0);
            const float8 b2_5 = (float8)(x5[k + 2]);
            a5_0 = mad(b2_5, f2_0, a5_0);
            const float8 b2_6 = (float8)(x6[k + 2]);
            a6_0 = mad(b2_6, f2_0, a6_0);
            const float8 b2_7 = (float8)(x7[k + 2]);
            a7_0 = mad(b2_7, f2_0, a7_0);
            const float8 b2_8 = (float8)(x8[k + 2]);
            a8_0 = mad(b2_8, f2_0, a8_0);
            const float8 b2_9 = (float8)(x9[k + 2]);
            a9_0 = mad(b2_9, f2_0, a9_0);
            const float8 b2_10 = (float8)(x10[k + 2]);
            a10_0 = mad(b2_10, f2_0, a10_0);
            const float8 b2_11 = (float8)(x11[k + 2]);
            a11_0 = mad(b2_11, f2_0, a11_0);
            const float8 f3_0 = vload8(0, fs + (k + 3) * 8 + 0);
            const float8 b3_0 = (float8)(x0[k + 3]);
            a0_0 = mad(b3_0, f3_0, a0_0);
            const float8 b3_1 = (float8)(x1[k + 3]);
            a1_0 = mad(b3_1, f3_0, a1_0);
            const float8 b3_2 = (float8)(x2[k + 3]);
            a2_0 = mad(b3_2, f3_0, a2_0);
            const float8 b3_3 = (float8)(x3[k + 3]);
            a3_0 = mad(b3_3, f3_0, a3_0);
            const float8 b3_4 = (float8)(x4[k + 3]);
            a4_0 = mad(b3_4, f3_0, a4_0);
            const float8 b3_5 = (float8)(x5[k + 3]);
            a5_0 = mad(b3_5, f3_0, a5_0);
            const float8 b3_6 = (float8)(x6[k + 3]);
            a6_0 = mad(b3_6, f3_0, a6_0);
            const float8 b3_7 = (float8)(x7[k + 3]);
            a7_0 = mad(b3_7, f3_0, a7_0);
            const float8 b3_8 = (float8)(x8[k + 3]);
            a8_0 = mad(b3_8, f3_0, a8_0);
            const float8 b3_9 = (float8)(x9[k + 3]);
            a9_0 = mad(b3_9, f3_0, a9_0);
            const float8 b3_10 = (float8)(x10[k + 3]);
            a10_0 = mad(b3_10, f3_0, a10_0);
            const float8 b3_11 = (float8)(x11[k + 3]);
            a11_0 = mad(b3_11, f3_0, a11_0);
          }
          {
            vstore8(a0_0, 0, y + 0);
            vstore8(a1_0, 0, y + 40);
            vstore8(a2_0, 0, y + 80);
            vstore8(a3_0, 0, y + 120);
            vstore8(a4_0, 0, y + 160);
            vstore8(a5_0, 0, y + 200);
            vstore8(a6_0, 0, y + 240);
            vstore8(a7_0, 0, y + 280);
            vstore8(a8_0, 0, y + 320);
            vstore8(a9_0, 0, y + 360);
            vstore8(a10_0, 0, y + 400);
            vstore8(a11_0, 0, y + 440);
          }
        }
      }
      for (int m = 12; m < 16; m += 4) {
        __global const float* x0 = p0 + 0 + (m + 0) * 64 + k0;
        __global const float* x1 = p0 + 0 + (m + 1) * 64 + k0;
        __global const float* x2 = p0 + 0 + (m + 2) * 64 + k0;
        __global const float* x3 = p0 + 0 + (m + 3) * 64 + k0;
        for (int strip = 0; strip < count * 1; ++strip) {
          __private const float* fs = f + strip * 512;
          __global float* y = p3 + 0 + m * 40 + unit * 16 + strip * 8;
          float8 a0_0 = k0 ? vload8(0, y + 0) : (float8)(0.0f);
          float8 a1_0 = k0 ? vload8(0, y + 40) : (float8)(0.0f);
          float8 a2_0 = k0 ? vload8(0, y + 80) : (float8)(0.0f);
          float8 a3_0 = k0 ? vload8(0, y + 120) : (float8)(0.0f);
          for (int k = 0; k < depth; k += 4) {
            const float8 f0_0 = vload8(0, fs + (k + 0) * 8 + 0);
            const float8 b0_0 = (float8)(x0[k + 0]);
            a0_0 = mad(b0_0, f0_0, a0_0);
            const float8 b0_1 = (float8)(x1[k + 0]);
            a1_0 = mad(b0_1, f0_0, a1_0);
            const float8 b0_2 = (float8)(x2[k + 0]);
            a2_0 = mad(b0_2, f0_0, a2_0);
            const float8 b0_3 = (float8)(x3[k + 0]);
            a3_0 = mad(b0_3, f0_0, a3_0);
            const float8 f1_0 = vload8(0, fs + (k + 1) * 8 + 0);
            const float8 b1_0 = (float8)(x0[k + 1]);
            a0_0 = mad(b1_0, f1_0, a0_0);
            const float8 b1_1 = (float8)(x1[k + 1]);
            a1_0 = mad(b1_1, f1_0, a1_0);
            const float8 b1_2 = (float8)(x2[k + 1]);
            a2_0 = mad(b1_2, f1_0, a2_0);
            const float8 b1_3 = (float8)(x3[k + 1]);
            a3_0 = mad(b1_3, f1_0, a3_0);
            const float8 f2_0 = vload8(0, fs + (k + 2) * 8 + 0);
            const float8 b2_0 = (float8)(x0[k + 2]);
            a0_0 = mad(b2_0, f2_0, a0_0);
            const float8 b2_1 = (float8)(x1[k + 2]);
            a1_0 = mad(b2_1, f2_0, a1_0);
            const float8 b2_2 = (float8)(x2[k + 2]);
            a2_0 = mad(b2_2, f2_0, a2_0);
            const float8 b2_3 = (float8)(x3[k + 2]);
            a3_0 = mad(b2_3, f2_0, a3_0);
            const float8 f3_0 = vload8(0, fs + (k + 3) * 8 + 0);
            const float8 b3_0 = (float8)(x0[k + 3]);
            a0_0 = mad(b3_0, f3_0, a0_0);
            const float8 b3_1 = (float8)(x1[k + 3]);
            a1_0 = mad(b3_1, f3_0, a1_0);
            const float8 b3_2 = (float8)(x2[k + 3]);
            a2_0 = mad(b3_2, f3_0, a2_0);
            const float8 b3_3 = (float8)(x3[k + 3]);
            a3_0 = mad(b3_3, f3_0, a3_0);
          }
          {
            vstore8(a0_0, 0, y + 0);
            vstore8(a1_0, 0, y + 40);
            vstore8(a2_0, 0, y + 80);
            vstore8(a3_0, 0, y + 120);
          }
        }
      }
    }
  }
}
