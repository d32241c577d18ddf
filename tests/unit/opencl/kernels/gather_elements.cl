// GatherElements(GatherElements0.0, GatherElements0.1)
//
// launch 0: gatherelements_3352d075649b(arena[0, +12288], arena[12288, +1536], arena[13824, +768]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void gatherelements_3352d075649b(
    __global const float* p0,
    __global const long* p1,
    __global float* p2,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 192; u < min(id * 192 + 192, 192); ++u) {
    const int d1 = u % 48;
    const int d0 = (u) / 48;
    long pick = p1[d0 * 48 + d1];
    pick += pick < 0 ? 64 : 0;
    if (pick < 0 || pick >= 64) { *wrong = 1; pick = 0; }
    p2[d0 * 48 + d1] = p0[(int)pick * 48 + d1];
  }
}
