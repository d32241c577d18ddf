// GroupQueryAttention(GroupQueryAttention0.0, GroupQueryAttention0.3, GroupQueryAttention0.4, GroupQueryAttention0.5, GroupQueryAttention0.6, GroupQueryAttention0.7, GroupQueryAttention0.8)
//
// launch 0: cache_8b3e7d1f7fab(arena[2048, +256], arena[0, +512], arena[2304, +4], weight 0, weight 0, arena[512, +512], arena[1024, +512], arena[1536, +512]), 2 work-items in groups of 1
// launch 1: attention_557920ca9fcd(arena[2048, +256], arena[1024, +512], arena[1536, +512], arena[2304, +4], weight 0, weight 0, arena[0, +128]), 1 work-items in groups of 1

void part_cache_b63948bf711a(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global const float* p3,
    __global const float* p4,
    __global float* p5,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 8; u < min(id * 8 + 8, 8); ++u) {
    const int d2 = u;
    __global float* to = p5 + 0 + u * 16;
    const int given = p2[0] + 0;
    if (given < 0 || given > 7) *wrong = 1;
    const int before = min(max(given, 0), 7);
    if ((__global const void*)p1 == (__global const void*)p5 && !(d2 >= before && d2 < before + 1)) continue;
    if (d2 >= before && d2 < before + 1) {
      __global const float* from = p0 + (d2 - before) * 64 + 32;
      if (d2 >= 8) *wrong = 1;
      const int at = min(d2, 7) * 8;
      for (int i = 0; i < 8; ++i) {
        const float a = from[i] * 1.0f, b = from[i + 8] * 1.0f;
        const float c = p3[0 + at + i], s = p4[0 + at + i];
        to[i] = a * c - b * s;
        to[i + 8] = a * s + b * c;
      }
    }
    else if (d2 < before) {
      __global const float* from = p1 + d2 * 16;
      for (int i = 0; i < 16; i += 8) {
        vstore8(vload8(0, from + i), 0, to + i);
      }
    }
    else {
      for (int i = 0; i < 16; i += 8) {
        vstore8((float8)(0.0f), 0, to + i);
      }
    }
  }
}

void part_cache_7515423d2e19(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global float* p3,
    __global int* wrong)
{
  const int id = get_global_id(0) - 1;
  for (int u = id * 8; u < min(id * 8 + 8, 8); ++u) {
    const int d2 = u;
    __global float* to = p3 + 0 + u * 16;
    const int given = p2[0] + 0;
    if (given < 0 || given > 7) *wrong = 1;
    const int before = min(max(given, 0), 7);
    if ((__global const void*)p1 == (__global const void*)p3 && !(d2 >= before && d2 < before + 1)) continue;
    if (d2 >= before && d2 < before + 1) {
      __global const float* from = p0 + (d2 - before) * 64 + 48;
      for (int i = 0; i < 16; ++i) to[i] = from[i] * 1.0f;
    }
    else if (d2 < before) {
      __global const float* from = p1 + d2 * 16;
      for (int i = 0; i < 16; i += 8) {
        vstore8(vload8(0, from + i), 0, to + i);
      }
    }
    else {
      for (int i = 0; i < 16; i += 8) {
        vstore8((float8)(0.0f), 0, to + i);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void cache_8b3e7d1f7fab(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global const float* p3,
    __global const float* p4,
    __global const float* p5,
    __global float* p6,
    __global float* p7,
    __global int* wrong)
{
  if (get_global_id(0) < 1) part_cache_b63948bf711a((__global const float*)p0, (__global const float*)p1, (__global const int*)p2, (__global const float*)p3, (__global const float*)p4, (__global float*)p6, (__global int*)wrong);
  if (get_global_id(0) >= 1 && get_global_id(0) < 2) part_cache_7515423d2e19((__global const float*)p0, (__global const float*)p5, (__global const int*)p2, (__global float*)p7, (__global int*)wrong);
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void attention_557920ca9fcd(
    __global const float* p0,
    __global const float* p1,
    __global const float* p2,
    __global const int* p3,
    __global const float* p4,
    __global const float* p5,
    __global float* p6,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 2; u < min(id * 2 + 2, 2); ++u) {
    const int d2 = u;
    const int given = p3[0] + 0;
    if (given < 0 || given > 7) *wrong = 1;
    const int before = min(max(given, 0), 7);
    const int own = before + 0;
    __global const float* from = p0 + d2 * 16;
    float to[16];
    if (own >= 8) *wrong = 1;
    const int at = min(own, 7) * 8;
    for (int i = 0; i < 8; ++i) {
      const float a = from[i] * 0.25f, b = from[i + 8] * 0.25f;
      const float c = p4[0 + at + i], s = p5[0 + at + i];
      to[i] = a * c - b * s;
      to[i + 8] = a * s + b * c;
    }
    __global const float* k = p1 + 0 + (d2 / 2) * 128;
    __global const float* v = p2 + 0 + (d2 / 2) * 128;
    float8 a0 = (float8)(0.0f), a1 = (float8)(0.0f);
    float top = -INFINITY, sum = 0.0f;
    for (int t = 0; t <= own; t += 32) {
      const int count = min(32, own + 1 - t);
      float w[32], most = top;
      for (int i = 0; i < count; ++i) {
        __global const float* key = k + (t + i) * 16;
        float8 dot = (float8)(0.0f);
        dot = mad(vload8(0, to + 0), vload8(0, key + 0), dot);
        dot = mad(vload8(0, to + 8), vload8(0, key + 8), dot);
        const float4 dot_4 = dot.lo + dot.hi;
        const float2 dot_4_2 = dot_4.lo + dot_4.hi;
        const float dot_4_2_1 = dot_4_2.lo + dot_4_2.hi;
        w[i] = dot_4_2_1;
        most = w[i] > most ? w[i] : most;
      }
      const float fade = ol_exp(top - most);
      sum *= fade;
      top = most;
      a0 *= fade;
      a1 *= fade;
      for (int i = 0; i < count; ++i) {
        const float e = ol_exp(w[i] - top);
        sum += e;
        __global const float* value = v + (t + i) * 16;
        a0 = mad((float8)(e), vload8(0, value + 0), a0);
        a1 = mad((float8)(e), vload8(0, value + 8), a1);
      }
    }
    const float whole = 1.0f / sum;
    vstore8(a0 * whole, 0, p6 + 0 + u * 16 + 0);
    vstore8(a1 * whole, 0, p6 + 0 + u * 16 + 8);
  }
}
