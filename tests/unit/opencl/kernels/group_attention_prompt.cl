// GroupQueryAttention(GroupQueryAttention0.0, GroupQueryAttention0.3, GroupQueryAttention0.4, GroupQueryAttention0.5, GroupQueryAttention0.6)
//
// launch 0: cache_f198bf4053fd(arena[0, +4096], arena[4096, +1536], arena[10240, +4], arena[5632, +1536], arena[7168, +1536], arena[8704, +1536]), 2 work-items in groups of 1
// launch 1: attention_32e7155daa30(arena[0, +4096], arena[7168, +1536], arena[8704, +1536], arena[10240, +4], arena[4096, +2048]), 1 work-items in groups of 1

void part_cache_71a75853948c(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global float* p3,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 24; u < min(id * 24 + 24, 24); ++u) {
    const int d2 = u;
    __global float* to = p3 + 0 + u * 16;
    const int given = p2[0] + -15;
    if (given < 0 || given > 8) *wrong = 1;
    const int before = min(max(given, 0), 8);
    if ((__global const void*)p1 == (__global const void*)p3 && !(d2 >= before && d2 < before + 16)) continue;
    if (d2 >= before && d2 < before + 16) {
      __global const float* from = p0 + (d2 - before) * 64 + 32;
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

void part_cache_c584c3ded41a(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global float* p3,
    __global int* wrong)
{
  const int id = get_global_id(0) - 1;
  for (int u = id * 24; u < min(id * 24 + 24, 24); ++u) {
    const int d2 = u;
    __global float* to = p3 + 0 + u * 16;
    const int given = p2[0] + -15;
    if (given < 0 || given > 8) *wrong = 1;
    const int before = min(max(given, 0), 8);
    if ((__global const void*)p1 == (__global const void*)p3 && !(d2 >= before && d2 < before + 16)) continue;
    if (d2 >= before && d2 < before + 16) {
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
__kernel void cache_f198bf4053fd(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global const float* p3,
    __global float* p4,
    __global float* p5,
    __global int* wrong)
{
  if (get_global_id(0) < 1) part_cache_71a75853948c((__global const float*)p0, (__global const float*)p1, (__global const int*)p2, (__global float*)p4, (__global int*)wrong);
  if (get_global_id(0) >= 1 && get_global_id(0) < 2) part_cache_c584c3ded41a((__global const float*)p0, (__global const float*)p3, (__global const int*)p2, (__global float*)p5, (__global int*)wrong);
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void attention_32e7155daa30(
    __global const float* p0,
    __global const float* p1,
    __global const float* p2,
    __global const int* p3,
    __global float* p4,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 1); ++u) {
    const int given = p3[0] + -15;
    if (given < 0 || given > 8) *wrong = 1;
    const int before = min(max(given, 0), 8);
    const int s0 = min((0 - 0) * 16, 0);
    float queries[512], sums[512];
    float scores[768];
    float top[32], total[32], fades[32], own[32];
    for (int h = 0; h < 2; ++h) {
      const int n = 0 * 2 + h;
      for (int p = 0; p < 16; ++p) {
        __global const float* from = p0 + (s0 + p) * 64 + n * 16;
        float to[16];
        const int row = h * 16 + p, at_row = before + s0 + p;
        for (int i = 0; i < 16; ++i) to[i] = from[i] * 0.25f;
        for (int i = 0; i < 16; ++i) queries[i * 32 + row] = to[i];
        for (int i = 0; i < 16; ++i) sums[row * 16 + i] = 0.0f;
        top[row] = -INFINITY;
        total[row] = 0.0f;
        own[row] = at_row;
      }
    }
    __global const float* k = p1 + 0 + 0;
    __global const float* v = p2 + 0 + 0;
    const int end = before + s0 + 16;
    for (int t0 = max(0, before + s0 + 1 - 9); t0 < end; t0 += 24) {
      const int count = min(24, end - t0);
      for (int i = 0; i < count; i += 6) {
        __global const float* k0 = k + min(t0 + i + 0, end - 1) * 16;
        __global const float* k1 = k + min(t0 + i + 1, end - 1) * 16;
        __global const float* k2 = k + min(t0 + i + 2, end - 1) * 16;
        __global const float* k3 = k + min(t0 + i + 3, end - 1) * 16;
        __global const float* k4 = k + min(t0 + i + 4, end - 1) * 16;
        __global const float* k5 = k + min(t0 + i + 5, end - 1) * 16;
        for (int row = 0; row < 32; row += 16) {
          float8 a0_0 = (float8)(0.0f), a0_1 = (float8)(0.0f), a1_0 = (float8)(0.0f), a1_1 = (float8)(0.0f), a2_0 = (float8)(0.0f), a2_1 = (float8)(0.0f), a3_0 = (float8)(0.0f), a3_1 = (float8)(0.0f), a4_0 = (float8)(0.0f), a4_1 = (float8)(0.0f), a5_0 = (float8)(0.0f), a5_1 = (float8)(0.0f);
          for (int d = 0; d < 16; ++d) {
            __private const float* qd = queries + d * 32 + row;
            const float8 q0 = vload8(0, qd + 0);
            const float8 q1 = vload8(0, qd + 8);
            const float8 x0 = (float8)(k0[d]);
            a0_0 = mad(x0, q0, a0_0);
            a0_1 = mad(x0, q1, a0_1);
            const float8 x1 = (float8)(k1[d]);
            a1_0 = mad(x1, q0, a1_0);
            a1_1 = mad(x1, q1, a1_1);
            const float8 x2 = (float8)(k2[d]);
            a2_0 = mad(x2, q0, a2_0);
            a2_1 = mad(x2, q1, a2_1);
            const float8 x3 = (float8)(k3[d]);
            a3_0 = mad(x3, q0, a3_0);
            a3_1 = mad(x3, q1, a3_1);
            const float8 x4 = (float8)(k4[d]);
            a4_0 = mad(x4, q0, a4_0);
            a4_1 = mad(x4, q1, a4_1);
            const float8 x5 = (float8)(k5[d]);
            a5_0 = mad(x5, q0, a5_0);
            a5_1 = mad(x5, q1, a5_1);
          }
          vstore8(a0_0, 0, scores + (i + 0) * 32 + row + 0);
          vstore8(a0_1, 0, scores + (i + 0) * 32 + row + 8);
          vstore8(a1_0, 0, scores + (i + 1) * 32 + row + 0);
          vstore8(a1_1, 0, scores + (i + 1) * 32 + row + 8);
          vstore8(a2_0, 0, scores + (i + 2) * 32 + row + 0);
          vstore8(a2_1, 0, scores + (i + 2) * 32 + row + 8);
          vstore8(a3_0, 0, scores + (i + 3) * 32 + row + 0);
          vstore8(a3_1, 0, scores + (i + 3) * 32 + row + 8);
          vstore8(a4_0, 0, scores + (i + 4) * 32 + row + 0);
          vstore8(a4_1, 0, scores + (i + 4) * 32 + row + 8);
          vstore8(a5_0, 0, scores + (i + 5) * 32 + row + 0);
          vstore8(a5_1, 0, scores + (i + 5) * 32 + row + 8);
        }
      }
      for (int row = 0; row < 32; row += 8) {
        const float8 last = vload8(0, own + row);
        const float8 before_top = vload8(0, top + row);
        float8 most = before_top;
        for (int i = 0; i < count; ++i) {
          __private float* at = scores + i * 32 + row;
          float8 score = vload8(0, at + 0);
          score = select(score, (float8)(-INFINITY), ((float8)(t0 + i) > last) | ((float8)(t0 + i) <= last - 9.0f));
          vstore8(score, 0, at + 0);
          most = select(most, score, score > most);
        }
        const float8 fade = ol_exp(before_top - most);
        float8 sum = vload8(0, total + row) * fade;
        for (int i = 0; i < count; ++i) {
          __private float* at = scores + i * 32 + row;
          const float8 e = ol_exp(vload8(0, at + 0) - most);
          sum += e;
          vstore8(e, 0, at + 0);
        }
        vstore8(most, 0, top + row);
        vstore8(sum, 0, total + row);
        vstore8(fade, 0, fades + row);
      }
      for (int row = 0; row < 30; row += 6) {
        for (int d = 0; d < 16; d += 16) {
          float8 a0_0 = vload8(0, sums + (row + 0) * 16 + d + 0) * fades[row + 0];
          float8 a0_1 = vload8(0, sums + (row + 0) * 16 + d + 8) * fades[row + 0];
          float8 a1_0 = vload8(0, sums + (row + 1) * 16 + d + 0) * fades[row + 1];
          float8 a1_1 = vload8(0, sums + (row + 1) * 16 + d + 8) * fades[row + 1];
          float8 a2_0 = vload8(0, sums + (row + 2) * 16 + d + 0) * fades[row + 2];
          float8 a2_1 = vload8(0, sums + (row + 2) * 16 + d + 8) * fades[row + 2];
          float8 a3_0 = vload8(0, sums + (row + 3) * 16 + d + 0) * fades[row + 3];
          float8 a3_1 = vload8(0, sums + (row + 3) * 16 + d + 8) * fades[row + 3];
          float8 a4_0 = vload8(0, sums + (row + 4) * 16 + d + 0) * fades[row + 4];
          float8 a4_1 = vload8(0, sums + (row + 4) * 16 + d + 8) * fades[row + 4];
          float8 a5_0 = vload8(0, sums + (row + 5) * 16 + d + 0) * fades[row + 5];
          float8 a5_1 = vload8(0, sums + (row + 5) * 16 + d + 8) * fades[row + 5];
          for (int i = 0; i < count; ++i) {
            __global const float* value = v + (t0 + i) * 16 + d;
            __private const float* e = scores + i * 32 + row;
            const float8 v0 = vload8(0, value + 0);
            const float8 v1 = vload8(0, value + 8);
            const float8 e0 = (float8)(e[0]);
            a0_0 = mad(e0, v0, a0_0);
            a0_1 = mad(e0, v1, a0_1);
            const float8 e1 = (float8)(e[1]);
            a1_0 = mad(e1, v0, a1_0);
            a1_1 = mad(e1, v1, a1_1);
            const float8 e2 = (float8)(e[2]);
            a2_0 = mad(e2, v0, a2_0);
            a2_1 = mad(e2, v1, a2_1);
            const float8 e3 = (float8)(e[3]);
            a3_0 = mad(e3, v0, a3_0);
            a3_1 = mad(e3, v1, a3_1);
            const float8 e4 = (float8)(e[4]);
            a4_0 = mad(e4, v0, a4_0);
            a4_1 = mad(e4, v1, a4_1);
            const float8 e5 = (float8)(e[5]);
            a5_0 = mad(e5, v0, a5_0);
            a5_1 = mad(e5, v1, a5_1);
          }
          vstore8(a0_0, 0, sums + (row + 0) * 16 + d + 0);
          vstore8(a0_1, 0, sums + (row + 0) * 16 + d + 8);
          vstore8(a1_0, 0, sums + (row + 1) * 16 + d + 0);
          vstore8(a1_1, 0, sums + (row + 1) * 16 + d + 8);
          vstore8(a2_0, 0, sums + (row + 2) * 16 + d + 0);
          vstore8(a2_1, 0, sums + (row + 2) * 16 + d + 8);
          vstore8(a3_0, 0, sums + (row + 3) * 16 + d + 0);
          vstore8(a3_1, 0, sums + (row + 3) * 16 + d + 8);
          vstore8(a4_0, 0, sums + (row + 4) * 16 + d + 0);
          vstore8(a4_1, 0, sums + (row + 4) * 16 + d + 8);
          vstore8(a5_0, 0, sums + (row + 5) * 16 + d + 0);
          vstore8(a5_1, 0, sums + (row + 5) * 16 + d + 8);
        }
      }
      for (int row = 30; row < 32; row += 2) {
        for (int d = 0; d < 16; d += 16) {
          float8 a0_0 = vload8(0, sums + (row + 0) * 16 + d + 0) * fades[row + 0];
          float8 a0_1 = vload8(0, sums + (row + 0) * 16 + d + 8) * fades[row + 0];
          float8 a1_0 = vload8(0, sums + (row + 1) * 16 + d + 0) * fades[row + 1];
          float8 a1_1 = vload8(0, sums + (row + 1) * 16 + d + 8) * fades[row + 1];
          for (int i = 0; i < count; ++i) {
            __global const float* value = v + (t0 + i) * 16 + d;
            __private const float* e = scores + i * 32 + row;
            const float8 v0 = vload8(0, value + 0);
            const float8 v1 = vload8(0, value + 8);
            const float8 e0 = (float8)(e[0]);
            a0_0 = mad(e0, v0, a0_0);
            a0_1 = mad(e0, v1, a0_1);
            const float8 e1 = (float8)(e[1]);
            a1_0 = mad(e1, v0, a1_0);
            a1_1 = mad(e1, v1, a1_1);
          }
          vstore8(a0_0, 0, sums + (row + 0) * 16 + d + 0);
          vstore8(a0_1, 0, sums + (row + 0) * 16 + d + 8);
          vstore8(a1_0, 0, sums + (row + 1) * 16 + d + 0);
          vstore8(a1_1, 0, sums + (row + 1) * 16 + d + 8);
        }
      }
    }
    for (int h = 0; h < 2; ++h) {
      for (int p = 0; p < 16; ++p) {
        const int row = h * 16 + p;
        const float whole = 1.0f / total[row];
        __global float* result = p4 + (s0 + p) * 32 + h * 16;
        for (int i = 0; i < 16; i += 8) {
          vstore8(vload8(0, sums + row * 16 + i) * whole, 0, result + i);
        }
      }
    }
  }
}
