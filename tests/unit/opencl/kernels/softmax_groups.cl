// Softmax(Softmax0.0)
//
// launch 0: softmax_0dd84f6ee562(arena[0, +12288], arena[12288, +12288]), 1024 work-items in groups of 64

__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void softmax_0dd84f6ee562(
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
  float top = -INFINITY, sum = 0.0f;
  for (int i = lane; i < 48; i += 16) {
    const float v = x[i * 1];
    top = select(top, v, v > top);
  }
  shared0[l] = top;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane < 8) {
    shared0[l] = select(shared0[l], shared0[l + 8], shared0[l + 8] > shared0[l]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane < 4) {
    shared0[l] = select(shared0[l], shared0[l + 4], shared0[l + 4] > shared0[l]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane < 2) {
    shared0[l] = select(shared0[l], shared0[l + 2], shared0[l + 2] > shared0[l]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane < 1) {
    shared0[l] = select(shared0[l], shared0[l + 1], shared0[l + 1] > shared0[l]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  top = shared0[l - lane * 1];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = lane; i < 48; i += 16) {
    sum += ol_exp_normal(x[i * 1] - top);
  }
  shared0[l] = sum;
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
  sum = shared0[l - lane * 1];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (asked < 64) {
    __global float* y = p1 + d0 * 48;
    const float scale = 1.0f / sum;
    for (int i = lane; i < 48; i += 16) {
      y[i * 1] = ol_exp_normal(x[i * 1] - top) * scale;
    }
  }
}
