// Resize(Resize0.0, Resize0.2)
//
// launch 0: sample_5c6169eaac46(arena[18432, +4608], weight 0, weight 1, arena[0, +18432]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void sample_5c6169eaac46(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global float* p3)
{
  const int id = get_global_id(0);
  for (int u = id * 4608; u < min(id * 4608 + 4608, 4608); ++u) {
    const int d3 = u % 24;
    const int d2 = (u) / 24 % 24;
    const int d1 = ((u) / 24) / 24;
    float a = 0.0f;
    const int base = d1 * 144;
    for (int s0 = 0; s0 < 2; ++s0) {
      const int t0 = 1 + d2 * 2 + s0;
      for (int s1 = 0; s1 < 2; ++s1) {
        const int t1 = 49 + d3 * 2 + s1;
        a = mad(p0[(base + p1[t0] + p1[t1])], (float)(p2[t0] * p2[t1]), a);
      }
    }
    p3[d1 * 576 + d2 * 24 + d3] = a;
  }
}
