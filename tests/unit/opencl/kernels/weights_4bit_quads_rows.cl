// MatMulNBits(MatMulNBits0.0, MatMulNBits0.1, MatMulNBits0.2)
//
// launch 0: weights4bit_bytes_c03849b37e9e(arena[0, +2560], weight 0, weight 1, arena[2560, +1920]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights4bit_bytes_c03849b37e9e(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global float* p3)
{
  int bytes[160], begin[20];
  float factors[20];
  const int unit = get_global_id(0), first = unit % 1;
  const int m0 = min(unit / 1 * 10, 0);
  for (int m = 0; m < 10; ++m) {
    __global const float* row = p0 + 0 + (m0 + m) * 64;
    for (int b = 0; b < 2; ++b) {
      int8 magnitude = (int8)(0);
      float8 x[4];
      for (int i = 0; i < 4; ++i) {
        const int k = b * 32 + i * 8;
        x[i] = vload8(0, row + k);
        magnitude = max(magnitude, as_int8(x[i]) & 0x7fffffff);
      }
      const int4 four = max(magnitude.lo, magnitude.hi);
      const int2 two = max(four.lo, four.hi);
      const float most = as_float(max(two.x, two.y));
      const float inverse = most > 0.0f ? 127.0f / most : 0.0f;
      factors[m * 2 + b] = most / 127.0f;
      for (int part = 0; part < 1; ++part) {
        int8 sum = (int8)(0);
        for (int i = part * 4; i < part * 4 + 4; ++i) {
          const int8 q = as_int8(x[i] * inverse + 12582912.0f) - 0x4b400000;
          sum += q;
          const int2 word = as_int2(convert_char8(q).s02461357);
          bytes[((m * 2 + b) * 4 + i) * 2] = word.x;
          bytes[((m * 2 + b) * 4 + i) * 2 + 1] = word.y;
        }
        const int2 low2 = sum.lo.lo + sum.lo.hi;
        const int low = low2.x + low2.y;
        const int2 high2 = sum.hi.lo + sum.hi.hi;
        const int high = high2.x + high2.y;
        begin[(m * 2 + b) * 1 + part] = -8 * (low + high);
      }
    }
  }
  for (int u = first * 1; u < min(first * 1 + 1, 1); ++u) {
    const int n0 = min(u * 48, 0);
    for (int n = 0; n < 48; n += 16) {
      for (int m = 0; m < 8; m += 8) {
        __global const int* w = p1 + (size_t)u * 384 + n;
        __global const float* scales = p2 + u * 96 + n;
        float16 t0_0 = (float16)(0.0f), t1_0 = (float16)(0.0f), t2_0 = (float16)(0.0f), t3_0 = (float16)(0.0f), t4_0 = (float16)(0.0f), t5_0 = (float16)(0.0f), t6_0 = (float16)(0.0f), t7_0 = (float16)(0.0f);
        for (int b = 0; b < 2; ++b) {
          const int16 begin0 = (int16)(begin[(m + 0) * 2 + b]);
          __private const int* x0 = bytes + (m + 0) * 16 + (b) * 8;
          int16 a0_0 = begin0;
          const int16 begin1 = (int16)(begin[(m + 1) * 2 + b]);
          __private const int* x1 = bytes + (m + 1) * 16 + (b) * 8;
          int16 a1_0 = begin1;
          const int16 begin2 = (int16)(begin[(m + 2) * 2 + b]);
          __private const int* x2 = bytes + (m + 2) * 16 + (b) * 8;
          int16 a2_0 = begin2;
          const int16 begin3 = (int16)(begin[(m + 3) * 2 + b]);
          __private const int* x3 = bytes + (m + 3) * 16 + (b) * 8;
          int16 a3_0 = begin3;
          const int16 begin4 = (int16)(begin[(m + 4) * 2 + b]);
          __private const int* x4 = bytes + (m + 4) * 16 + (b) * 8;
          int16 a4_0 = begin4;
          const int16 begin5 = (int16)(begin[(m + 5) * 2 + b]);
          __private const int* x5 = bytes + (m + 5) * 16 + (b) * 8;
          int16 a5_0 = begin5;
          const int16 begin6 = (int16)(begin[(m + 6) * 2 + b]);
          __private const int* x6 = bytes + (m + 6) * 16 + (b) * 8;
          int16 a6_0 = begin6;
          const int16 begin7 = (int16)(begin[(m + 7) * 2 + b]);
          __private const int* x7 = bytes + (m + 7) * 16 + (b) * 8;
          int16 a7_0 = begin7;
          {
            const int16 w0 = vload16(0, w + 0);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[0]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            const int16 x0_1 = (int16)(x0[1]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            const int16 x1_0 = (int16)(x1[0]);
            a1_0 = ol_quads(a1_0, even0, x1_0);
            const int16 x1_1 = (int16)(x1[1]);
            a1_0 = ol_quads(a1_0, odd0, x1_1);
            const int16 x2_0 = (int16)(x2[0]);
            a2_0 = ol_quads(a2_0, even0, x2_0);
            const int16 x2_1 = (int16)(x2[1]);
            a2_0 = ol_quads(a2_0, odd0, x2_1);
            const int16 x3_0 = (int16)(x3[0]);
            a3_0 = ol_quads(a3_0, even0, x3_0);
            const int16 x3_1 = (int16)(x3[1]);
            a3_0 = ol_quads(a3_0, odd0, x3_1);
            const int16 x4_0 = (int16)(x4[0]);
            a4_0 = ol_quads(a4_0, even0, x4_0);
            const int16 x4_1 = (int16)(x4[1]);
            a4_0 = ol_quads(a4_0, odd0, x4_1);
            const int16 x5_0 = (int16)(x5[0]);
            a5_0 = ol_quads(a5_0, even0, x5_0);
            const int16 x5_1 = (int16)(x5[1]);
            a5_0 = ol_quads(a5_0, odd0, x5_1);
            const int16 x6_0 = (int16)(x6[0]);
            a6_0 = ol_quads(a6_0, even0, x6_0);
            const int16 x6_1 = (int16)(x6[1]);
            a6_0 = ol_quads(a6_0, odd0, x6_1);
            const int16 x7_0 = (int16)(x7[0]);
            a7_0 = ol_quads(a7_0, even0, x7_0);
            const int16 x7_1 = (int16)(x7[1]);
            a7_0 = ol_quads(a7_0, odd0, x7_1);
          }
          {
            const int16 w0 = vload16(0, w + 48);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[2]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            const int16 x0_1 = (int16)(x0[3]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            const int16 x1_0 = (int16)(x1[2]);
            a1_0 = ol_quads(a1_0, even0, x1_0);
            const int16 x1_1 = (int16)(x1[3]);
            a1_0 = ol_quads(a1_0, odd0, x1_1);
            const int16 x2_0 = (int16)(x2[2]);
            a2_0 = ol_quads(a2_0, even0, x2_0);
            const int16 x2_1 = (int16)(x2[3]);
            a2_0 = ol_quads(a2_0, odd0, x2_1);
            const int16 x3_0 = (int16)(x3[2]);
            a3_0 = ol_quads(a3_0, even0, x3_0);
            const int16 x3_1 = (int16)(x3[3]);
            a3_0 = ol_quads(a3_0, odd0, x3_1);
            const int16 x4_0 = (int16)(x4[2]);
            a4_0 = ol_quads(a4_0, even0, x4_0);
            const int16 x4_1 = (int16)(x4[3]);
            a4_0 = ol_quads(a4_0, odd0, x4_1);
            const int16 x5_0 = (int16)(x5[2]);
            a5_0 = ol_quads(a5_0, even0, x5_0);
            const int16 x5_1 = (int16)(x5[3]);
            a5_0 = ol_quads(a5_0, odd0, x5_1);
            const int16 x6_0 = (int16)(x6[2]);
            a6_0 = ol_quads(a6_0, even0, x6_0);
            const int16 x6_1 = (int16)(x6[3]);
            a6_0 = ol_quads(a6_0, odd0, x6_1);
            const int16 x7_0 = (int16)(x7[2]);
            a7_0 = ol_quads(a7_0, even0, x7_0);
            const int16 x7_1 = (int16)(x7[3]);
            a7_0 = ol_quads(a7_0, odd0, x7_1);
          }
          {
            const int16 w0 = vload16(0, w + 96);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[4]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            const int16 x0_1 = (int16)(x0[5]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            const int16 x1_0 = (int16)(x1[4]);
            a1_0 = ol_quads(a1_0, even0, x1_0);
            const int16 x1_1 = (int16)(x1[5]);
            a1_0 = ol_quads(a1_0, odd0, x1_1);
            const int16 x2_0 = (int16)(x2[4]);
            a2_0 = ol_quads(a2_0, even0, x2_0);
            const int16 x2_1 = (int16)(x2[5]);
            a2_0 = ol_quads(a2_0, odd0, x2_1);
            const int16 x3_0 = (int16)(x3[4]);
            a3_0 = ol_quads(a3_0, even0, x3_0);
            const int16 x3_1 = (int16)(x3[5]);
            a3_0 = ol_quads(a3_0, odd0, x3_1);
            const int16 x4_0 = (int16)(x4[4]);
            a4_0 = ol_quads(a4_0, even0, x4_0);
            const int16 x4_1 = (int16)(x4[5]);
            a4_0 = ol_quads(a4_0, odd0, x4_1);
            const int16 x5_0 = (int16)(x5[4]);
            a5_0 = ol_quads(a5_0, even0, x5_0);
            const int16 x5_1 = (int16)(x5[5]);
            a5_0 = ol_quads(a5_0, odd0, x5_1);
            const int16 x6_0 = (int16)(x6[4]);
            a6_0 = ol_quads(a6_0, even0, x6_0);
            const int16 x6_1 = (int16)(x6[5]);
            a6_0 = ol_quads(a6_0, odd0, x6_1);
            const int16 x7_0 = (int16)(x7[4]);
            a7_0 = ol_quads(a7_0, even0, x7_0);
            const int16 x7_1 = (int16)(x7[5]);
            a7_0 = ol_quads(a7_0, odd0, x7_1);
          }
          {
            const int16 w0 = vload16(0, w + 144);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[6]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            const int16 x0_1 = (int16)(x0[7]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            const int16 x1_0 = (int16)(x1[6]);
            a1_0 = ol_quads(a1_0, even0, x1_0);
            const int16 x1_1 = (int16)(x1[7]);
            a1_0 = ol_quads(a1_0, odd0, x1_1);
            const int16 x2_0 = (int16)(x2[6]);
            a2_0 = ol_quads(a2_0, even0, x2_0);
            const int16 x2_1 = (int16)(x2[7]);
            a2_0 = ol_quads(a2_0, odd0, x2_1);
            const int16 x3_0 = (int16)(x3[6]);
            a3_0 = ol_quads(a3_0, even0, x3_0);
            const int16 x3_1 = (int16)(x3[7]);
            a3_0 = ol_quads(a3_0, odd0, x3_1);
            const int16 x4_0 = (int16)(x4[6]);
            a4_0 = ol_quads(a4_0, even0, x4_0);
            const int16 x4_1 = (int16)(x4[7]);
            a4_0 = ol_quads(a4_0, odd0, x4_1);
            const int16 x5_0 = (int16)(x5[6]);
            a5_0 = ol_quads(a5_0, even0, x5_0);
            const int16 x5_1 = (int16)(x5[7]);
            a5_0 = ol_quads(a5_0, odd0, x5_1);
            const int16 x6_0 = (int16)(x6[6]);
            a6_0 = ol_quads(a6_0, even0, x6_0);
            const int16 x6_1 = (int16)(x6[7]);
            a6_0 = ol_quads(a6_0, odd0, x6_1);
            const int16 x7_0 = (int16)(x7[6]);
            a7_0 = ol_quads(a7_0, even0, x7_0);
            const int16 x7_1 = (int16)(x7[7]);
            a7_0 = ol_quads(a7_0, odd0, x7_1);
          }
          w += 192;
          const float16 scale0 = vload16(0, scales + b * 48 + 0);
          const float factor0 = factors[(m + 0) * 2 + b];
          t0_0 = mad(scale0 * factor0, convert_float16(a0_0), t0_0);
          const float factor1 = factors[(m + 1) * 2 + b];
          t1_0 = mad(scale0 * factor1, convert_float16(a1_0), t1_0);
          const float factor2 = factors[(m + 2) * 2 + b];
          t2_0 = mad(scale0 * factor2, convert_float16(a2_0), t2_0);
          const float factor3 = factors[(m + 3) * 2 + b];
          t3_0 = mad(scale0 * factor3, convert_float16(a3_0), t3_0);
          const float factor4 = factors[(m + 4) * 2 + b];
          t4_0 = mad(scale0 * factor4, convert_float16(a4_0), t4_0);
          const float factor5 = factors[(m + 5) * 2 + b];
          t5_0 = mad(scale0 * factor5, convert_float16(a5_0), t5_0);
          const float factor6 = factors[(m + 6) * 2 + b];
          t6_0 = mad(scale0 * factor6, convert_float16(a6_0), t6_0);
          const float factor7 = factors[(m + 7) * 2 + b];
          t7_0 = mad(scale0 * factor7, convert_float16(a7_0), t7_0);
        }
        vstore16(t0_0, 0, p3 + (m0 + m + 0) * 48 + (n0 + n + 0));
        vstore16(t1_0, 0, p3 + (m0 + m + 1) * 48 + (n0 + n + 0));
        vstore16(t2_0, 0, p3 + (m0 + m + 2) * 48 + (n0 + n + 0));
        vstore16(t3_0, 0, p3 + (m0 + m + 3) * 48 + (n0 + n + 0));
        vstore16(t4_0, 0, p3 + (m0 + m + 4) * 48 + (n0 + n + 0));
        vstore16(t5_0, 0, p3 + (m0 + m + 5) * 48 + (n0 + n + 0));
        vstore16(t6_0, 0, p3 + (m0 + m + 6) * 48 + (n0 + n + 0));
        vstore16(t7_0, 0, p3 + (m0 + m + 7) * 48 + (n0 + n + 0));
      }
      for (int m = 8; m < 10; m += 2) {
        __global const int* w = p1 + (size_t)u * 384 + n;
        __global const float* scales = p2 + u * 96 + n;
        float16 t0_0 = (float16)(0.0f), t1_0 = (float16)(0.0f);
        for (int b = 0; b < 2; ++b) {
          const int16 begin0 = (int16)(begin[(m + 0) * 2 + b]);
          __private const int* x0 = bytes + (m + 0) * 16 + (b) * 8;
          int16 a0_0 = begin0;
          const int16 begin1 = (int16)(begin[(m + 1) * 2 + b]);
          __private const int* x1 = bytes + (m + 1) * 16 + (b) * 8;
          int16 a1_0 = begin1;
          {
            const int16 w0 = vload16(0, w + 0);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[0]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            const int16 x0_1 = (int16)(x0[1]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            const int16 x1_0 = (int16)(x1[0]);
            a1_0 = ol_quads(a1_0, even0, x1_0);
            const int16 x1_1 = (int16)(x1[1]);
            a1_0 = ol_quads(a1_0, odd0, x1_1);
          }
          {
            const int16 w0 = vload16(0, w + 48);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[2]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            const int16 x0_1 = (int16)(x0[3]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            const int16 x1_0 = (int16)(x1[2]);
            a1_0 = ol_quads(a1_0, even0, x1_0);
            const int16 x1_1 = (int16)(x1[3]);
            a1_0 = ol_quads(a1_0, odd0, x1_1);
          }
          {
            const int16 w0 = vload16(0, w + 96);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[4]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            const int16 x0_1 = (int16)(x0[5]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            const int16 x1_0 = (int16)(x1[4]);
            a1_0 = ol_quads(a1_0, even0, x1_0);
            const int16 x1_1 = (int16)(x1[5]);
            a1_0 = ol_quads(a1_0, odd0, x1_1);
          }
          {
            const int16 w0 = vload16(0, w + 144);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[6]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            const int16 x0_1 = (int16)(x0[7]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            const int16 x1_0 = (int16)(x1[6]);
            a1_0 = ol_quads(a1_0, even0, x1_0);
            const int16 x1_1 = (int16)(x1[7]);
            a1_0 = ol_quads(a1_0, odd0, x1_1);
          }
          w += 192;
          const float16 scale0 = vload16(0, scales + b * 48 + 0);
          const float factor0 = factors[(m + 0) * 2 + b];
          t0_0 = mad(scale0 * factor0, convert_float16(a0_0), t0_0);
          const float factor1 = factors[(m + 1) * 2 + b];
          t1_0 = mad(scale0 * factor1, convert_float16(a1_0), t1_0);
        }
        vstore16(t0_0, 0, p3 + (m0 + m + 0) * 48 + (n0 + n + 0));
        vstore16(t1_0, 0, p3 + (m0 + m + 1) * 48 + (n0 + n + 0));
      }
    }
  }
}
