// Concat(Concat0.0, Concat0.1)
//
// launch 0: pointwise_6d55d7c7000d(arena[24576, +12288], arena[0, +24576]), 1 work-items in groups of 1
// launch 1: pointwise_55b58aab7042(arena[36864, +12288], arena[0, +24576]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_6d55d7c7000d(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    const int o0 = d0 * 96;
    const int o1 = d0 * 48;
    const int end = 48;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = vload8(0, p0 + o1 + i);
      vstore8(v0, 0, p1 + o0 + i);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_55b58aab7042(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    const int o0 = d0 * 96 + 48;
    const int o1 = d0 * 48;
    const int end = 48;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = vload8(0, p0 + o1 + i);
      vstore8(v0, 0, p1 + o0 + i);
    }
  }
}
