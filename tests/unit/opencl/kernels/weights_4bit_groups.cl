// MatMulNBits(MatMulNBits0.0, MatMulNBits0.1, MatMulNBits0.2)
//
// launch 0: weights4bit_4df0c527429a(arena[0, +512], weight 0, weight 1, arena[512, +320]), 64 work-items in groups of 64

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void weights4bit_4df0c527429a(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global float* p3)
{
  __local float4 shared[128];
  const int l = get_local_id(0);
  const int v = l % 2, slice = l / 2 % 2;
  const int asked = get_group_id(0) * 16 + l / 4;
  const int unit = min(asked, 4);
  const int u = unit % 5;
  const int m0 = min(unit / 5 * 2, 0);
  const int n0 = min(u * 8, 32);
  __global const int* w = p1 + (size_t)u * 64 + v * 4;
  __global const float* scales = p2 + u * 16 + v * 4;
  __global const float* x0 = p0 + 0 + (m0 + 0) * 64;
  __global const float* x1 = p0 + 0 + (m0 + 1) * 64;
  float4 t0_0 = (float4)(0.0f), t1_0 = (float4)(0.0f);
  for (int b = slice; b < 2; b += 2) {
    float4 a0_0 = (float4)(0.0f), a1_0 = (float4)(0.0f);
    const float4 scale = *(__global const float4*)(scales + b * 8);
    const float4 base = (float4)(8388616.0f);
    __global const int* wb = w + b * 32;
    #pragma unroll 4
    for (int i = 0; i < 4; ++i) {
      const int k = b * 32 + i * 8;
      const int4 held = *(__global const int4*)(wb + i * 8);
      const float4 f0 = as_float4((held & 15) | 0x4b000000) - base;
      const float4 f1 = as_float4(((held >> 4) & 15) | 0x4b000000) - base;
      const float4 f2 = as_float4(((held >> 8) & 15) | 0x4b000000) - base;
      const float4 f3 = as_float4(((held >> 12) & 15) | 0x4b000000) - base;
      const float4 f4 = as_float4(((held >> 16) & 15) | 0x4b000000) - base;
      const float4 f5 = as_float4(((held >> 20) & 15) | 0x4b000000) - base;
      const float4 f6 = as_float4(((held >> 24) & 15) | 0x4b000000) - base;
      const float4 f7 = as_float4(((held >> 28) & 15) | 0x4b000000) - base;
      {
        const float4 x = *(__global const float4*)(x0 + k);
        a0_0 = mad((float4)(x.x), f0, a0_0);
        a0_0 = mad((float4)(x.y), f1, a0_0);
        a0_0 = mad((float4)(x.z), f2, a0_0);
        a0_0 = mad((float4)(x.w), f3, a0_0);
      }
      {
        const float4 x = *(__global const float4*)(x0 + k + 4);
        a0_0 = mad((float4)(x.x), f4, a0_0);
        a0_0 = mad((float4)(x.y), f5, a0_0);
        a0_0 = mad((float4)(x.z), f6, a0_0);
        a0_0 = mad((float4)(x.w), f7, a0_0);
      }
      {
        const float4 x = *(__global const float4*)(x1 + k);
        a1_0 = mad((float4)(x.x), f0, a1_0);
        a1_0 = mad((float4)(x.y), f1, a1_0);
        a1_0 = mad((float4)(x.z), f2, a1_0);
        a1_0 = mad((float4)(x.w), f3, a1_0);
      }
      {
        const float4 x = *(__global const float4*)(x1 + k + 4);
        a1_0 = mad((float4)(x.x), f4, a1_0);
        a1_0 = mad((float4)(x.y), f5, a1_0);
        a1_0 = mad((float4)(x.z), f6, a1_0);
        a1_0 = mad((float4)(x.w), f7, a1_0);
      }
    }
    t0_0 = mad(scale, a0_0, t0_0);
    t1_0 = mad(scale, a1_0, t1_0);
  }
  shared[0 + l] = t0_0;
  shared[64 + l] = t1_0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (slice < 1) {
    shared[0 + l] += shared[0 + l + 2];
    shared[64 + l] += shared[64 + l + 2];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  t0_0 = shared[0 + l];
  t1_0 = shared[64 + l];
  if (asked < 5 && slice == 0) {
    vstore4(t0_0, 0, p3 + (m0 + 0) * 40 + (n0 + v * 4));
    vstore4(t1_0, 0, p3 + (m0 + 1) * 40 + (n0 + v * 4));
  }
}
