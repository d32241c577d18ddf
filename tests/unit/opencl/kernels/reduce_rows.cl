// ReduceSum(ReduceSum0.0, ReduceSum0.1)
//
// launch 0: reduce_e55b69fefeeb(arena[0, +12288], arena[12288, +256]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void reduce_e55b69fefeeb(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    const int x0 = d0 * 48;
    const int y0 = d0;
    float a = 0;
    float8 av = (float8)(0);
    const int b = x0;
    int i = 0;
    for (; i + 8 <= 48; i += 8) {
      const float8 v = vload8(0, p0 + b + i);
      av = av + v;
    }
    for (; i < 48; ++i) {
      const float v = p0[b + i];
      a = a + v;
    }
    const float4 av_4 = av.lo + av.hi;
    const float2 av_4_2 = av_4.lo + av_4.hi;
    const float av_4_2_1 = av_4_2.lo + av_4_2.hi;
    a = a + av_4_2_1;
    p1[y0] = a;
  }
}
