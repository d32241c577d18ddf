// GatherND(GatherND0.0, GatherND0.1)
//
// launch 0: gathernd_5ab79eab1280(arena[0, +12288], arena[13056, +32], arena[12288, +768]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void gathernd_5ab79eab1280(
    __global const float* p0,
    __global const long* p1,
    __global float* p2,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 4; u < min(id * 4 + 4, 4); ++u) {
    const int d0 = u;
    long g0 = p1[d0 + 0];
    g0 += g0 < 0 ? 64 : 0;
    if (g0 < 0 || g0 >= 64) { *wrong = 1; g0 = 0; }
    const int x0 = (int)g0 * 48, y0 = d0 * 48;
    for (int i0 = 0; i0 < 48; ++i0) {
      p2[y0 + i0] = p0[x0 + i0];
    }
  }
}
