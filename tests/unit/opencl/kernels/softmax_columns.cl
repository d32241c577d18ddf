// Softmax(Softmax0.0)
//
// launch 0: softmax_3aff8416834f(arena[0, +12288], arena[12288, +12288]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void softmax_3aff8416834f(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 6; u < min(id * 6 + 6, 6); ++u) {
    const int d0 = u;
    const int n0 = min(d0 * 8, 40);
    const int x0 = n0;
    const int y0 = n0;
    float8 top = -INFINITY, sum = 0.0f;
    for (int i = 0; i < 64; ++i) {
      const float8 v = vload8(0, p0 + x0 + i * 48);
      top = select(top, v, v > top);
    }
    for (int i = 0; i < 64; ++i) {
      const float8 e = ol_exp_normal(vload8(0, p0 + x0 + i * 48) - top);
      sum += e;
      vstore8(e, 0, p1 + y0 + i * 48);
    }
    const float8 scale = 1.0f / sum;
    for (int i = 0; i < 64; ++i) {
      const float8 r = vload8(0, p1 + y0 + i * 48) * scale;
      vstore8(r, 0, p1 + y0 + i * 48);
    }
  }
}
