// Gather(Gather0.0, Gather0.1)
//
// launch 0: gather_be11f6ab26e1(arena[0, +12288], arena[13312, +40], arena[12288, +960]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void gather_be11f6ab26e1(
    __global const float* p0,
    __global const long* p1,
    __global float* p2,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 5; u < min(id * 5 + 5, 5); ++u) {
    const int d0 = u;
    long pick = p1[d0];
    pick += pick < 0 ? 64 : 0;
    if (pick < 0 || pick >= 64) { *wrong = 1; pick = 0; }
    const int x0 = (int)pick * 48, y0 = d0 * 48;
    for (int i0 = 0; i0 < 48; ++i0) {
      p2[y0 + i0] = p0[x0 + i0];
    }
  }
}
