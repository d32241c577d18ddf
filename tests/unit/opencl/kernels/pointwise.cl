// Add(x, b)
// Relu(s)
//
// launch 0: pointwise_fec376f2c25e(arena[0, +12288], arena[24576, +192], arena[12288, +12288]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_fec376f2c25e(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    const int o0 = d0 * 48;
    const int o1 = d0 * 48;
    const int o2 = 0;
    const int end = 48;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = vload8(0, p0 + o1 + i);
      const float8 v1 = vload8(0, p1 + o2 + i);
      const float8 t1 = (v0 + v1);
      const float8 t0 = select((float8)(0.0f), t1, (t1 > (float8)(0.0f)) | isnan(t1));
      vstore8(t0, 0, p2 + o0 + i);
    }
  }
}
