// MatMulNBits(MatMulNBits0.0, MatMulNBits0.1, MatMulNBits0.2, MatMulNBits0.3)
//
// launch 0: weights4bit_bytes_2b69e2311732(arena[0, +2048], weight 0, weight 1, weight 2, arena[2048, +1280]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights4bit_bytes_2b69e2311732(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global const uchar* p3,
    __global float* p4)
{
  int bytes[128], begin[16];
  float factors[8];
  float sums[8];
  const int unit = get_global_id(0), first = unit % 1;
  const int m0 = min(unit / 1 * 8, 0);
  for (int m = 0; m < 8; ++m) {
    __global const float* row = p0 + 0 + (m0 + m) * 64;
    for (int b = 0; b < 1; ++b) {
      int8 magnitude = (int8)(0);
      float8 x[8];
      for (int i = 0; i < 8; ++i) {
        const int k = b * 64 + i * 8;
        x[i] = vload8(0, row + k);
        magnitude = max(magnitude, as_int8(x[i]) & 0x7fffffff);
      }
      const int4 four = max(magnitude.lo, magnitude.hi);
      const int2 two = max(four.lo, four.hi);
      const float most = as_float(max(two.x, two.y));
      const float inverse = most > 0.0f ? 127.0f / most : 0.0f;
      factors[m * 1 + b] = most / 127.0f;
      int total = 0;
      for (int part = 0; part < 2; ++part) {
        int8 sum = (int8)(0);
        for (int i = part * 4; i < part * 4 + 4; ++i) {
          const int8 q = as_int8(x[i] * inverse + 12582912.0f) - 0x4b400000;
          sum += q;
          const int2 word = as_int2(convert_char8(q).s02461357);
          bytes[((m * 1 + b) * 8 + i) * 2] = word.x;
          bytes[((m * 1 + b) * 8 + i) * 2 + 1] = word.y;
        }
        const int2 low2 = sum.lo.lo + sum.lo.hi;
        const int low = low2.x + low2.y;
        const int2 high2 = sum.hi.lo + sum.hi.hi;
        const int high = high2.x + high2.y;
        total += low + high;
        begin[(m * 1 + b) * 2 + part] = (-8 * low & 0xffff) | (-8 * high << 16);
      }
      sums[m * 1 + b] = total;
    }
  }
  for (int u = first * 5; u < min(first * 5 + 5, 5); ++u) {
    const int n0 = min(u * 8, 32);
    for (int n = 0; n < 8; n += 8) {
      for (int m = 0; m < 6; m += 6) {
        __global const int* w = p1 + (size_t)u * 64 + n;
        __global const float* scales = p2 + u * 8 + n;
        __global const uchar* zeros = p3 + u * 8 + n;
        float8 t0_0 = (float8)(0.0f), t1_0 = (float8)(0.0f), t2_0 = (float8)(0.0f), t3_0 = (float8)(0.0f), t4_0 = (float8)(0.0f), t5_0 = (float8)(0.0f);
        for (int b = 0; b < 1; ++b) {
          int8 d0_0 = (int8)(0), d1_0 = (int8)(0), d2_0 = (int8)(0), d3_0 = (int8)(0), d4_0 = (int8)(0), d5_0 = (int8)(0);
          for (int part = 0; part < 2; ++part) {
            const short16 begin0 = as_short16((int8)(begin[(m + 0) * 2 + b * 2 + part]));
            __private const int* x0 = bytes + (m + 0) * 16 + (b * 2 + part) * 8;
            short16 a0_0 = begin0;
            const short16 begin1 = as_short16((int8)(begin[(m + 1) * 2 + b * 2 + part]));
            __private const int* x1 = bytes + (m + 1) * 16 + (b * 2 + part) * 8;
            short16 a1_0 = begin1;
            const short16 begin2 = as_short16((int8)(begin[(m + 2) * 2 + b * 2 + part]));
            __private const int* x2 = bytes + (m + 2) * 16 + (b * 2 + part) * 8;
            short16 a2_0 = begin2;
            const short16 begin3 = as_short16((int8)(begin[(m + 3) * 2 + b * 2 + part]));
            __private const int* x3 = bytes + (m + 3) * 16 + (b * 2 + part) * 8;
            short16 a3_0 = begin3;
            const short16 begin4 = as_short16((int8)(begin[(m + 4) * 2 + b * 2 + part]));
            __private const int* x4 = bytes + (m + 4) * 16 + (b * 2 + part) * 8;
            short16 a4_0 = begin4;
            const short16 begin5 = as_short16((int8)(begin[(m + 5) * 2 + b * 2 + part]));
            __private const int* x5 = bytes + (m + 5) * 16 + (b * 2 + part) * 8;
            short16 a5_0 = begin5;
            {
              const int8 w0 = vload8(0, w + 0);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[0]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[1]);
              a0_0 += ol_bytes(odd0, x0_1);
              const int8 x1_0 = (int8)(x1[0]);
              a1_0 += ol_bytes(even0, x1_0);
              const int8 x1_1 = (int8)(x1[1]);
              a1_0 += ol_bytes(odd0, x1_1);
              const int8 x2_0 = (int8)(x2[0]);
              a2_0 += ol_bytes(even0, x2_0);
              const int8 x2_1 = (int8)(x2[1]);
              a2_0 += ol_bytes(odd0, x2_1);
              const int8 x3_0 = (int8)(x3[0]);
              a3_0 += ol_bytes(even0, x3_0);
              const int8 x3_1 = (int8)(x3[1]);
              a3_0 += ol_bytes(odd0, x3_1);
              const int8 x4_0 = (int8)(x4[0]);
              a4_0 += ol_bytes(even0, x4_0);
              const int8 x4_1 = (int8)(x4[1]);
              a4_0 += ol_bytes(odd0, x4_1);
              const int8 x5_0 = (int8)(x5[0]);
              a5_0 += ol_bytes(even0, x5_0);
              const int8 x5_1 = (int8)(x5[1]);
              a5_0 += ol_bytes(odd0, x5_1);
            }
            {
              const int8 w0 = vload8(0, w + 8);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[2]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[3]);
              a0_0 += ol_bytes(odd0, x0_1);
              const int8 x1_0 = (int8)(x1[2]);
              a1_0 += ol_bytes(even0, x1_0);
              const int8 x1_1 = (int8)(x1[3]);
              a1_0 += ol_bytes(odd0, x1_1);
              const int8 x2_0 = (int8)(x2[2]);
              a2_0 += ol_bytes(even0, x2_0);
              const int8 x2_1 = (int8)(x2[3]);
              a2_0 += ol_bytes(odd0, x2_1);
              const int8 x3_0 = (int8)(x3[2]);
              a3_0 += ol_bytes(even0, x3_0);
              const int8 x3_1 = (int8)(x3[3]);
              a3_0 += ol_bytes(odd0, x3_1);
              const int8 x4_0 = (int8)(x4[2]);
              a4_0 += ol_bytes(even0, x4_0);
              const int8 x4_1 = (int8)(x4[3]);
              a4_0 += ol_bytes(odd0, x4_1);
              const int8 x5_0 = (int8)(x5[2]);
              a5_0 += ol_bytes(even0, x5_0);
              const int8 x5_1 = (int8)(x5[3]);
              a5_0 += ol_bytes(odd0, x5_1);
            }
            {
              const int8 w0 = vload8(0, w + 16);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[4]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[5]);
              a0_0 += ol_bytes(odd0, x0_1);
              const int8 x1_0 = (int8)(x1[4]);
              a1_0 += ol_bytes(even0, x1_0);
              const int8 x1_1 = (int8)(x1[5]);
              a1_0 += ol_bytes(odd0, x1_1);
              const int8 x2_0 = (int8)(x2[4]);
              a2_0 += ol_bytes(even0, x2_0);
              const int8 x2_1 = (int8)(x2[5]);
              a2_0 += ol_bytes(odd0, x2_1);
              const int8 x3_0 = (int8)(x3[4]);
              a3_0 += ol_bytes(even0, x3_0);
              const int8 x3_1 = (int8)(x3[5]);
              a3_0 += ol_bytes(odd0, x3_1);
              const int8 x4_0 = (int8)(x4[4]);
              a4_0 += ol_bytes(even0, x4_0);
              const int8 x4_1 = (int8)(x4[5]);
              a4_0 += ol_bytes(odd0, x4_1);
              const int8 x5_0 = (int8)(x5[4]);
              a5_0 += ol_bytes(even0, x5_0);
              const int8 x5_1 = (int8)(x5[5]);
              a5_0 += ol_bytes(odd0, x5_1);
            }
            {
              const int8 w0 = vload8(0, w + 24);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[6]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[7]);
              a0_0 += ol_bytes(odd0, x0_1);
              const int8 x1_0 = (int8)(x1[6]);
              a1_0 += ol_bytes(even0, x1_0);
              const int8 x1_1 = (int8)(x1[7]);
              a1_0 += ol_bytes(odd0, x1_1);
              const int8 x2_0 = (int8)(x2[6]);
              a2_0 += ol_bytes(even0, x2_0);
              const int8 x2_1 = (int8)(x2[7]);
              a2_0 += ol_bytes(odd0, x2_1);
              const int8 x3_0 = (int8)(x3[6]);
              a3_0 += ol_bytes(even0, x3_0);
              const int8 x3_1 = (int8)(x3[7]);
              a3_0 += ol_bytes(odd0, x3_1);
              const int8 x4_0 = (int8)(x4[6]);
              a4_0 += ol_bytes(even0, x4_0);
              const int8 x4_1 = (int8)(x4[7]);
              a4_0 += ol_bytes(odd0, x4_1);
              const int8 x5_0 = (int8)(x5[6]);
              a5_0 += ol_bytes(even0, x5_0);
              const int8 x5_1 = (int8)(x5[7]);
              a5_0 += ol_bytes(odd0, x5_1);
            }
            w += 32;
            d0_0 += ol_madd(a0_0, (short16)(1));
            d1_0 += ol_madd(a1_0, (short16)(1));
            d2_0 += ol_madd(a2_0, (short16)(1));
            d3_0 += ol_madd(a3_0, (short16)(1));
            d4_0 += ol_madd(a4_0, (short16)(1));
            d5_0 += ol_madd(a5_0, (short16)(1));
          }
          const float8 scale0 = vload8(0, scales + b * 8 + 0);
          const float8 zero0 = 8.0f - convert_float8(vload8(0, zeros + b * 8 + 0));
          const float factor0 = factors[(m + 0) * 1 + b];
          const float8 sum0 = (float8)(sums[(m + 0) * 1 + b]);
          t0_0 = mad(scale0 * factor0, mad(zero0, sum0, convert_float8(d0_0)), t0_0);
          const float factor1 = factors[(m + 1) * 1 + b];
          const float8 sum1 = (float8)(sums[(m + 1) * 1 + b]);
          t1_0 = mad(scale0 * factor1, mad(zero0, sum1, convert_float8(d1_0)), t1_0);
          const float factor2 = factors[(m + 2) * 1 + b];
          const float8 sum2 = (float8)(sums[(m + 2) * 1 + b]);
          t2_0 = mad(scale0 * factor2, mad(zero0, sum2, convert_float8(d2_0)), t2_0);
          const float factor3 = factors[(m + 3) * 1 + b];
          const float8 sum3 = (float8)(sums[(m + 3) * 1 + b]);
          t3_0 = mad(scale0 * factor3, mad(zero0, sum3, convert_float8(d3_0)), t3_0);
          const float factor4 = factors[(m + 4) * 1 + b];
          const float8 sum4 = (float8)(sums[(m + 4) * 1 + b]);
          t4_0 = mad(scale0 * factor4, mad(zero0, sum4, convert_float8(d4_0)), t4_0);
          const float factor5 = factors[(m + 5) * 1 + b];
          const float8 sum5 = (float8)(sums[(m + 5) * 1 + b]);
          t5_0 = mad(scale0 * factor5, mad(zero0, sum5, convert_float8(d5_0)), t5_0);
        }
        vstore8(t0_0, 0, p4 + (m0 + m + 0) * 40 + (n0 + n + 0));
        vstore8(t1_0, 0, p4 + (m0 + m + 1) * 40 + (n0 + n + 0));
        vstore8(t2_0, 0, p4 + (m0 + m + 2) * 40 + (n0 + n + 0));
        vstore8(t3_0, 0, p4 + (m0 + m + 3) * 40 + (n0 + n + 0));
        vstore8(t4_0, 0, p4 + (m0 + m + 4) * 40 + (n0 + n + 0));
        vstore8(t5_0, 0, p4 + (m0 + m + 5) * 40 + (n0 + n + 0));
      }
      for (int m = 6; m < 8; m += 2) {
        __global const int* w = p1 + (size_t)u * 64 + n;
        __global const float* scales = p2 + u * 8 + n;
        __global const uchar* zeros = p3 + u * 8 + n;
        float8 t0_0 = (float8)(0.0f), t1_0 = (float8)(0.0f);
        for (int b = 0; b < 1; ++b) {
          int8 d0_0 = (int8)(0), d1_0 = (int8)(0);
          for (int part = 0; part < 2; ++part) {
            const short16 begin0 = as_short16((int8)(begin[(m + 0) * 2 + b * 2 + part]));
            __private const int* x0 = bytes + (m + 0) * 16 + (b * 2 + part) * 8;
            short16 a0_0 = begin0;
            const short16 begin1 = as_short16((int8)(begin[(m + 1) * 2 + b * 2 + part]));
            __private const int* x1 = bytes + (m + 1) * 16 + (b * 2 + part) * 8;
            short16 a1_0 = begin1;
            {
              const int8 w0 = vload8(0, w + 0);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[0]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[1]);
              a0_0 += ol_bytes(odd0, x0_1);
              const int8 x1_0 = (int8)(x1[0]);
              a1_0 += ol_bytes(even0, x1_0);
              const int8 x1_1 = (int8)(x1[1]);
              a1_0 += ol_bytes(odd0, x1_1);
            }
            {
              const int8 w0 = vload8(0, w + 8);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[2]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[3]);
              a0_0 += ol_bytes(odd0, x0_1);
              const int8 x1_0 = (int8)(x1[2]);
              a1_0 += ol_bytes(even0, x1_0);
              const int8 x1_1 = (int8)(x1[3]);
              a1_0 += ol_bytes(odd0, x1_1);
            }
            {
              const int8 w0 = vload8(0, w + 16);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[4]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[5]);
              a0_0 += ol_bytes(odd0, x0_1);
              const int8 x1_0 = (int8)(x1[4]);
              a1_0 += ol_bytes(even0, x1_0);
              const int8 x1_1 = (int8)(x1[5]);
              a1_0 += ol_bytes(odd0, x1_1);
            }
            {
              const int8 w0 = vload8(0, w + 24);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[6]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[7]);
              a0_0 += ol_bytes(odd0, x0_1);
              const int8 x1_0 = (int8)(x1[6]);
              a1_0 += ol_bytes(even0, x1_0);
              const int8 x1_1 = (int8)(x1[7]);
              a1_0 += ol_bytes(odd0, x1_1);
            }
            w += 32;
            d0_0 += ol_madd(a0_0, (short16)(1));
            d1_0 += ol_madd(a1_0, (short16)(1));
          }
          const float8 scale0 = vload8(0, scales + b * 8 + 0);
          const float8 zero0 = 8.0f - convert_float8(vload8(0, zeros + b * 8 + 0));
          const float factor0 = factors[(m + 0) * 1 + b];
          const float8 sum0 = (float8)(sums[(m + 0) * 1 + b]);
          t0_0 = mad(scale0 * factor0, mad(zero0, sum0, convert_float8(d0_0)), t0_0);
          const float factor1 = factors[(m + 1) * 1 + b];
          const float8 sum1 = (float8)(sums[(m + 1) * 1 + b]);
          t1_0 = mad(scale0 * factor1, mad(zero0, sum1, convert_float8(d1_0)), t1_0);
        }
        vstore8(t0_0, 0, p4 + (m0 + m + 0) * 40 + (n0 + n + 0));
        vstore8(t1_0, 0, p4 + (m0 + m + 1) * 40 + (n0 + n + 0));
      }
    }
  }
}
