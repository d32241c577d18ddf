// ScatterND(ScatterND0.0, ScatterND0.1, ScatterND0.2)
//
// launch 0: scatternd_124acc0b5bc1(arena[0, +12288], arena[12288, +12288]), 1 work-items in groups of 1
// launch 1: scatternd_4a5e5011b10b(arena[25344, +32], arena[24576, +768], arena[12288, +12288]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void scatternd_124acc0b5bc1(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  const int u = id;
  const int o0 = 0;
  const int o1 = 0;
  const int end = 3072;
  int i = 0;
  for (; i + 8 <= end; i += 8) {
    const float8 v0 = vload8(0, p0 + o1 + i);
    vstore8(v0, 0, p1 + o0 + i);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void scatternd_4a5e5011b10b(
    __global const long* p0,
    __global const float* p1,
    __global float* p2,
    __global int* wrong)
{
  for (int u = 0; u < 4; ++u) {
    const int d0 = u;
    long g0 = p0[d0 + 0];
    g0 += g0 < 0 ? 64 : 0;
    if (g0 < 0 || g0 >= 64) { *wrong = 1; g0 = 0; }
    const int y0 = (int)g0 * 48;
    const int x0 = d0 * 48;
    const int id = get_global_id(0);
    for (int e = id * 48; e < min(id * 48 + 48, 48); ++e) {
      const int e0 = e;
      p2[y0 + e0] = p1[x0 + e0];
    }
  }
}
