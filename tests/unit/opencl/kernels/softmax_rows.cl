// Softmax(Softmax0.0)
//
// launch 0: softmax_70f5a8671359(arena[0, +12288], arena[12288, +12288]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void softmax_70f5a8671359(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    const int x0 = d0 * 48;
    const int y0 = d0 * 48;
    __global const float* x = p0 + x0;
    __global float* y = p1 + y0;
    float16 top0 = -INFINITY, top1 = -INFINITY;
    for (int i = 0; i < 32; i += 32) {
      { const float16 v = vload16(0, x + i); top0 = select(top0, v, v > top0); }
      { const float16 v = vload16(0, x + i + 16); top1 = select(top1, v, v > top1); }
    }
    { const float16 v = vload16(0, x + 32); top0 = select(top0, v, v > top0); }
    top0 = select(top0, top1, top1 > top0);
    const float8 top0_8 = select(top0.lo, top0.hi, top0.hi > top0.lo);
    const float4 top0_8_4 = select(top0_8.lo, top0_8.hi, top0_8.hi > top0_8.lo);
    const float2 top0_8_4_2 = select(top0_8_4.lo, top0_8_4.hi, top0_8_4.hi > top0_8_4.lo);
    const float top0_8_4_2_1 = select(top0_8_4_2.lo, top0_8_4_2.hi, top0_8_4_2.hi > top0_8_4_2.lo);
    float top = top0_8_4_2_1;
    float16 sum0 = 0.0f, sum1 = 0.0f;
    for (int i = 0; i < 32; i += 32) {
      { const float16 e = ol_exp_normal(vload16(0, x + i) - top); vstore16(e, 0, y + i); sum0 = sum0 + e; }
      { const float16 e = ol_exp_normal(vload16(0, x + i + 16) - top); vstore16(e, 0, y + i + 16); sum1 = sum1 + e; }
    }
    { const float16 e = ol_exp_normal(vload16(0, x + 32) - top); vstore16(e, 0, y + 32); sum0 = sum0 + e; }
    sum0 = sum0 + sum1;
    const float8 sum0_8 = sum0.lo + sum0.hi;
    const float4 sum0_8_4 = sum0_8.lo + sum0_8.hi;
    const float2 sum0_8_4_2 = sum0_8_4.lo + sum0_8_4.hi;
    const float sum0_8_4_2_1 = sum0_8_4_2.lo + sum0_8_4_2.hi;
    float sum = sum0_8_4_2_1;
    const float scale = 1.0f / sum;
    for (int i = 0; i < 48; i += 16) {
      const float16 r = vload16(0, y + i) * scale;
      vstore16(r, 0, y + i);
    }
  }
}
