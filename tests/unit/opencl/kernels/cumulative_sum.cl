// CumSum(CumSum0.0, CumSum0.1)
//
// launch 0: cumulative_2085491e1788(arena[0, +12288], arena[12288, +12288]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void cumulative_2085491e1788(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    __global const float* x = p0 + d0 * 48;
    __global float* y = p1 + d0 * 48;
    float a = 0;
    for (int k = 0; k < 48; ++k) {
      const int i = k;
      const float v = x[i * 1], next = a + v;
      y[i * 1] = next;
      a = next;
    }
  }
}
