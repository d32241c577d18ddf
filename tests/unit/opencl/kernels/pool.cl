// MaxPool(MaxPool0.0)
//
// launch 0: pool_b7480e9fc278(arena[0, +4608], arena[4608, +1152]), 1 work-items in groups of 1
// launch 1: pointwise_b4e988b421fc(arena[4608, +1152], arena[0, +1152]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pool_b7480e9fc278(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 6; u < min(id * 6 + 6, 6); ++u) {
    const int d1 = u;
    const int h0 = max(d1 * 2 - 0, 0), h1 = min(d1 * 2 - 0 + 2, 12);
    for (int i0 = 0; i0 < 6; ++i0) {
      for (int i1 = 0; i1 < 1; ++i1) {
        const int w0 = max(i0 * 2 - 0, 0), w1 = min(i0 * 2 - 0 + 2, 12);
        const int n0 = min(i1 * 8, 0);
        float8 a = (float8)(-INFINITY);
        for (int i = h0; i < h1; i += 1) {
          for (int j = w0; j < w1; j += 1) {
            const float8 v = (float8)(p0[i * 12 + j + n0 * 144 + 0], p0[i * 12 + j + n0 * 144 + 144], p0[i * 12 + j + n0 * 144 + 288], p0[i * 12 + j + n0 * 144 + 432], p0[i * 12 + j + n0 * 144 + 576], p0[i * 12 + j + n0 * 144 + 720], p0[i * 12 + j + n0 * 144 + 864], p0[i * 12 + j + n0 * 144 + 1008]);
            a = select(v, a, (a > v) | isnan(a));
          }
        }
        vstore8(a, 0, p1 + d1 * 48 + i0 * 8 + n0);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_b4e988b421fc(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 8; u < min(id * 8 + 8, 8); ++u) {
    const int d0 = u;
    const int o0 = d0 * 36;
    const int o1 = d0;
    const int end = 36;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = (float8)(p0[o1 + i * 8 + 0], p0[o1 + i * 8 + 8], p0[o1 + i * 8 + 16], p0[o1 + i * 8 + 24], p0[o1 + i * 8 + 32], p0[o1 + i * 8 + 40], p0[o1 + i * 8 + 48], p0[o1 + i * 8 + 56]);
      vstore8(v0, 0, p1 + o0 + i);
    }
    for (; i < end; ++i) {
      const float v0 = p0[o1 + i * 8];
      p1[o0 + i] = v0;
    }
  }
}
