// MatMulNBits(MatMulNBits0.0, MatMulNBits0.1, MatMulNBits0.2, MatMulNBits0.3)
//
// launch 0: weights4bit_bytes_b081644f0fe6(arena[0, +256], weight 0, weight 1, weight 2, arena[256, +160]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights4bit_bytes_b081644f0fe6(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global const uchar* p3,
    __global float* p4)
{
  int bytes[16], begin[2];
  float factors[1];
  float sums[1];
  const int unit = get_global_id(0), first = unit % 1;
  const int m0 = min(unit / 1 * 1, 0);
  for (int m = 0; m < 1; ++m) {
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
      for (int m = 0; m < 1; m += 1) {
        __global const int* w = p1 + (size_t)u * 64 + n;
        __global const float* scales = p2 + u * 8 + n;
        __global const uchar* zeros = p3 + u * 8 + n;
        float8 t0_0 = (float8)(0.0f);
        for (int b = 0; b < 1; ++b) {
          int8 d0_0 = (int8)(0);
          for (int part = 0; part < 2; ++part) {
            const short16 begin0 = as_short16((int8)(begin[(m + 0) * 2 + b * 2 + part]));
            __private const int* x0 = bytes + (m + 0) * 16 + (b * 2 + part) * 8;
            short16 a0_0 = begin0;
            {
              __builtin_prefetch((const void*)(size_t)(w + 256), 0);
              const int8 w0 = vload8(0, w + 0);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[0]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[1]);
              a0_0 += ol_bytes(odd0, x0_1);
            }
            {
              __builtin_prefetch((const void*)(size_t)(w + 264), 0);
              const int8 w0 = vload8(0, w + 8);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[2]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[3]);
              a0_0 += ol_bytes(odd0, x0_1);
            }
            {
              __builtin_prefetch((const void*)(size_t)(w + 272), 0);
              const int8 w0 = vload8(0, w + 16);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[4]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[5]);
              a0_0 += ol_bytes(odd0, x0_1);
            }
            {
              __builtin_prefetch((const void*)(size_t)(w + 280), 0);
              const int8 w0 = vload8(0, w + 24);
              const int8 even0 = w0 & 0x0f0f0f0f;
              const int8 odd0 = (w0 >> 4) & 0x0f0f0f0f;
              const int8 x0_0 = (int8)(x0[6]);
              a0_0 += ol_bytes(even0, x0_0);
              const int8 x0_1 = (int8)(x0[7]);
              a0_0 += ol_bytes(odd0, x0_1);
            }
            w += 32;
            d0_0 += ol_madd(a0_0, (short16)(1));
          }
          __global const float* own = scales + b * 8;
          __builtin_prefetch((const void*)(size_t)(own + 256), 0);
          const float8 scale0 = vload8(0, scales + b * 8 + 0);
          const float8 zero0 = 8.0f - convert_float8(vload8(0, zeros + b * 8 + 0));
          const float factor0 = factors[(m + 0) * 1 + b];
          const float8 sum0 = (float8)(sums[(m + 0) * 1 + b]);
          t0_0 = mad(scale0 * factor0, mad(zero0, sum0, convert_float8(d0_0)), t0_0);
        }
        vstore8(t0_0, 0, p4 + (m0 + m + 0) * 40 + (n0 + n + 0));
      }
    }
  }
}
