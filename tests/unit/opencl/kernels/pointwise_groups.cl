// Add(x, b)
// Relu(s)
//
// launch 0: pointwise_e15a35d46b93(arena[0, +12288], arena[24576, +192], arena[12288, +12288]), 768 work-items in groups of 64

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void pointwise_e15a35d46b93(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  for (int u = get_global_id(0); u < 768; u += 768) {
    const int d1 = u % 12;
    const int d0 = (u) / 12;
    const int o0 = d0 * 48 + d1 * 4;
    const int o1 = d0 * 48 + d1 * 4;
    const float4 v0 = *(__global const float4*)(p0 + o1);
    const int o2 = d1 * 4;
    const float4 v1 = *(__global const float4*)(p1 + o2);
    const float4 t1 = (v0 + v1);
    const float4 t0 = select((float4)(0.0f), t1, (t1 > (float4)(0.0f)) | isnan(t1));
    *(__global float4*)(p2 + o0) = t0;
  }
}
