// Cast(Cast0.0)
//
// launch 0: cast_half_fd0fe94bb8d7(arena[0, +96], arena[128, +48]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void cast_half_fd0fe94bb8d7(
    __global const float* p0,
    __global half* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 3; u < min(id * 3 + 3, 3); ++u) {
    for (int i = u * 8; i < u * 8 + 8; i += 8) {
      vstore_half8_rte(vload8(0, p0 + 0 + i), 0, p1 + 0 + i);
    }
  }
}
