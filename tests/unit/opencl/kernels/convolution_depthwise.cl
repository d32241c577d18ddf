// Conv(Conv0.0, Conv0.1)
//
// launch 0: pointwise_d266c1f08225(arena[4608, +4608], arena[0, +4608]), 1 work-items in groups of 1
// launch 1: convolution_b40d21156098(arena[0, +4608], weight 0, arena[4608, +3200]), 1 work-items in groups of 1
// launch 2: pointwise_80789a267962(arena[4608, +3200], arena[7808, +3200]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_d266c1f08225(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 144; u < min(id * 144 + 144, 144); ++u) {
    const int d0 = u;
    const int o0 = d0 * 8;
    const int o1 = d0;
    const int end = 8;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = (float8)(p0[o1 + i * 144 + 0], p0[o1 + i * 144 + 144], p0[o1 + i * 144 + 288], p0[o1 + i * 144 + 432], p0[o1 + i * 144 + 576], p0[o1 + i * 144 + 720], p0[o1 + i * 144 + 864], p0[o1 + i * 144 + 1008]);
      vstore8(v0, 0, p1 + o0 + i);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void convolution_b40d21156098(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  for (int u = id * 10; u < min(id * 10 + 10, 10); ++u) {
    const int d1 = u;
    __global const float* xr = p0 + d1 * 96;
    for (int i0 = 0; i0 < 1; ++i0) {
      for (int i1 = 0; i1 < 3; ++i1) {
        const int n0 = min(i0 * 8, 0);
        const int c0 = min(i1 * 4, 6);
        __global const float* xp = xr + c0 * 8 + n0 * 1;
        float8 a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
        const float8 w0 = vload8(0, p1 + n0 + 0);
        a0 = mad(vload8(0, xp + 0), w0, a0);
        a1 = mad(vload8(0, xp + 8), w0, a1);
        a2 = mad(vload8(0, xp + 16), w0, a2);
        a3 = mad(vload8(0, xp + 24), w0, a3);
        const float8 w1 = vload8(0, p1 + n0 + 8);
        a0 = mad(vload8(0, xp + 8), w1, a0);
        a1 = mad(vload8(0, xp + 16), w1, a1);
        a2 = mad(vload8(0, xp + 24), w1, a2);
        a3 = mad(vload8(0, xp + 32), w1, a3);
        const float8 w2 = vload8(0, p1 + n0 + 16);
        a0 = mad(vload8(0, xp + 16), w2, a0);
        a1 = mad(vload8(0, xp + 24), w2, a1);
        a2 = mad(vload8(0, xp + 32), w2, a2);
        a3 = mad(vload8(0, xp + 40), w2, a3);
        const float8 w3 = vload8(0, p1 + n0 + 24);
        a0 = mad(vload8(0, xp + 96), w3, a0);
        a1 = mad(vload8(0, xp + 104), w3, a1);
        a2 = mad(vload8(0, xp + 112), w3, a2);
        a3 = mad(vload8(0, xp + 120), w3, a3);
        const float8 w4 = vload8(0, p1 + n0 + 32);
        a0 = mad(vload8(0, xp + 104), w4, a0);
        a1 = mad(vload8(0, xp + 112), w4, a1);
        a2 = mad(vload8(0, xp + 120), w4, a2);
        a3 = mad(vload8(0, xp + 128), w4, a3);
        const float8 w5 = vload8(0, p1 + n0 + 40);
        a0 = mad(vload8(0, xp + 112), w5, a0);
        a1 = mad(vload8(0, xp + 120), w5, a1);
        a2 = mad(vload8(0, xp + 128), w5, a2);
        a3 = mad(vload8(0, xp + 136), w5, a3);
        const float8 w6 = vload8(0, p1 + n0 + 48);
        a0 = mad(vload8(0, xp + 192), w6, a0);
        a1 = mad(vload8(0, xp + 200), w6, a1);
        a2 = mad(vload8(0, xp + 208), w6, a2);
        a3 = mad(vload8(0, xp + 216), w6, a3);
        const float8 w7 = vload8(0, p1 + n0 + 56);
        a0 = mad(vload8(0, xp + 200), w7, a0);
        a1 = mad(vload8(0, xp + 208), w7, a1);
        a2 = mad(vload8(0, xp + 216), w7, a2);
        a3 = mad(vload8(0, xp + 224), w7, a3);
        const float8 w8 = vload8(0, p1 + n0 + 64);
        a0 = mad(vload8(0, xp + 208), w8, a0);
        a1 = mad(vload8(0, xp + 216), w8, a1);
        a2 = mad(vload8(0, xp + 224), w8, a2);
        a3 = mad(vload8(0, xp + 232), w8, a3);
        vstore8(a0, 0, p2 + d1 * 80 + c0 * 8 + n0);
        vstore8(a1, 0, p2 + d1 * 80 + c0 * 8 + n0 + 8);
        vstore8(a2, 0, p2 + d1 * 80 + c0 * 8 + n0 + 16);
        vstore8(a3, 0, p2 + d1 * 80 + c0 * 8 + n0 + 24);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_80789a267962(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 8; u < min(id * 8 + 8, 8); ++u) {
    const int d0 = u;
    const int o0 = d0 * 100;
    const int o1 = d0;
    const int end = 100;
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
