// GroupQueryAttention(GroupQueryAttention0.0, GroupQueryAttention0.3, GroupQueryAttention0.4, GroupQueryAttention0.5, GroupQueryAttention0.6, GroupQueryAttention0.7, GroupQueryAttention0.8)
//
// launch 0: cast_half_313cdd35bee7(arena[768, +128], arena[512, +256]), 1 work-items in groups of 1
// launch 1: cache_445a39db8887(arena[512, +256], arena[0, +256], arena[1280, +4], weight 0, weight 0, arena[256, +256], arena[768, +256], arena[1024, +256]), 2 work-items in groups of 1
// launch 2: attention_105d3c43830c(arena[512, +256], arena[768, +256], arena[1024, +256], arena[1280, +4], weight 0, weight 0, arena[0, +128]), 1 work-items in groups of 1
// launch 3: cast_half_54dc88cf916f(arena[0, +128], arena[128, +64]), 1 work-items in groups of 1

void part_cache_0f8e1a0044a5(
    __global const float* p0,
    __global const half* p1,
    __global const int* p2,
    __global const float* p3,
    __global const float* p4,
    __global half* p5,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 8; u < min(id * 8 + 8, 8); ++u) {
    const int d2 = u;
    __global half* cell = p5 + 0 + u * 16;
    const int given = p2[0] + 0;
    if (given < 0 || given > 7) *wrong = 1;
    const int before = min(max(given, 0), 7);
    if ((__global const void*)p1 == (__global const void*)p5 && !(d2 >= before && d2 < before + 1)) continue;
    if (d2 >= before && d2 < before + 1) {
      __global const float* from = p0 + (d2 - before) * 64 + 32;
      float to[16];
      if (d2 >= 8) *wrong = 1;
      const int at = min(d2, 7) * 8;
      for (int i = 0; i < 8; ++i) {
        const float a = from[i] * 1.0f, b = from[i + 8] * 1.0f;
        const float c = p3[0 + at + i], s = p4[0 + at + i];
        to[i] = a * c - b * s;
        to[i + 8] = a * s + b * c;
      }
      for (int i = 0; i < 16; i += 8) {
        vstore_half8_rte(vload8(0, to + i), 0, cell + i);
      }
    }
    else if (d2 < before) {
      __global const half* from = p1 + d2 * 16;
      for (int i = 0; i < 16; i += 8) {
        vstore_half8_rte(vload_half8(0, from + i), 0, cell + i);
      }
    }
    else {
      for (int i = 0; i < 16; i += 8) {
        vstore_half8_rte((float8)(0.0f), 0, cell + i);
      }
    }
  }
}

void part_cache_0014fb583a32(
    __global const float* p0,
    __global const half* p1,
    __global const int* p2,
    __global half* p3,
    __global int* wrong)
{
  const int id = get_global_id(0) - 1;
  for (int u = id * 8; u < min(id * 8 + 8, 8); ++u) {
    const int d2 = u;
    __global half* cell = p3 + 0 + u * 16;
    const int given = p2[0] + 0;
    if (given < 0 || given > 7) *wrong = 1;
    const int before = min(max(given, 0), 7);
    if ((__global const void*)p1 == (__global const void*)p3 && !(d2 >= before && d2 < before + 1)) continue;
    if (d2 >= before && d2 < before + 1) {
      __global const float* from = p0 + (d2 - before) * 64 + 48;
      float to[16];
      for (int i = 0; i < 16; ++i) to[i] = from[i] * 1.0f;
      for (int i = 0; i < 16; i += 8) {
        vstore_half8_rte(vload8(0, to + i), 0, cell + i);
      }
    }
    else if (d2 < before) {
      __global const half* from = p1 + d2 * 16;
      for (int i = 0; i < 16; i += 8) {
        vstore_half8_rte(vload_half8(0, from + i), 0, cell + i);
      }
    }
    else {
      for (int i = 0; i < 16; i += 8) {
        vstore_half8_rte((float8)(0.0f), 0, cell + i);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void cast_half_313cdd35bee7(
    __global const half* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 1); ++u) {
    for (int i = u * 64; i < u * 64 + 64; i += 8) {
      vstore8(vload_half8(0, p0 + 0 + i), 0, p1 + 0 + i);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void cache_445a39db8887(
    __global const float* p0,
    __global const half* p1,
    __global const int* p2,
    __global const float* p3,
    __global const float* p4,
    __global const half* p5,
    __global half* p6,
    __global half* p7,
    __global int* wrong)
{
  if (get_global_id(0) < 1) part_cache_0f8e1a0044a5((__global const float*)p0, (__global const half*)p1, (__global const int*)p2, (__global const float*)p3, (__global const float*)p4, (__global half*)p6, (__global int*)wrong);
  if (get_global_id(0) >= 1 && get_global_id(0) < 2) part_cache_0014fb583a32((__global const float*)p0, (__global const half*)p5, (__global const int*)p2, (__global half*)p7, (__global int*)wrong);
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void attention_105d3c43830c(
    __global const float* p0,
    __global const half* p1,
    __global const half* p2,
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
    __global const half* k = p1 + 0 + (d2 / 2) * 128;
    __global const half* v = p2 + 0 + (d2 / 2) * 128;
    float8 a0 = (float8)(0.0f), a1 = (float8)(0.0f);
    float top = -INFINITY, sum = 0.0f;
    for (int t = 0; t <= own; t += 32) {
      const int count = min(32, own + 1 - t);
      float w[32], most = top;
      for (int i = 0; i < count; ++i) {
        __global const half* key = k + (t + i) * 16;
        float8 dot = (float8)(0.0f);
        dot = mad(vload8(0, to + 0), vload_half8(0, key + 0), dot);
        dot = mad(vload8(0, to + 8), vload_half8(0, key + 8), dot);
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
        __global const half* value = v + (t + i) * 16;
        a0 = mad((float8)(e), vload_half8(0, value + 0), a0);
        a1 = mad((float8)(e), vload_half8(0, value + 8), a1);
      }
    }
    const float whole = 1.0f / sum;
    vstore8(a0 * whole, 0, p6 + 0 + u * 16 + 0);
    vstore8(a1 * whole, 0, p6 + 0 + u * 16 + 8);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void cast_half_54dc88cf916f(
    __global const float* p0,
    __global half* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 1); ++u) {
    for (int i = u * 32; i < u * 32 + 32; i += 8) {
      vstore_half8_rte(vload8(0, p0 + 0 + i), 0, p1 + 0 + i);
    }
  }
}
