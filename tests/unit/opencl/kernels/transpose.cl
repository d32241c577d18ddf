// Transpose(Transpose0.0)
//
// launch 0: pointwise_5e46c811f752(arena[0, +12288], arena[12288, +12288]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_5e46c811f752(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 48; u < min(id * 48 + 48, 48); ++u) {
    const int d0 = u;
    const int o0 = d0 * 64;
    const int o1 = d0;
    const int end = 64;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = (float8)(p0[o1 + i * 48 + 0], p0[o1 + i * 48 + 48], p0[o1 + i * 48 + 96], p0[o1 + i * 48 + 144], p0[o1 + i * 48 + 192], p0[o1 + i * 48 + 240], p0[o1 + i * 48 + 288], p0[o1 + i * 48 + 336]);
      vstore8(v0, 0, p1 + o0 + i);
    }
  }
}
