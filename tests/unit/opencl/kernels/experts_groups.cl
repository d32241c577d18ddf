// QMoE(QMoE0.0, QMoE0.1, QMoE0.2, QMoE0.3, QMoE0.4, QMoE0.5, QMoE0.6)
//
// launch 0: topindices_8fc5783677b2(arena[0, +8], arena[384, +8]), 64 work-items in groups of 64
// launch 1: gatherelements_09f81280ecb0(arena[0, +8], arena[384, +8], arena[128, +4]), 64 work-items in groups of 64
// launch 2: softmax_5ea2771187b7(arena[128, +4], arena[512, +4]), 64 work-items in groups of 64
// launch 3: weights4bit_experts_c80c2c7c077b(arena[256, +128], weight 0, weight 1, weight 2, arena[384, +8], arena[0, +256]), 64 work-items in groups of 64
// launch 4: pointwise_4de26055387b(arena[0, +256], arena[0, +256], arena[256, +128]), 64 work-items in groups of 64
// launch 5: weights4bit_experts_8704f6e8c58f(arena[256, +128], weight 1, weight 2, arena[384, +8], arena[0, +128]), 64 work-items in groups of 64
// launch 6: pointwise_b311251650d1(arena[0, +128], arena[512, +4], arena[128, +128]), 64 work-items in groups of 64
// launch 7: reduce_83028e2878ba(arena[128, +128], arena[0, +128]), 64 work-items in groups of 64

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void topindices_8fc5783677b2(
    __global const float* p0,
    __global long* p1)
{
  for (int u = get_global_id(0); u < 1; u += 64) {
    __global const float* x = p0 + 0;
    __global long* y = p1 + 0;
    int held = 0;
    for (int i = 0; i < 2; ++i) {
      const float v = x[i * 1];
      if (held == 1 && !(v >= x[(int)y[0] * 1])) continue;
      int at = held < 1 ? held++ : 0;
      while (at > 0 && v >= x[(int)y[(at - 1) * 1] * 1]) {
        y[at * 1] = y[(at - 1) * 1];
        --at;
      }
      y[at * 1] = i;
    }
  }
}

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void gatherelements_09f81280ecb0(
    __global const float* p0,
    __global const long* p1,
    __global float* p2,
    __global int* wrong)
{
  for (int u = get_global_id(0); u < 1; u += 64) {
    long pick = p1[0];
    pick += pick < 0 ? 2 : 0;
    if (pick < 0 || pick >= 2) { *wrong = 1; pick = 0; }
    p2[0] = p0[(int)pick];
  }
}

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void softmax_5ea2771187b7(
    __global const float* p0,
    __global float* p1)
{
  const int l = get_local_id(0);
  const int lane = l % 1;
  const int asked = get_group_id(0) * 64 + l / 1;
  const int row = min(asked, 0);
  __global const float* x = p0 + 0;
  float top = -INFINITY, sum = 0.0f;
  for (int i = lane; i < 1; i += 1) {
    const float v = x[i * 1];
    top = select(top, v, v > top);
  }
  for (int i = lane; i < 1; i += 1) {
    sum += ol_exp_normal(x[i * 1] - top);
  }
  if (asked < 1) {
    __global float* y = p1 + 0;
    const float scale = 1.0f / sum;
    for (int i = lane; i < 1; i += 1) {
      y[i * 1] = ol_exp_normal(x[i * 1] - top) * scale;
    }
  }
}

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void weights4bit_experts_c80c2c7c077b(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global const float* p3,
    __global const long* p4,
    __global float* p5)
{
  for (int unit = get_global_id(0); unit < 16; unit += 64) {
    const int u = unit / 4 % 4, v = unit % 4;
    const int m = unit / 16;
    const int e = (int)p4[0 + m];
    const size_t panel = (size_t)e * 4 + u;
    const int n0 = min(u * 16, 48);
    __global const int* w = p1 + (size_t)panel * 64 + v * 4;
    __global const float* scales = p2 + panel * 32 + v * 4;
    __global const float* row = p0 + 0 + m * 32;
    float4 t0_0 = (float4)(0.0f);
    for (int b = 0; b < 2; ++b) {
      float4 a0_0 = (float4)(0.0f);
      float sum = 0.0f;
      const int end = min(16, 32 - b * 16);
      for (int i = 0; i < 2; ++i) {
        const int4 held = vload4(0, w + 0);
        w += 16;
        for (int j = 0; j < 8 && i * 8 + j < end; ++j) {
          const float x = row[b * 16 + i * 8 + j];
          sum += x;
          a0_0 += x * convert_float4((held >> (j * 4)) & 15);
        }
      }
      t0_0 = mad(vload4(0, scales + b * 16 + 0), a0_0 - (float4)(8.0f) * sum, t0_0);
    }
    vstore4(t0_0 + vload4(0, p3 + e * 64 + n0 + v * 4), 0, p5 + 0 + m * 64 + n0 + v * 4);
  }
}

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void pointwise_4de26055387b(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  for (int u = get_global_id(0); u < 8; u += 64) {
    const int d0 = u;
    const int o0 = d0 * 4;
    const int o1 = d0 * 4;
    const float4 v0 = *(__global const float4*)(p0 + o1);
    const int o2 = d0 * 4 + 32;
    const float4 v1 = *(__global const float4*)(p1 + o2);
    const float4 t3 = (v0 * (float4)(1.0f));
    const float4 t2 = ol_sigmoid(t3);
    const float4 t1 = (v0 * t2);
    const float4 t4 = (v1 + (float4)(0.0f));
    const float4 t0 = (t1 * t4);
    *(__global float4*)(p2 + o0) = t0;
  }
}

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void weights4bit_experts_8704f6e8c58f(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global const long* p3,
    __global float* p4)
{
  for (int unit = get_global_id(0); unit < 8; unit += 64) {
    const int u = unit / 4 % 2, v = unit % 4;
    const int m = unit / 8;
    const int e = (int)p3[0 + m];
    const size_t panel = (size_t)e * 2 + u;
    const int n0 = min(u * 16, 16);
    __global const int* w = p1 + (size_t)panel * 64 + v * 4;
    __global const float* scales = p2 + panel * 32 + v * 4;
    __global const float* row = p0 + 0 + m * 32;
    float4 t0_0 = (float4)(0.0f);
    for (int b = 0; b < 2; ++b) {
      float4 a0_0 = (float4)(0.0f);
      float sum = 0.0f;
      const int end = min(16, 32 - b * 16);
      for (int i = 0; i < 2; ++i) {
        const int4 held = vload4(0, w + 0);
        w += 16;
        for (int j = 0; j < 8 && i * 8 + j < end; ++j) {
          const float x = row[b * 16 + i * 8 + j];
          sum += x;
          a0_0 += x * convert_float4((held >> (j * 4)) & 15);
        }
      }
      t0_0 = mad(vload4(0, scales + b * 16 + 0), a0_0 - (float4)(8.0f) * sum, t0_0);
    }
    vstore4(t0_0, 0, p4 + 0 + m * 32 + n0 + v * 4);
  }
}

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void pointwise_b311251650d1(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  for (int u = get_global_id(0); u < 8; u += 64) {
    const int d0 = u;
    const int o0 = d0 * 4;
    const int o1 = d0 * 4;
    const float4 v0 = *(__global const float4*)(p0 + o1);
    const int o2 = 0;
    const float4 v1 = (float4)(p1[o2]);
    const int4 t1 = (v1 > (float4)(0.0f));
    const float4 t2 = (v0 * v1);
    const float4 t0 = select((float4)(0.0f), t2, t1);
    *(__global float4*)(p2 + o0) = t0;
  }
}

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void reduce_83028e2878ba(
    __global const float* p0,
    __global float* p1)
{
  const int l = get_local_id(0);
  const int lane = l / 64;
  const int asked = get_group_id(0) * 64 + l % 64;
  const int row = min(asked, 31);
  const int d1 = row;
  __global const float* x = p0 + d1;
  float a = 0;
  for (int i = lane; i < 1; i += 1) {
    const float v = x[0];
    a = a + v;
  }
  if (asked == row && lane == 0) {
    p1[d1] = a;
  }
}
