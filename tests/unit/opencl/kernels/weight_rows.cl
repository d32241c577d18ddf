// GatherBlockQuantized(GatherBlockQuantized0.0, GatherBlockQuantized0.1, GatherBlockQuantized0.2)
//
// launch 0: weight_rows_b877ed1da9b0(arena[768, +24], weight 0, weight 1, arena[0, +768]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weight_rows_b877ed1da9b0(
    __global const long* p0,
    __global const int* p1,
    __global const float* p2,
    __global float* p3,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 6; u < min(id * 6 + 6, 6); ++u) {
    long pick = p0[0 + u / 2];
    pick += pick < 0 ? 40 : 0;
    if (pick < 0 || pick >= 40) { *wrong = 1; pick = 0; }
    const int row = (int)pick, b = u % 2, panel = row / 8;
    const int column = row - min(panel * 8, 32);
    const int at = (panel * 2 + b) * 8 + column;
    const float scale = p2[at];
    const float zero = 8.0f;
    __global const int* w = p1 + (size_t)(panel * 2 + b) * 32 + column;
    __global float* to = p3 + 0 + u * 32;
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 8; ++j) {
        to[i * 8 + j] = ((float)((w[i * 8] >> (j * 4)) & 15) - zero) * scale;
      }
    }
  }
}
