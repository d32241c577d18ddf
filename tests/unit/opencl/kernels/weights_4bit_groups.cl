// MatMulNBits(MatMulNBits0.0, MatMulNBits0.1, MatMulNBits0.2)
//
// launch 0: weights4bit_258ff83db0ec(arena[0, +512], weight 0, weight 1, arena[512, +320]), 64 work-items in groups of 64

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void weights4bit_258ff83db0ec(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global float* p3)
{
  for (int unit = get_global_id(0); unit < 10; unit += 64) {
    const int u = unit / 2 % 5, v = unit % 2;
    const int tile = unit / 10;
    const int m0 = min(tile * 2, 0);
    const int n0 = min(u * 8, 32);
    __global const int* w = p1 + (size_t)u * 64 + v * 4;
    __global const float* scales = p2 + u * 16 + v * 4;
    float4 t0_0 = (float4)(0.0f), t1_0 = (float4)(0.0f);
    for (int b = 0; b < 2; ++b) {
      float4 a0_0 = (float4)(0.0f), a1_0 = (float4)(0.0f);
      float sum0 = 0.0f, sum1 = 0.0f;
      const int end = min(32, 64 - b * 32);
      for (int i = 0; i < 4; ++i) {
        const int4 held = vload4(0, w + 0);
        w += 8;
        for (int j = 0; j < 8 && i * 8 + j < end; ++j) {
          const int4 q = (held >> (j * 4)) & 15;
          const int k = b * 32 + i * 8 + j;
          const float4 f = convert_float4(q);
          const float x0 = p0[0 + (m0 + 0) * 64 + k];
          sum0 += x0; a0_0 += x0 * f;
          const float x1 = p0[0 + (m0 + 1) * 64 + k];
          sum1 += x1; a1_0 += x1 * f;
        }
      }
      t0_0 = mad(vload4(0, scales + b * 8 + 0), a0_0 - (float4)(8.0f) * sum0, t0_0);
      t1_0 = mad(vload4(0, scales + b * 8 + 0), a1_0 - (float4)(8.0f) * sum1, t1_0);
    }
    vstore4(t0_0, 0, p3 + (m0 + 0) * 40 + (n0 + v * 4));
    vstore4(t1_0, 0, p3 + (m0 + 1) * 40 + (n0 + v * 4));
  }
}
