// GroupQueryAttention(GroupQueryAttention0.0, GroupQueryAttention0.3, GroupQueryAttention0.4, GroupQueryAttention0.5, GroupQueryAttention0.6)
//
// launch 0: cache_1d9c6af7b79a(arena[0, +1536], arena[1536, +1536], arena[6144, +4], arena[4608, +1536]), 64 work-items in groups of 64
// launch 1: cache_4a60548e18b2(arena[0, +1536], arena[3072, +1536], arena[6144, +4], arena[1536, +1536]), 64 work-items in groups of 64
// launch 2: attention_d538bf90794d(arena[0, +1536], arena[4608, +1536], arena[1536, +1536], arena[6144, +4], arena[3072, +768]), 256 work-items in groups of 64

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void cache_1d9c6af7b79a(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global float* p3,
    __global int* wrong)
{
  for (int u = get_global_id(0); u < 24; u += 64) {
    const int d2 = u;
    __global float* to = p3 + 0 + u * 16;
    const int given = p2[0] + -5;
    if (given < 0 || given > 18) *wrong = 1;
    const int before = min(max(given, 0), 18);
    if ((__global const void*)p1 == (__global const void*)p3 && !(d2 >= before && d2 < before + 6)) continue;
    if (d2 >= before && d2 < before + 6) {
      __global const float* from = p0 + (d2 - before) * 64 + 32;
      for (int i = 0; i < 16; ++i) to[i] = from[i] * 1.0f;
    }
    else if (d2 < before) {
      __global const float* from = p1 + d2 * 16;
      for (int i = 0; i < 16; i += 4) {
        vstore4(vload4(0, from + i), 0, to + i);
      }
    }
    else {
      for (int i = 0; i < 16; i += 4) {
        vstore4((float4)(0.0f), 0, to + i);
      }
    }
  }
}

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void cache_4a60548e18b2(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global float* p3,
    __global int* wrong)
{
  for (int u = get_global_id(0); u < 24; u += 64) {
    const int d2 = u;
    __global float* to = p3 + 0 + u * 16;
    const int given = p2[0] + -5;
    if (given < 0 || given > 18) *wrong = 1;
    const int before = min(max(given, 0), 18);
    if ((__global const void*)p1 == (__global const void*)p3 && !(d2 >= before && d2 < before + 6)) continue;
    if (d2 >= before && d2 < before + 6) {
      __global const float* from = p0 + (d2 - before) * 64 + 48;
      for (int i = 0; i < 16; ++i) to[i] = from[i] * 1.0f;
    }
    else if (d2 < before) {
      __global const float* from = p1 + d2 * 16;
      for (int i = 0; i < 16; i += 4) {
        vstore4(vload4(0, from + i), 0, to + i);
      }
    }
    else {
      for (int i = 0; i < 16; i += 4) {
        vstore4((float4)(0.0f), 0, to + i);
      }
    }
  }
}

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void attention_d538bf90794d(
    __global const float* p0,
    __global const float* p1,
    __global const float* p2,
    __global const int* p3,
    __global float* p4,
    __global int* wrong)
{
  __local float4 queries[16], shared[64];
  __local float w[256];
  const int l = get_local_id(0), d = l % 4, lane = l / 4;
  for (int u = get_group_id(0); u < 4; u += 4) {
    const int d2 = u % 2;
    const int d1 = (u) / 2;
    const int given = p3[0] + -5;
    if (given < 0 || given > 18) *wrong = 1;
    const int before = min(max(given, 0), 18);
    const int s0 = min(d1 * 4, 2);
    const int own = before + s0;
    {
      __global const float* from = p0 + (s0 + 0) * 64 + d2 * 16;
      __local float* to = (__local float*)(queries + 0);
      for (int i = l; i < 16; i += 64) to[i] = from[i] * 0.25f;
    }
    {
      __global const float* from = p0 + (s0 + 1) * 64 + d2 * 16;
      __local float* to = (__local float*)(queries + 4);
      for (int i = l; i < 16; i += 64) to[i] = from[i] * 0.25f;
    }
    {
      __global const float* from = p0 + (s0 + 2) * 64 + d2 * 16;
      __local float* to = (__local float*)(queries + 8);
      for (int i = l; i < 16; i += 64) to[i] = from[i] * 0.25f;
    }
    {
      __global const float* from = p0 + (s0 + 3) * 64 + d2 * 16;
      __local float* to = (__local float*)(queries + 12);
      for (int i = l; i < 16; i += 64) to[i] = from[i] * 0.25f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __global const float* k = p1 + 0 + (d2 / 2) * 384;
    __global const float* v = p2 + 0 + (d2 / 2) * 384;
    float4 a0 = (float4)(0.0f);
    float top0 = -INFINITY, sum0 = 0.0f;
    float4 a1 = (float4)(0.0f);
    float top1 = -INFINITY, sum1 = 0.0f;
    float4 a2 = (float4)(0.0f);
    float top2 = -INFINITY, sum2 = 0.0f;
    float4 a3 = (float4)(0.0f);
    float top3 = -INFINITY, sum3 = 0.0f;
    const int end = own + 4;
    for (int t = max(0, own + 1 - 9); t < end; t += 64) {
      const int count = min(64, end - t);
      float score0 = -INFINITY;
      float score1 = -INFINITY;
      float score2 = -INFINITY;
      float score3 = -INFINITY;
      if (l < count) {
        float4 dot0 = (float4)(0.0f);
        float4 dot1 = (float4)(0.0f);
        float4 dot2 = (float4)(0.0f);
        float4 dot3 = (float4)(0.0f);
        for (int i = 0; i < 4; ++i) {
          const float4 key = *(__global const float4*)(k + (t + l) * 16 + i * 4);
          dot0 = mad(queries[i], key, dot0);
          dot1 = mad(queries[4 + i], key, dot1);
          dot2 = mad(queries[8 + i], key, dot2);
          dot3 = mad(queries[12 + i], key, dot3);
        }
        const float2 dot0_2 = dot0.lo + dot0.hi;
        const float dot0_2_1 = dot0_2.lo + dot0_2.hi;
        if (t + l <= own + 0) score0 = dot0_2_1;
        const float2 dot1_2 = dot1.lo + dot1.hi;
        const float dot1_2_1 = dot1_2.lo + dot1_2.hi;
        if (t + l <= own + 1 && t + l > own + 1 - 9) score1 = dot1_2_1;
        const float2 dot2_2 = dot2.lo + dot2.hi;
        const float dot2_2_1 = dot2_2.lo + dot2_2.hi;
        if (t + l <= own + 2 && t + l > own + 2 - 9) score2 = dot2_2_1;
        const float2 dot3_2 = dot3.lo + dot3.hi;
        const float dot3_2_1 = dot3_2.lo + dot3_2.hi;
        if (t + l > own + 3 - 9) score3 = dot3_2_1;
      }
      w[0 + l] = score0;
      w[64 + l] = score1;
      w[128 + l] = score2;
      w[192 + l] = score3;
      barrier(CLK_LOCAL_MEM_FENCE);
      if (l < 32) {
        w[0 + l] = select(w[0 + l], w[32 + l], w[32 + l] > w[0 + l]);
        w[64 + l] = select(w[64 + l], w[96 + l], w[96 + l] > w[64 + l]);
        w[128 + l] = select(w[128 + l], w[160 + l], w[160 + l] > w[128 + l]);
        w[192 + l] = select(w[192 + l], w[224 + l], w[224 + l] > w[192 + l]);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      if (l < 16) {
        w[0 + l] = select(w[0 + l], w[16 + l], w[16 + l] > w[0 + l]);
        w[64 + l] = select(w[64 + l], w[80 + l], w[80 + l] > w[64 + l]);
        w[128 + l] = select(w[128 + l], w[144 + l], w[144 + l] > w[128 + l]);
        w[192 + l] = select(w[192 + l], w[208 + l], w[208 + l] > w[192 + l]);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      if (l < 8) {
        w[0 + l] = select(w[0 + l], w[8 + l], w[8 + l] > w[0 + l]);
        w[64 + l] = select(w[64 + l], w[72 + l], w[72 + l] > w[64 + l]);
        w[128 + l] = select(w[128 + l], w[136 + l], w[136 + l] > w[128 + l]);
        w[192 + l] = select(w[192 + l], w[200 + l], w[200 + l] > w[192 + l]);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      if (l < 4) {
        w[0 + l] = select(w[0 + l], w[4 + l], w[4 + l] > w[0 + l]);
        w[64 + l] = select(w[64 + l], w[68 + l], w[68 + l] > w[64 + l]);
        w[128 + l] = select(w[128 + l], w[132 + l], w[132 + l] > w[128 + l]);
        w[192 + l] = select(w[192 + l], w[196 + l], w[196 + l] > w[192 + l]);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      if (l < 2) {
        w[0 + l] = select(w[0 + l], w[2 + l], w[2 + l] > w[0 + l]);
        w[64 + l] = select(w[64 + l], w[66 + l], w[66 + l] > w[64 + l]);
        w[128 + l] = select(w[128 + l], w[130 + l], w[130 + l] > w[128 + l]);
        w[192 + l] = select(w[192 + l], w[194 + l], w[194 + l] > w[192 + l]);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      if (l < 1) {
        w[0 + l] = select(w[0 + l], w[1 + l], w[1 + l] > w[0 + l]);
        w[64 + l] = select(w[64 + l], w[65 + l], w[65 + l] > w[64 + l]);
        w[128 + l] = select(w[128 + l], w[129 + l], w[129 + l] > w[128 + l]);
        w[192 + l] = select(w[192 + l], w[193 + l], w[193 + l] > w[192 + l]);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const float found0 = w[0];
      const float found1 = w[64];
      const float found2 = w[128];
      const float found3 = w[192];
      barrier(CLK_LOCAL_MEM_FENCE);
      const float most0 = select(top0, found0, found0 > top0);
      const float fade0 = ol_exp(top0 - most0);
      const float e0 = score0 == -INFINITY ? 0.0f : ol_exp(score0 - most0);
      top0 = most0; sum0 = sum0 * fade0 + e0;
      a0 *= fade0; w[0 + l] = e0;
      const float most1 = select(top1, found1, found1 > top1);
      const float fade1 = ol_exp(top1 - most1);
      const float e1 = score1 == -INFINITY ? 0.0f : ol_exp(score1 - most1);
      top1 = most1; sum1 = sum1 * fade1 + e1;
      a1 *= fade1; w[64 + l] = e1;
      const float most2 = select(top2, found2, found2 > top2);
      const float fade2 = ol_exp(top2 - most2);
      const float e2 = score2 == -INFINITY ? 0.0f : ol_exp(score2 - most2);
      top2 = most2; sum2 = sum2 * fade2 + e2;
      a2 *= fade2; w[128 + l] = e2;
      const float most3 = select(top3, found3, found3 > top3);
      const float fade3 = ol_exp(top3 - most3);
      const float e3 = score3 == -INFINITY ? 0.0f : ol_exp(score3 - most3);
      top3 = most3; sum3 = sum3 * fade3 + e3;
      a3 *= fade3; w[192 + l] = e3;
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = lane; i < count && lane < 16; i += 16) {
        const float4 value = *(__global const float4*)(v + (t + i) * 16 + d * 4);
        a0 = mad((float4)(w[0 + i]), value, a0);
        a1 = mad((float4)(w[64 + i]), value, a1);
        a2 = mad((float4)(w[128 + i]), value, a2);
        a3 = mad((float4)(w[192 + i]), value, a3);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    w[l] = sum0; shared[l] = a0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 32) {
      w[l] += w[l + 32];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 16) {
      w[l] += w[l + 16];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 8) {
      w[l] += w[l + 8];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 4) {
      w[l] += w[l + 4];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 2) {
      w[l] += w[l + 2];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 1) {
      w[l] += w[l + 1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 4) {
      for (int i = 1; i < 16; ++i) a0 += shared[l + i * 4];
      vstore4(a0 / w[0], 0, p4 + (s0 + 0) * 32 + d2 * 16 + l * 4);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    w[l] = sum1; shared[l] = a1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 32) {
      w[l] += w[l + 32];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 16) {
      w[l] += w[l + 16];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 8) {
      w[l] += w[l + 8];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 4) {
      w[l] += w[l + 4];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 2) {
      w[l] += w[l + 2];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 1) {
      w[l] += w[l + 1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 4) {
      for (int i = 1; i < 16; ++i) a1 += shared[l + i * 4];
      vstore4(a1 / w[0], 0, p4 + (s0 + 1) * 32 + d2 * 16 + l * 4);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    w[l] = sum2; shared[l] = a2;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 32) {
      w[l] += w[l + 32];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 16) {
      w[l] += w[l + 16];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 8) {
      w[l] += w[l + 8];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 4) {
      w[l] += w[l + 4];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 2) {
      w[l] += w[l + 2];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 1) {
      w[l] += w[l + 1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 4) {
      for (int i = 1; i < 16; ++i) a2 += shared[l + i * 4];
      vstore4(a2 / w[0], 0, p4 + (s0 + 2) * 32 + d2 * 16 + l * 4);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    w[l] = sum3; shared[l] = a3;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 32) {
      w[l] += w[l + 32];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 16) {
      w[l] += w[l + 16];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 8) {
      w[l] += w[l + 8];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 4) {
      w[l] += w[l + 4];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 2) {
      w[l] += w[l + 2];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 1) {
      w[l] += w[l + 1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 4) {
      for (int i = 1; i < 16; ++i) a3 += shared[l + i * 4];
      vstore4(a3 / w[0], 0, p4 + (s0 + 3) * 32 + d2 * 16 + l * 4);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
