// DynamicQuantizeLSTM(DynamicQuantizeLSTM0.0, DynamicQuantizeLSTM0.1, DynamicQuantizeLSTM0.2, DynamicQuantizeLSTM0.8, DynamicQuantizeLSTM0.9, DynamicQuantizeLSTM0.10, DynamicQuantizeLSTM0.11)
//
// launch 0: reduce_ebe5ce9c495a(arena[0, +320], arena[384, +4]), 1 work-items in groups of 1
// launch 1: reduce_c666ae117c6d(arena[0, +320], arena[512, +4]), 1 work-items in groups of 1
// launch 2: pointwise_11e06f8e43cb(arena[384, +4], arena[512, +4], arena[5120, +4]), 1 work-items in groups of 1
// launch 3: pointwise_cf828e80e081(arena[384, +4], arena[5120, +4], arena[5248, +1]), 1 work-items in groups of 1
// launch 4: pointwise_069b84aace4c(arena[0, +320], arena[5120, +4], arena[5248, +1], arena[2560, +80]), 1 work-items in groups of 1
// launch 5: integer_8cd4c68d9e21(arena[2560, +80], weight 0, arena[0, +2560]), 4 work-items in groups of 1
// launch 6: pointwise_b438015c0850(arena[5120, +4], weight 1, arena[0, +2560], arena[5248, +1], weight 2, arena[2560, +2560]), 1 work-items in groups of 1
// launch 7: quantisedlstm_29095186763a(arena[2560, +2560], weight 3, weight 4, weight 1, arena[0, +896]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void reduce_ebe5ce9c495a(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 1); ++u) {
    const int x0 = 0;
    const int y0 = 0;
    float a = INFINITY;
    float8 av = (float8)(INFINITY);
    for (int r0 = 0; r0 < 5; ++r0) {
      for (int r1 = 0; r1 < 2; ++r1) {
        const int b = x0 + r0 * 16 + r1 * 8;
        int i = 0;
        for (; i + 8 <= 8; i += 8) {
          const float8 v = vload8(0, p0 + b + i);
          av = select(v, av, (av < v) | isnan(av));
        }
        for (; i < 8; ++i) {
          const float v = p0[b + i];
          a = select(v, a, (a < v) | isnan(a));
        }
      }
    }
    const float4 av_4 = select(av.hi, av.lo, (av.lo < av.hi) | isnan(av.lo));
    const float2 av_4_2 = select(av_4.hi, av_4.lo, (av_4.lo < av_4.hi) | isnan(av_4.lo));
    const float av_4_2_1 = select(av_4_2.hi, av_4_2.lo, (av_4_2.lo < av_4_2.hi) | isnan(av_4_2.lo));
    a = select(av_4_2_1, a, (a < av_4_2_1) | isnan(a));
    p1[y0] = a;
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void reduce_c666ae117c6d(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 1); ++u) {
    const int x0 = 0;
    const int y0 = 0;
    float a = -INFINITY;
    float8 av = (float8)(-INFINITY);
    for (int r0 = 0; r0 < 5; ++r0) {
      for (int r1 = 0; r1 < 2; ++r1) {
        const int b = x0 + r0 * 16 + r1 * 8;
        int i = 0;
        for (; i + 8 <= 8; i += 8) {
          const float8 v = vload8(0, p0 + b + i);
          av = select(v, av, (av > v) | isnan(av));
        }
        for (; i < 8; ++i) {
          const float v = p0[b + i];
          a = select(v, a, (a > v) | isnan(a));
        }
      }
    }
    const float4 av_4 = select(av.hi, av.lo, (av.lo > av.hi) | isnan(av.lo));
    const float2 av_4_2 = select(av_4.hi, av_4.lo, (av_4.lo > av_4.hi) | isnan(av_4.lo));
    const float av_4_2_1 = select(av_4_2.hi, av_4_2.lo, (av_4_2.lo > av_4_2.hi) | isnan(av_4_2.lo));
    a = select(av_4_2_1, a, (a > av_4_2_1) | isnan(a));
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
__kernel void pointwise_069b84aace4c(
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
  const int end = 80;
  int i = 0;
  for (; i + 8 <= end; i += 8) {
    const float8 v0 = vload8(0, p0 + o1 + i);
    const float8 v1 = (float8)(p1[o2]);
    const uchar8 v2 = (uchar8)(p2[o3]);
    const float8 t5 = (v0 / v1);
    const float8 t4 = rint(t5);
    const float8 t6 = convert_float8(v2);
    const float8 t3 = (t4 + t6);
    const float8 t2 = select((float8)(0.0f), t3, t3 > (float8)(0.0f));
    const float8 t1 = select((float8)(255.0f), t2, t2 < (float8)(255.0f));
    const uchar8 t0 = convert_uchar8(convert_int8(t1));
    vstore8(t0, 0, p3 + o0 + i);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void integer_8cd4c68d9e21(
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
  for (int t = group * 3; t < min(group * 3 + 3, 3); ++t) {
    const int r0 = 0, c0 = min((t) * 4, 6);
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
__kernel void pointwise_b438015c0850(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global const uchar* p3,
    __global const int* p4,
    __global float* p5)
{
  const int id = get_global_id(0);
  for (int u = id * 10; u < min(id * 10 + 10, 10); ++u) {
    const int d0 = u;
    const int o0 = d0 * 64;
    const int o1 = 0;
    const int o2 = 0;
    const int o3 = d0 * 64;
    const int o4 = 0;
    const int o5 = 0;
    const int end = 64;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = (float8)(p0[o1]);
      const float8 v1 = vload8(0, p1 + o2 + i);
      const int8 v2 = vload8(0, p2 + o3 + i);
      const uchar8 v3 = (uchar8)(p3[o4]);
      const int8 v4 = vload8(0, p4 + o5 + i);
      const int8 t4 = convert_int8(v3);
      const int8 t3 = (t4 * v4);
      const int8 t2 = (v2 - t3);
      const float8 t1 = convert_float8(t2);
      const float8 t5 = (v0 * v1);
      const float8 t0 = (t1 * t5);
      vstore8(t0, 0, p5 + o0 + i);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void quantisedlstm_29095186763a(
    __global const float* p0,
    __global const short* p1,
    __global const char* p2,
    __global const float* p3,
    __global float* p4)
{
  const int d = get_global_id(0);
  float a[128];
  short q[32];
  for (int b = 0; b < 2; ++b) {
    for (int u = 0; u < 16; ++u) {
      p4[d * 32 + b * 16 + u + 160] = 0.0f;
      p4[d * 32 + b * 16 + u + 192] = 0.0f;
    }
  }
  for (int t = 0; t < 5; ++t) {
    const int s = t;
    float8 least = 0.0f, most = 0.0f;
    for (int b = 0; b < 2; ++b) {
      for (int u = 0; u < 16; u += 8) {
        const float8 h = vload8(0, p4 + d * 32 + b * 16 + u + 160);
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
    high = most.s1 > high ? most.s1 : high;
    high = most.s2 > high ? most.s2 : high;
    high = most.s3 > high ? most.s3 : high;
    high = most.s4 > high ? most.s4 : high;
    high = most.s5 > high ? most.s5 : high;
    high = most.s6 > high ? most.s6 : high;
    high = most.s7 > high ? most.s7 : high;
    const float scale = ((high > 1e-28f ? high : 1e-28f) - low) / 255.0f;
    const float bottom = rint(low / scale), top = bottom + 255.0f;
    for (int first = 0; first < 2; first += 2) {
      for (int r = 0; r < 2; ++r) {
        const int b = first + r;
        for (int u = 0; u < 16; u += 8) {
          const float8 steps = rint(vload8(0, p4 + d * 32 + b * 16 + u + 160) / scale);
          vstore8(convert_short8(select(steps, (float8)(top), steps > top)), 0, q + r * 16 + u);
        }
      }
      for (int p = 0; p < 2; ++p) {
        __global const char* w = p2 + d * 1024 + 0 + p * 512;
        int8 s0_0 = 0;
        int8 s1_0 = s0_0;
        int8 s0_1 = 0;
        int8 s1_1 = s0_1;
        int8 s0_2 = 0;
        int8 s1_2 = s0_2;
        int8 s0_3 = 0;
        int8 s1_3 = s0_3;
        for (int k = 0; k < 16; k += 2) {
          const short16 x0 = as_short16((int8)(as_int(vload2(0, q + k + 0))));
          const short16 x1 = as_short16((int8)(as_int(vload2(0, q + k + 16))));
          const short16 w0 = convert_short16(vload16(0, w));
          s0_0 += ol_madd(x0, w0);
          s1_0 += ol_madd(x1, w0);
          const short16 w1 = convert_short16(vload16(1, w));
          s0_1 += ol_madd(x0, w1);
          s1_1 += ol_madd(x1, w1);
          const short16 w2 = convert_short16(vload16(2, w));
          s0_2 += ol_madd(x0, w2);
          s1_2 += ol_madd(x1, w2);
          const short16 w3 = convert_short16(vload16(3, w));
          s0_3 += ol_madd(x0, w3);
          s1_3 += ol_madd(x1, w3);
          w += 64;
        }
        const float8 f0 = vload8(0, p3 + d * 64 + 0 + p * 32) * scale;
        vstore8(convert_float8(s0_0) * f0, 0, a + 0 + p * 32);
        vstore8(convert_float8(s1_0) * f0, 0, a + 64 + p * 32);
        const float8 f1 = vload8(0, p3 + d * 64 + 8 + p * 32) * scale;
        vstore8(convert_float8(s0_1) * f1, 0, a + 8 + p * 32);
        vstore8(convert_float8(s1_1) * f1, 0, a + 72 + p * 32);
        const float8 f2 = vload8(0, p3 + d * 64 + 16 + p * 32) * scale;
        vstore8(convert_float8(s0_2) * f2, 0, a + 16 + p * 32);
        vstore8(convert_float8(s1_2) * f2, 0, a + 80 + p * 32);
        const float8 f3 = vload8(0, p3 + d * 64 + 24 + p * 32) * scale;
        vstore8(convert_float8(s0_3) * f3, 0, a + 24 + p * 32);
        vstore8(convert_float8(s1_3) * f3, 0, a + 88 + p * 32);
      }
      for (int r = 0; r < 2; ++r) {
        const int b = first + r;
        for (int u = 0; u < 16; u += 8) {
          const float8 before = vload8(0, p4 + d * 32 + b * 16 + u + 192);
          const float8 i = ol_sigmoid((vload8(0, p0 + s * 128 + b * 64 + d * 64 + u) + vload8(0, a + r * 64 + u + 0)));
          const float8 f = ol_sigmoid((vload8(0, p0 + s * 128 + b * 64 + d * 64 + u + 32) + vload8(0, a + r * 64 + u + 32)));
          const float8 g = ol_tanh((vload8(0, p0 + s * 128 + b * 64 + d * 64 + u + 48) + vload8(0, a + r * 64 + u + 48)));
          const float8 cell = f * before + i * g;
          const float8 o = ol_sigmoid((vload8(0, p0 + s * 128 + b * 64 + d * 64 + u + 16) + vload8(0, a + r * 64 + u + 16)));
          const float8 out = o * ol_tanh((cell));
          vstore8(cell, 0, p4 + d * 32 + b * 16 + u + 192);
          vstore8(out, 0, p4 + d * 32 + b * 16 + u + 160);
          vstore8(out, 0, p4 + s * 32 + d * 32 + b * 16 + u);
        }
      }
    }
  }
}
