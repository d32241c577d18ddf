// Pad(Pad0.0, Pad0.1)
//
// launch 0: fill_0560ebe2f673(arena[13056, +12288], arena[0, +13056]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void fill_0560ebe2f673(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    for (int i0 = 0; i0 < 51; ++i0) {
      p1[d0 * 51 + i0] = (i0 >= 2 && i0 < 50) ? p0[d0 * 48 + (i0 - 2)] : (float)(0.0f);
    }
  }
}
