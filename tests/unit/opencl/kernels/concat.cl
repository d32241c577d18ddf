// Concat(Concat0.0, Concat0.1)
//
// launch 0: pointwise_ea3d728d8977(arena[24576, +12288], arena[0, +24576]), 1 work-items in groups of 1
// launch 1: pointwise_49aed87ba5db(arena[36864, +12288], arena[0, +24576]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void pointwise_ea3d728d8977(__global const float* p0, __global float* p1) {
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    const int o0 = d0 * 96;
    const int o1 = d0 * 48;
    const int end = min(0 * 4096 + 4096, 48);
    int i = 0 * 4096;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = vload8(0, p0 + o1 + i * 1);
      vstore8(v0, 0, p1 + o0 + i * 1);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void pointwise_49aed87ba5db(__global const float* p0, __global float* p1) {
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    const int o0 = d0 * 96 + 48;
    const int o1 = d0 * 48;
    const int end = min(0 * 4096 + 4096, 48);
    int i = 0 * 4096;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = vload8(0, p0 + o1 + i * 1);
      vstore8(v0, 0, p1 + o0 + i * 1);
    }
  }
}
