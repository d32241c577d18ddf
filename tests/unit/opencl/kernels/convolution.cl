// Conv(Conv0.0, Conv0.1)
//
// launch 0: pointwise_d266c1f08225(arena[4608, +4608], arena[0, +4608]), 1 work-items in groups of 1
// launch 1: product3x1_24to16_858befb28214(arena[0, +4608], weight 0, arena[4608, +1600]), 1 work-items in groups of 1
// launch 2: pointwise_a15a39d7f7f7(arena[4608, +1600], arena[6272, +1600]), 1 work-items in groups of 1

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
__kernel void product3x1_24to16_858befb28214(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 16, 0);
  __global const float* x = p0 + 0;
  __global const float* w = p1 + 0 + panel * 1152;
  __global float* y = p2 + 0 + n0 * 1;
  for (int t = group * 5; t < min(group * 5 + 5, 5); ++t) {
    const int r0 = min((t) * 1, 4), c0 = 0;
    __global const float* xt = x + r0 * 192 + c0 * 16;
    float8 a0_0 = 0.0f, a0_1 = 0.0f;
    float8 a1_0 = 0.0f, a1_1 = 0.0f;
    float8 a2_0 = 0.0f, a2_1 = 0.0f;
    float8 a3_0 = 0.0f, a3_1 = 0.0f;
    float8 a4_0 = 0.0f, a4_1 = 0.0f;
    for (int i = 0; i < 3; ++i) {
      __global const float* xp = xt + i * 96;
      __global const float* wp = w + i * 384;
      for (int k = 0; k < 24; k += 4) {
        const float8 w0_0 = vload8(0, wp + 0);
        const float8 w0_1 = vload8(0, wp + 8);
        const float x0_0 = xp[0];
        a0_0 = mad((float8)(x0_0), w0_0, a0_0);
        a0_1 = mad((float8)(x0_0), w0_1, a0_1);
        const float x0_1 = xp[16];
        a1_0 = mad((float8)(x0_1), w0_0, a1_0);
        a1_1 = mad((float8)(x0_1), w0_1, a1_1);
        const float x0_2 = xp[32];
        a2_0 = mad((float8)(x0_2), w0_0, a2_0);
        a2_1 = mad((float8)(x0_2), w0_1, a2_1);
        const float x0_3 = xp[48];
        a3_0 = mad((float8)(x0_3), w0_0, a3_0);
        a3_1 = mad((float8)(x0_3), w0_1, a3_1);
        const float x0_4 = xp[64];
        a4_0 = mad((float8)(x0_4), w0_0, a4_0);
        a4_1 = mad((float8)(x0_4), w0_1, a4_1);
        const float8 w1_0 = vload8(0, wp + 16);
        const float8 w1_1 = vload8(0, wp + 24);
        const float x1_0 = xp[1];
        a0_0 = mad((float8)(x1_0), w1_0, a0_0);
        a0_1 = mad((float8)(x1_0), w1_1, a0_1);
        const float x1_1 = xp[17];
        a1_0 = mad((float8)(x1_1), w1_0, a1_0);
        a1_1 = mad((float8)(x1_1), w1_1, a1_1);
        const float x1_2 = xp[33];
        a2_0 = mad((float8)(x1_2), w1_0, a2_0);
        a2_1 = mad((float8)(x1_2), w1_1, a2_1);
        const float x1_3 = xp[49];
        a3_0 = mad((float8)(x1_3), w1_0, a3_0);
        a3_1 = mad((float8)(x1_3), w1_1, a3_1);
        const float x1_4 = xp[65];
        a4_0 = mad((float8)(x1_4), w1_0, a4_0);
        a4_1 = mad((float8)(x1_4), w1_1, a4_1);
        const float8 w2_0 = vload8(0, wp + 32);
        const float8 w2_1 = vload8(0, wp + 40);
        const float x2_0 = xp[2];
        a0_0 = mad((float8)(x2_0), w2_0, a0_0);
        a0_1 = mad((float8)(x2_0), w2_1, a0_1);
        const float x2_1 = xp[18];
        a1_0 = mad((float8)(x2_1), w2_0, a1_0);
        a1_1 = mad((float8)(x2_1), w2_1, a1_1);
        const float x2_2 = xp[34];
        a2_0 = mad((float8)(x2_2), w2_0, a2_0);
        a2_1 = mad((float8)(x2_2), w2_1, a2_1);
        const float x2_3 = xp[50];
        a3_0 = mad((float8)(x2_3), w2_0, a3_0);
        a3_1 = mad((float8)(x2_3), w2_1, a3_1);
        const float x2_4 = xp[66];
        a4_0 = mad((float8)(x2_4), w2_0, a4_0);
        a4_1 = mad((float8)(x2_4), w2_1, a4_1);
        const float8 w3_0 = vload8(0, wp + 48);
        const float8 w3_1 = vload8(0, wp + 56);
        const float x3_0 = xp[3];
        a0_0 = mad((float8)(x3_0), w3_0, a0_0);
        a0_1 = mad((float8)(x3_0), w3_1, a0_1);
        const float x3_1 = xp[19];
        a1_0 = mad((float8)(x3_1), w3_0, a1_0);
        a1_1 = mad((float8)(x3_1), w3_1, a1_1);
        const float x3_2 = xp[35];
        a2_0 = mad((float8)(x3_2), w3_0, a2_0);
        a2_1 = mad((float8)(x3_2), w3_1, a2_1);
        const float x3_3 = xp[51];
        a3_0 = mad((float8)(x3_3), w3_0, a3_0);
        a3_1 = mad((float8)(x3_3), w3_1, a3_1);
        const float x3_4 = xp[67];
        a4_0 = mad((float8)(x3_4), w3_0, a4_0);
        a4_1 = mad((float8)(x3_4), w3_1, a4_1);
        xp += 4; wp += 64;
      }
    }
    vstore8(a0_0, 0, y + r0 * 80 + c0 * 16 + 0);
    vstore8(a0_1, 0, y + r0 * 80 + c0 * 16 + 8);
    vstore8(a1_0, 0, y + r0 * 80 + c0 * 16 + 16);
    vstore8(a1_1, 0, y + r0 * 80 + c0 * 16 + 24);
    vstore8(a2_0, 0, y + r0 * 80 + c0 * 16 + 32);
    vstore8(a2_1, 0, y + r0 * 80 + c0 * 16 + 40);
    vstore8(a3_0, 0, y + r0 * 80 + c0 * 16 + 48);
    vstore8(a3_1, 0, y + r0 * 80 + c0 * 16 + 56);
    vstore8(a4_0, 0, y + r0 * 80 + c0 * 16 + 64);
    vstore8(a4_1, 0, y + r0 * 80 + c0 * 16 + 72);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_a15a39d7f7f7(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 16; u < min(id * 16 + 16, 16); ++u) {
    const int d0 = u;
    const int o0 = d0 * 25;
    const int o1 = d0;
    const int end = 25;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = (float8)(p0[o1 + i * 16 + 0], p0[o1 + i * 16 + 16], p0[o1 + i * 16 + 32], p0[o1 + i * 16 + 48], p0[o1 + i * 16 + 64], p0[o1 + i * 16 + 80], p0[o1 + i * 16 + 96], p0[o1 + i * 16 + 112]);
      vstore8(v0, 0, p1 + o0 + i);
    }
    for (; i < end; ++i) {
      const float v0 = p0[o1 + i * 16];
      p1[o0 + i] = v0;
    }
  }
}
