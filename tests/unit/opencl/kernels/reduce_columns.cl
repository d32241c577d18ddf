// ReduceMax(ReduceMax0.0, ReduceMax0.1)
//
// launch 0: reduce_ba1d9e15536e(arena[0, +12288], arena[12288, +192]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void reduce_ba1d9e15536e(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 6; u < min(id * 6 + 6, 6); ++u) {
    const int d0 = u;
    const int n0 = min(d0 * 8, 40);
    const int x0 = n0;
    const int y0 = n0;
    float8 a = (float8)(-INFINITY);
    for (int r0 = 0; r0 < 64; ++r0) {
      const float8 v = vload8(0, p0 + x0 + r0 * 48);
      a = select(v, a, (a > v) | isnan(a));
    }
    const float8 result = a;
    vstore8(result, 0, p1 + y0);
  }
}
