// DynamicQuantizeLSTM(DynamicQuantizeLSTM0.0, DynamicQuantizeLSTM0.1, DynamicQuantizeLSTM0.2, DynamicQuantizeLSTM0.8, DynamicQuantizeLSTM0.9, DynamicQuantizeLSTM0.10, DynamicQuantizeLSTM0.11)
//
// launch 0: reduce_003a70ecef1f(arena[0, +800], arena[896, +4]), 1 work-items in groups of 1
// launch 1: reduce_26b7a637893b(arena[0, +800], arena[1024, +4]), 1 work-items in groups of 1
// launch 2: pointwise_11e06f8e43cb(arena[896, +4], arena[1024, +4], arena[12800, +4]), 1 work-items in groups of 1
// launch 3: pointwise_cf828e80e081(arena[896, +4], arena[12800, +4], arena[12928, +1]), 1 work-items in groups of 1
// launch 4: pointwise_bebd845f1a9e(arena[0, +800], arena[12800, +4], arena[12928, +1], arena[6400, +200]), 1 work-items in groups of 1
// launch 5: integer_3997835a001e(arena[6400, +200], weight 0, arena[0, +6400]), 4 work-items in groups of 1
// launch 6: pointwise_2b2b9d611684(arena[12800, +4], weight 1, arena[0, +6400], arena[12928, +1], weight 2, arena[6400, +6400]), 1 work-items in groups of 1
// launch 7: quantisedlstm_97c753c8021e(arena[6400, +6400], weight 3, weight 4, weight 1, weight 2, arena[0, +2240]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void reduce_003a70ecef1f(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 1); ++u) {
    const int x0 = 0;
    const int y0 = 0;
    float a = INFINITY;
    for (int r0 = 0; r0 < 5; ++r0) {
      for (int r1 = 0; r1 < 5; ++r1) {
        const int b = x0 + r0 * 40 + r1 * 8;
        int i = 0;
        for (; i < 8; ++i) {
          const float v = p0[b + i];
          a = select(v, a, (a < v) | isnan(a));
        }
      }
    }
    p1[y0] = a;
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void reduce_26b7a637893b(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 1); ++u) {
    const int x0 = 0;
    const int y0 = 0;
    float a = -INFINITY;
    for (int r0 = 0; r0 < 5; ++r0) {
      for (int r1 = 0; r1 < 5; ++r1) {
        const int b = x0 + r0 * 40 + r1 * 8;
        int i = 0;
        for (; i < 8; ++i) {
          const float v = p0[b + i];
          a = select(v, a, (a > v) | isnan(a));
        }
      }
    }
    p1[y0] = a;
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_11e06f8e43cb(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int u = id;
  const int o0 = 0;
  const int o1 = 0;
  const int o2 = 0;
  const int end = 1;
  int i = 0;
  for (; i < end; ++i) {
    const float v0 = p0[o1];
    const float v1 = p1[o2];
    const float t3 = ((v1 > 0.0f) || (v1 != v1) ? v1 : 0.0f);
    const float t4 = ((v0 < 0.0f) || (v0 != v0) ? v0 : 0.0f);
    const float t2 = (t3 - t4);
    const uchar t1 = (t2 == 0.0f);
    const float t5 = (t2 / 255.0f);
    const float t0 = (t1 ? 1.0f : t5);
    p2[o0] = t0;
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_cf828e80e081(
    __global const float* p0,
    __global const float* p1,
    __global uchar* p2)
{
  const int id = get_global_id(0);
  const int u = id;
  const int o0 = 0;
  const int o1 = 0;
  const int o2 = 0;
  const int end = 1;
  int i = 0;
  for (; i < end; ++i) {
    const float v0 = p0[o1];
    const float v1 = p1[o2];
    const float t6 = ((v0 < 0.0f) || (v0 != v0) ? v0 : 0.0f);
    const float t5 = (-t6);
    const float t4 = (t5 / v1);
    const float t3 = rint(t4);
    const float t2 = (t3 > 0.0f ? t3 : 0.0f);
    const float t1 = (t2 < 255.0f ? t2 : 255.0f);
    const uchar t0 = (uchar)t1;
    p2[o0] = t0;
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_bebd845f1a9e(
    __global const float* p0,
    __global const float* p1,
    __global const uchar* p2,
    __global uchar* p3)
{
  const int id = get_global_id(0);
  const int u = id;
  const int o0 = 0;
  const int o1 = 0;
  const int o2 = 0;
  const int o3 = 0;
  const int end = 200;
  int i = 0;
  for (; i + 16 <= end; i += 16) {
    const float16 v0 = vload16(0, p0 + o1 + i);
    const float16 v1 = (float16)(p1[o2]);
    const uchar16 v2 = (uchar16)(p2[o3]);
    const float16 t5 = (v0 / v1);
    const float16 t4 = rint(t5);
    const float16 t6 = convert_float16(v2);
    const float16 t3 = (t4 + t6);
    const float16 t2 = select((float16)(0.0f), t3, t3 > (float16)(0.0f));
    const float16 t1 = select((float16)(255.0f), t2, t2 < (float16)(255.0f));
    const uchar16 t0 = convert_uchar16(convert_int16(t1));
    vstore16(t0, 0, p3 + o0 + i);
  }
  for (; i < end; ++i) {
    const float v0 = p0[o1 + i];
    const float v1 = p1[o2];
    const uchar v2 = p2[o3];
    const float t5 = (v0 / v1);
    const float t4 = rint(t5);
    const float t6 = (float)v2;
    const float t3 = (t4 + t6);
    const float t2 = (t3 > 0.0f ? t3 : 0.0f);
    const float t1 = (t2 < 255.0f ? t2 : 255.0f);
    const uchar t0 = (uchar)t1;
    p3[o0 + i] = t0;
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void integer_3997835a001e(
    __global const uchar* p0,
    __global const char* p1,
    __global int* p2)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 16, 48);
  __global const uchar* x = p0 + 0;
  __global const char* w = p1 + 0 + panel * 224;
  __global int* y = p2 + 0 + n0 * 1;
  for (int t = group * 7; t < min(group * 7 + 7, 7); ++t) {
    const int r0 = 0, c0 = min((t) * 4, 21);
    __global const uchar* xt = x + r0 * 0 + c0 * 8;
    int8 a0_0 = vload8(0, (__global const int*)(w + 128));
    int8 a0_1 = vload8(0, (__global const int*)(w + 160));
    int8 a1_0 = vload8(0, (__global const int*)(w + 128));
    int8 a1_1 = vload8(0, (__global const int*)(w + 160));
    int8 a2_0 = vload8(0, (__global const int*)(w + 128));
    int8 a2_1 = vload8(0, (__global const int*)(w + 160));
    int8 a3_0 = vload8(0, (__global const int*)(w + 128));
    int8 a3_1 = vload8(0, (__global const int*)(w + 160));
    __global const uchar* xp = xt;
    __global const char* wp = w;
    for (int k = 0; k < 8; k += 4) {
      const int8 x0 = (int8)(as_int(vload4(0, xp + 0)));
      const int8 x1 = (int8)(as_int(vload4(0, xp + 8)));
      const int8 x2 = (int8)(as_int(vload4(0, xp + 16)));
      const int8 x3 = (int8)(as_int(vload4(0, xp + 24)));
      const int8 w_0 = vload8(0, (__global const int*)(wp + 0));
      a0_0 = ol_dot(a0_0, x0, w_0);
      a1_0 = ol_dot(a1_0, x1, w_0);
      a2_0 = ol_dot(a2_0, x2, w_0);
      a3_0 = ol_dot(a3_0, x3, w_0);
      const int8 w_1 = vload8(0, (__global const int*)(wp + 32));
      a0_1 = ol_dot(a0_1, x0, w_1);
      a1_1 = ol_dot(a1_1, x1, w_1);
      a2_1 = ol_dot(a2_1, x2, w_1);
      a3_1 = ol_dot(a3_1, x3, w_1);
      xp += 4; wp += 64;
    }
    {
      {
        __global const char* wp = p1 + as_int(vload4(0, w + 192));
        for (int e = as_int(vload4(0, w + 196)); e > 0; --e) {
          __global const uchar* xp = xt + as_int(vload4(0, wp + 0));
          wp += 4;
          const int8 x0 = (int8)(as_int(vload4(0, xp + 0)));
          const int8 x1 = (int8)(as_int(vload4(0, xp + 8)));
          const int8 x2 = (int8)(as_int(vload4(0, xp + 16)));
          const int8 x3 = (int8)(as_int(vload4(0, xp + 24)));
          const int8 w_0 = vload8(0, (__global const int*)(wp + 0));
          a0_0 = ol_dot(a0_0, x0, w_0);
          a1_0 = ol_dot(a1_0, x1, w_0);
          a2_0 = ol_dot(a2_0, x2, w_0);
          a3_0 = ol_dot(a3_0, x3, w_0);
          wp += 32;
        }
      }
      {
        __global const char* wp = p1 + as_int(vload4(0, w + 200));
        for (int e = as_int(vload4(0, w + 204)); e > 0; --e) {
          __global const uchar* xp = xt + as_int(vload4(0, wp + 0));
          wp += 4;
          const int8 x0 = (int8)(as_int(vload4(0, xp + 0)));
          const int8 x1 = (int8)(as_int(vload4(0, xp + 8)));
          const int8 x2 = (int8)(as_int(vload4(0, xp + 16)));
          const int8 x3 = (int8)(as_int(vload4(0, xp + 24)));
          const int8 w_1 = vload8(0, (__global const int*)(wp + 0));
          a0_1 = ol_dot(a0_1, x0, w_1);
          a1_1 = ol_dot(a1_1, x1, w_1);
          a2_1 = ol_dot(a2_1, x2, w_1);
          a3_1 = ol_dot(a3_1, x3, w_1);
          wp += 32;
        }
      }
    }
    vstore8(a0_0, 0, y + r0 * 0 + c0 * 64 + 0);
    vstore8(a0_1, 0, y + r0 * 0 + c0 * 64 + 8);
    vstore8(a1_0, 0, y + r0 * 0 + c0 * 64 + 64);
    vstore8(a1_1, 0, y + r0 * 0 + c0 * 64 + 72);
    vstore8(a2_0, 0, y + r0 * 0 + c0 * 64 + 128);
    vstore8(a2_1, 0, y + r0 * 0 + c0 * 64 + 136);
    vstore8(a3_0, 0, y + r0 * 0 + c0 * 64 + 192);
    vstore8(a3_1, 0, y + r0 * 0 + c0 * 64 + 200);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_2b2b9d611684(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global const uchar* p3,
    __global const int* p4,
    __global float* p5)
{
  const int id = get_global_id(0);
  for (int u = id * 25; u < min(id * 25 + 25, 25); ++u) {
    const int d0 = u;
    const int o0 = d0 * 64;
    const int o1 = 0;
    const int o2 = 0;
    const int o3 = d0 * 64;
    const int o4 = 0;
    const int o5 = 0;
    const int end = 64;
    int i = 0;
    for (; i + 16 <= end; i += 16) {
      const float16 v0 = (float16)(p0[o1]);
      const float16 v1 = vload16(0, p1 + o2 + i);
      const int16 v2 = vload16(0, p2 + o3 + i);
      const uchar16 v3 = (uchar16)(p3[o4]);
      const int16 v4 = vload16(0, p4 + o5 + i);
      const int16 t4 = convert_int16(v3);
      const int16 t3 = (t4 * v4);
      const int16 t2 = (v2 - t3);
      const float16 t1 = convert_float16(t2);
      const float16 t5 = (v0 * v1);
      const float16 t0 = (t1 * t5);
      vstore16(t0, 0, p5 + o0 + i);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void quantisedlstm_97c753c8021e(
    __global const float* p0,
    __global const short* p1,
    __global const char* p2,
    __global const float* p3,
    __global const int* p4,
    __global float* p5)
{
  const int d = get_global_id(0);
  float a[256];
  uchar q[64];
  for (int b = 0; b < 5; ++b) {
    for (int u = 0; u < 16; ++u) {
      p5[d * 80 + b * 16 + u + 400] = 0.0f;
      p5[d * 80 + b * 16 + u + 480] = 0.0f;
    }
  }
  for (int t = 0; t < 5; ++t) {
    const int s = t;
    float16 least = 0.0f, most = 0.0f;
    for (int b = 0; b < 5; ++b) {
      for (int u = 0; u < 16; u += 16) {
        const float16 h = vload16(0, p5 + d * 80 + b * 16 + u + 400);
        least = select(least, h, h < least); most = select(most, h, h > most);
      }
    }
    float low = least.s0, high = most.s0;
    low = least.s1 < low ? least.s1 : low;
    low = least.s2 < low ? least.s2 : low;
    low = least.s3 < low ? least.s3 : low;
    low = least.s4 < low ? least.s4 : low;
    low = least.s5 < low ? least.s5 : low;
    low = least.s6 < low ? least.s6 : low;
    low = least.s7 < low ? least.s7 : low;
    low = least.s8 < low ? least.s8 : low;
    low = least.s9 < low ? least.s9 : low;
    low = least.sa < low ? least.sa : low;
    low = least.sb < low ? least.sb : low;
    low = least.sc < low ? least.sc : low;
    low = least.sd < low ? least.sd : low;
    low = least.se < low ? least.se : low;
    low = least.sf < low ? least.sf : low;
    high = most.s1 > high ? most.s1 : high;
    high = most.s2 > high ? most.s2 : high;
    high = most.s3 > high ? most.s3 : high;
    high = most.s4 > high ? most.s4 : high;
    high = most.s5 > high ? most.s5 : high;
    high = most.s6 > high ? most.s6 : high;
    high = most.s7 > high ? most.s7 : high;
    high = most.s8 > high ? most.s8 : high;
    high = most.s9 > high ? most.s9 : high;
    high = most.sa > high ? most.sa : high;
    high = most.sb > high ? most.sb : high;
    high = most.sc > high ? most.sc : high;
    high = most.sd > high ? most.sd : high;
    high = most.se > high ? most.se : high;
    high = most.sf > high ? most.sf : high;
    const float scale = ((high > 1e-28f ? high : 1e-28f) - low) / 255.0f;
    const float bottom = rint(low / scale), top = bottom + 255.0f;
    for (int first = 0; first < 4; first += 4) {
      for (int r = 0; r < 4; ++r) {
        const int b = first + r;
        for (int u = 0; u < 16; u += 16) {
          const float16 steps = rint(vload16(0, p5 + d * 80 + b * 16 + u + 400) / scale);
          vstore16(convert_uchar16((select(steps, (float16)(top), steps > top) - bottom)), 0, q + r * 16 + u);
        }
      }
      for (int p = 0; p < 2; ++p) {
        __global const char* w = p2 + d * 1024 + 0 + p * 512;
        int16 s0_0 = vload16(0, p4 + d * 64 + 0 + p * 32) * (int)bottom;
        int16 s1_0 = s0_0;
        int16 s2_0 = s0_0;
        int16 s3_0 = s0_0;
        int16 s0_1 = vload16(0, p4 + d * 64 + 16 + p * 32) * (int)bottom;
        int16 s1_1 = s0_1;
        int16 s2_1 = s0_1;
        int16 s3_1 = s0_1;
        for (int k = 0; k < 16; k += 4) {
          const int16 x0 = (int16)(as_int(vload4(0, q + k + 0)));
          const int16 x1 = (int16)(as_int(vload4(0, q + k + 16)));
          const int16 x2 = (int16)(as_int(vload4(0, q + k + 32)));
          const int16 x3 = (int16)(as_int(vload4(0, q + k + 48)));
          const int16 w0 = vload16(0, (__global const int*)w);
          s0_0 = ol_quads(s0_0, x0, w0);
          s1_0 = ol_quads(s1_0, x1, w0);
          s2_0 = ol_quads(s2_0, x2, w0);
          s3_0 = ol_quads(s3_0, x3, w0);
          const int16 w1 = vload16(1, (__global const int*)w);
          s0_1 = ol_quads(s0_1, x0, w1);
          s1_1 = ol_quads(s1_1, x1, w1);
          s2_1 = ol_quads(s2_1, x2, w1);
          s3_1 = ol_quads(s3_1, x3, w1);
          w += 128;
        }
        const float16 f0 = vload16(0, p3 + d * 64 + 0 + p * 32) * scale;
        vstore16(convert_float16(s0_0) * f0, 0, a + 0 + p * 32);
        vstore16(convert_float16(s1_0) * f0, 0, a + 64 + p * 32);
        vstore16(convert_float16(s2_0) * f0, 0, a + 128 + p * 32);
        vstore16(convert_float16(s3_0) * f0, 0, a + 192 + p * 32);
        const float16 f1 = vload16(0, p3 + d * 64 + 16 + p * 32) * scale;
        vstore16(convert_float16(s0_1) * f1, 0, a + 16 + p * 32);
        vstore16(convert_float16(s1_1) * f1, 0, a + 80 + p * 32);
        vstore16(convert_float16(s2_1) * f1, 0, a + 144 + p * 32);
        vstore16(convert_float16(s3_1) * f1, 0, a + 208 + p * 32);
      }
      for (int r = 0; r < 4; ++r) {
        const int b = first + r;
        for (int u = 0; u < 16; u += 16) {
          const float16 before = vload16(0, p5 + d * 80 + b * 16 + u + 480);
          const float16 i = ol_sigmoid((vload16(0, p0 + s * 320 + b * 64 + d * 64 + u) + vload16(0, a + r * 64 + u + 0)));
          const float16 f = ol_sigmoid((vload16(0, p0 + s * 320 + b * 64 + d * 64 + u + 32) + vload16(0, a + r * 64 + u + 32)));
          const float16 g = ol_tanh((vload16(0, p0 + s * 320 + b * 64 + d * 64 + u + 48) + vload16(0, a + r * 64 + u + 48)));
          const float16 cell = f * before + i * g;
          const float16 o = ol_sigmoid((vload16(0, p0 + s * 320 + b * 64 + d * 64 + u + 16) + vload16(0, a + r * 64 + u + 16)));
          const float16 out = o * ol_tanh((cell));
          vstore16(cell, 0, p5 + d * 80 + b * 16 + u + 480);
          vstore16(out, 0, p5 + d * 80 + b * 16 + u + 400);
          vstore16(out, 0, p5 + s * 80 + d * 80 + b * 16 + u);
        }
      }
    }
    {
      const int first = 4;
      for (int r = 0; r < 1; ++r) {
        const int b = first + r;
        for (int u = 0; u < 16; u += 16) {
          const float16 steps = rint(vload16(0, p5 + d * 80 + b * 16 + u + 400) / scale);
          vstore16(convert_uchar16((select(steps, (float16)(top), steps > top) - bottom)), 0, q + r * 16 + u);
        }
      }
      for (int p = 0; p < 2; ++p) {
        __global const char* w = p2 + d * 1024 + 0 + p * 512;
        int16 s0_0 = vload16(0, p4 + d * 64 + 0 + p * 32) * (int)bottom;
        int16 s0_1 = vload16(0, p4 + d * 64 + 16 + p * 32) * (int)bottom;
        for (int k = 0; k < 16; k += 4) {
          const int16 x0 = (int16)(as_int(vload4(0, q + k + 0)));
          const int16 w0 = vload16(0, (__global const int*)w);
          s0_0 = ol_quads(s0_0, x0, w0);
          const int16 w1 = vload16(1, (__global const int*)w);
          s0_1 = ol_quads(s0_1, x0, w1);
          w += 128;
        }
        const float16 f0 = vload16(0, p3 + d * 64 + 0 + p * 32) * scale;
        vstore16(convert_float16(s0_0) * f0, 0, a + 0 + p * 32);
        const float16 f1 = vload16(0, p3 + d * 64 + 16 + p * 32) * scale;
        vstore16(convert_float16(s0_1) * f1, 0, a + 16 + p * 32);
      }
      for (int r = 0; r < 1; ++r) {
        const int b = first + r;
        for (int u = 0; u < 16; u += 16) {
          const float16 before = vload16(0, p5 + d * 80 + b * 16 + u + 480);
          const float16 i = ol_sigmoid((vload16(0, p0 + s * 320 + b * 64 + d * 64 + u) + vload16(0, a + r * 64 + u + 0)));
          const float16 f = ol_sigmoid((vload16(0, p0 + s * 320 + b * 64 + d * 64 + u + 32) + vload16(0, a + r * 64 + u + 32)));
          const float16 g = ol_tanh((vload16(0, p0 + s * 320 + b * 64 + d * 64 + u + 48) + vload16(0, a + r * 64 + u + 48)));
          const float16 cell = f * before + i * g;
          const float16 o = ol_sigmoid((vload16(0, p0 + s * 320 + b * 64 + d * 64 + u + 16) + vload16(0, a + r * 64 + u + 16)));
          const float16 out = o * ol_tanh((cell));
          vstore16(cell, 0, p5 + d * 80 + b * 16 + u + 480);
          vstore16(out, 0, p5 + d * 80 + b * 16 + u + 400);
          vstore16(out, 0, p5 + s * 80 + d * 80 + b * 16 + u);
        }
      }
    }
  }
}
