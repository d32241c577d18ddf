// MatMulNBits(MatMulNBits0.0, MatMulNBits0.1, MatMulNBits0.2)
//
// launch 0: weights4bit_bytes_13cc8f80b2fe(arena[0, +256], weight 0, weight 1, arena[256, +192]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights4bit_bytes_13cc8f80b2fe(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global float* p3)
{
  int bytes[16], begin[2];
  float factors[2];
  const int unit = get_global_id(0), first = unit % 1;
  const int m0 = min(unit / 1 * 1, 0);
  for (int m = 0; m < 1; ++m) {
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
    for (int n = 0; n < 48; n += 48) {
      for (int m = 0; m < 1; m += 1) {
        __global const int* w = p1 + (size_t)u * 384 + n;
        __global const float* scales = p2 + u * 96 + n;
        float16 t0_0 = (float16)(0.0f), t0_1 = (float16)(0.0f), t0_2 = (float16)(0.0f);
        for (int b = 0; b < 2; ++b) {
          const int16 begin0 = (int16)(begin[(m + 0) * 2 + b]);
          __private const int* x0 = bytes + (m + 0) * 16 + (b) * 8;
          int16 a0_0 = begin0;
          int16 a0_1 = begin0;
          int16 a0_2 = begin0;
          {
            const int16 w0 = vload16(0, w + 0);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 w1 = vload16(0, w + 16);
            const int16 even1 = w1 & 0x0f0f0f0f;
            const int16 odd1 = (w1 >> 4) & 0x0f0f0f0f;
            const int16 w2 = vload16(0, w + 32);
            const int16 even2 = w2 & 0x0f0f0f0f;
            const int16 odd2 = (w2 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[0]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            a0_1 = ol_quads(a0_1, even1, x0_0);
            a0_2 = ol_quads(a0_2, even2, x0_0);
            const int16 x0_1 = (int16)(x0[1]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            a0_1 = ol_quads(a0_1, odd1, x0_1);
            a0_2 = ol_quads(a0_2, odd2, x0_1);
          }
          {
            const int16 w0 = vload16(0, w + 48);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 w1 = vload16(0, w + 64);
            const int16 even1 = w1 & 0x0f0f0f0f;
            const int16 odd1 = (w1 >> 4) & 0x0f0f0f0f;
            const int16 w2 = vload16(0, w + 80);
            const int16 even2 = w2 & 0x0f0f0f0f;
            const int16 odd2 = (w2 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[2]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            a0_1 = ol_quads(a0_1, even1, x0_0);
            a0_2 = ol_quads(a0_2, even2, x0_0);
            const int16 x0_1 = (int16)(x0[3]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            a0_1 = ol_quads(a0_1, odd1, x0_1);
            a0_2 = ol_quads(a0_2, odd2, x0_1);
          }
          {
            const int16 w0 = vload16(0, w + 96);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 w1 = vload16(0, w + 112);
            const int16 even1 = w1 & 0x0f0f0f0f;
            const int16 odd1 = (w1 >> 4) & 0x0f0f0f0f;
            const int16 w2 = vload16(0, w + 128);
            const int16 even2 = w2 & 0x0f0f0f0f;
            const int16 odd2 = (w2 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[4]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            a0_1 = ol_quads(a0_1, even1, x0_0);
            a0_2 = ol_quads(a0_2, even2, x0_0);
            const int16 x0_1 = (int16)(x0[5]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            a0_1 = ol_quads(a0_1, odd1, x0_1);
            a0_2 = ol_quads(a0_2, odd2, x0_1);
          }
          {
            const int16 w0 = vload16(0, w + 144);
            const int16 even0 = w0 & 0x0f0f0f0f;
            const int16 odd0 = (w0 >> 4) & 0x0f0f0f0f;
            const int16 w1 = vload16(0, w + 160);
            const int16 even1 = w1 & 0x0f0f0f0f;
            const int16 odd1 = (w1 >> 4) & 0x0f0f0f0f;
            const int16 w2 = vload16(0, w + 176);
            const int16 even2 = w2 & 0x0f0f0f0f;
            const int16 odd2 = (w2 >> 4) & 0x0f0f0f0f;
            const int16 x0_0 = (int16)(x0[6]);
            a0_0 = ol_quads(a0_0, even0, x0_0);
            a0_1 = ol_quads(a0_1, even1, x0_0);
            a0_2 = ol_quads(a0_2, even2, x0_0);
            const int16 x0_1 = (int16)(x0[7]);
            a0_0 = ol_quads(a0_0, odd0, x0_1);
            a0_1 = ol_quads(a0_1, odd1, x0_1);
            a0_2 = ol_quads(a0_2, odd2, x0_1);
          }
          w += 192;
          const float16 scale0 = vload16(0, scales + b * 48 + 0);
          const float16 scale1 = vload16(0, scales + b * 48 + 16);
          const float16 scale2 = vload16(0, scales + b * 48 + 32);
          const float factor0 = factors[(m + 0) * 2 + b];
          t0_0 = mad(scale0 * factor0, convert_float16(a0_0), t0_0);
          t0_1 = mad(scale1 * factor0, convert_float16(a0_1), t0_1);
          t0_2 = mad(scale2 * factor0, convert_float16(a0_2), t0_2);
        }
        vstore16(t0_0, 0, p3 + (m0 + m + 0) * 48 + (n0 + n + 0));
        vstore16(t0_1, 0, p3 + (m0 + m + 0) * 48 + (n0 + n + 16));
        vstore16(t0_2, 0, p3 + (m0 + m + 0) * 48 + (n0 + n + 32));
      }
    }
  }
}
