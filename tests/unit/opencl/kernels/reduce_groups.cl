// ReduceSum(ReduceSum0.0, ReduceSum0.1)
//
// launch 0: reduce_a8cacf889df9(arena[0, +12288], arena[12288, +256]), 1024 work-items in groups of 64

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void reduce_a8cacf889df9(
    __global const float* p0,
    __global float* p1)
{
  __local float shared0[64];
  const int l = get_local_id(0);
  const int lane = l % 16;
  const int asked = get_group_id(0) * 4 + l / 16;
  const int row = min(asked, 63);
  const int d0 = row;
  __global const float* x = p0 + d0 * 48;
  float a = 0;
  for (int i = lane; i < 48; i += 16) {
    const int r0 = i;
    const float v = x[r0];
    a = a + v;
  }
  shared0[l] = a;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane < 8) {
    shared0[l] = shared0[l] + shared0[l + 8];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane < 4) {
    shared0[l] = shared0[l] + shared0[l + 4];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane < 2) {
    shared0[l] = shared0[l] + shared0[l + 2];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane < 1) {
    shared0[l] = shared0[l] + shared0[l + 1];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  a = shared0[l - lane * 1];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (asked == row && lane == 0) {
    p1[d0] = a;
  }
}
