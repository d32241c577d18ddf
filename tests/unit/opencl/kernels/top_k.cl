// TopK(TopK0.0, TopK0.1)
//
// launch 0: topindices_19ecdad9a3bd(arena[0, +12288], arena[12288, +1536]), 1 work-items in groups of 1
// launch 1: gatherelements_83701cf439b0(arena[0, +12288], arena[12288, +1536], arena[13824, +768]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void topindices_19ecdad9a3bd(
    __global const float* p0,
    __global long* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    __global const float* x = p0 + d0 * 48;
    __global long* y = p1 + d0 * 3;
    int held = 0;
    for (int i = 0; i < 48; ++i) {
      const float v = x[i * 1];
      if (held == 3 && !(v > x[(int)y[2] * 1])) continue;
      int at = held < 3 ? held++ : 2;
      while (at > 0 && v > x[(int)y[(at - 1) * 1] * 1]) {
        y[at * 1] = y[(at - 1) * 1];
        --at;
      }
      y[at * 1] = i;
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void gatherelements_83701cf439b0(
    __global const float* p0,
    __global const long* p1,
    __global float* p2,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 192; u < min(id * 192 + 192, 192); ++u) {
    const int d1 = u % 3;
    const int d0 = (u) / 3;
    long pick = p1[d0 * 3 + d1];
    pick += pick < 0 ? 48 : 0;
    if (pick < 0 || pick >= 48) { *wrong = 1; pick = 0; }
    p2[d0 * 3 + d1] = p0[d0 * 48 + (int)pick];
  }
}
