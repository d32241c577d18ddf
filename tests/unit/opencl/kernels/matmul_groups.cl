// MatMul(MatMul0.0, MatMul0.1)
//
// launch 0: product1x1_48to32_c02fac5a793d(arena[0, +12288], weight 0, arena[12288, +8192]), 1024 work-items in groups of 64

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void product1x1_48to32_c02fac5a793d(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  __local float4 a_store[32];
  __local float4 b_store[256];
  __local float* const al = (__local float*)a_store;
  __local float* const bl = (__local float*)b_store;
  const int l = get_local_id(0), group = get_group_id(0);
  const int tx = l % 16, ty = l / 16;
  const int b2 = group;
  const int m0 = b2 * 4, n0 = 0 * 64;
  __global const float* x = p0 + 0;
  const int am0 = (l + 0) / 4, ak0 = (l + 0) % 4 * 4;
  const int ap0 = min(m0 + am0, 63);
  const int ax0 = ap0 * 48;
  __global const float* w = p1 + 0 + 0 * 3072;
  float4 s0_0 = 0.0f;
  float4 av0;
  float4 bv0, bv1, bv2, bv3;
  {
    if (l < 16) {
      av0 = *(__global const float4*)(x + ax0 + (0 + ak0));
    }
  }
  bv0 = *(__global const float4*)(w + (0) * 64 + (l + 0) * 4);
  bv1 = *(__global const float4*)(w + (0) * 64 + (l + 64) * 4);
  bv2 = *(__global const float4*)(w + (0) * 64 + (l + 128) * 4);
  bv3 = *(__global const float4*)(w + (0) * 64 + (l + 192) * 4);
  for (int k0 = 0; k0 < 48; k0 += 16) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 16) { al[(ak0 + 0) * 8 + am0] = av0.s0; al[(ak0 + 1) * 8 + am0] = av0.s1; al[(ak0 + 2) * 8 + am0] = av0.s2; al[(ak0 + 3) * 8 + am0] = av0.s3; }
    ((__local float4*)bl)[l + 0] = bv0;
    ((__local float4*)bl)[l + 64] = bv1;
    ((__local float4*)bl)[l + 128] = bv2;
    ((__local float4*)bl)[l + 192] = bv3;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (k0 + 16 < 48) {
      {
        if (l < 16) {
          av0 = *(__global const float4*)(x + ax0 + (k0 + 16 + ak0));
        }
      }
      bv0 = *(__global const float4*)(w + (k0 + 16) * 64 + (l + 0) * 4);
      bv1 = *(__global const float4*)(w + (k0 + 16) * 64 + (l + 64) * 4);
      bv2 = *(__global const float4*)(w + (k0 + 16) * 64 + (l + 128) * 4);
      bv3 = *(__global const float4*)(w + (k0 + 16) * 64 + (l + 192) * 4);
    }
    #pragma unroll 4
    for (int k = 0; k < 16; ++k) {
      __local const float* const ak = al + k * 8 + ty * 1;
      __local const float* const bk = bl + k * 64 + tx * 4;
      const float4 b0 = *(__local const float4*)(bk + 0);
      const float a0 = ak[0];
      s0_0 = mad((float4)(a0), b0, s0_0);
    }
  }
  const int n1 = n0 + tx * 4;
  if (n1 < 32) {
    {
      const int m = m0 + ty;
      vstore4(s0_0, 0, p2 + m * 32 + n1);
    }
  }
}
