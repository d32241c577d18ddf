// Gemm(Gemm0.0, Gemm0.1, Gemm0.2)
//
// launch 0: product1x1_48to32_154dcbf562d7(arena[0, +12288], weight 0, weight 1, arena[12288, +8192]), 2 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void product1x1_48to32_154dcbf562d7(
    __global const float* p0,
    __global const float* p1,
    __global const float* p2,
    __global float* p3)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 16, 16);
  __global const float* x = p0 + 0;
  __global const float* w = p1 + 0 + panel * 768;
  __global float* y = p3 + 0 + n0 * 1;
  const float8 h1_0 = vload8(0, p2 + 0 + n0 * 1 + 0);
  const float8 h1_1 = vload8(0, p2 + 0 + n0 * 1 + 8);
  for (int t = group * 11; t < min(group * 11 + 11, 11); ++t) {
    const int r0 = 0, c0 = min((t) * 6, 58);
    __global const float* xt = x + r0 * 0 + c0 * 48;
    float8 a0_0 = 0.0f, a0_1 = 0.0f;
    float8 a1_0 = 0.0f, a1_1 = 0.0f;
    float8 a2_0 = 0.0f, a2_1 = 0.0f;
    float8 a3_0 = 0.0f, a3_1 = 0.0f;
    float8 a4_0 = 0.0f, a4_1 = 0.0f;
    float8 a5_0 = 0.0f, a5_1 = 0.0f;
    __global const float* xp = xt;
    __global const float* wp = w;
    for (int k = 0; k < 48; k += 4) {
      const float8 w0_0 = vload8(0, wp + 0);
      const float8 w0_1 = vload8(0, wp + 8);
      const float x0_0 = xp[0];
      a0_0 = mad((float8)(x0_0), w0_0, a0_0);
      a0_1 = mad((float8)(x0_0), w0_1, a0_1);
      const float x0_1 = xp[48];
      a1_0 = mad((float8)(x0_1), w0_0, a1_0);
      a1_1 = mad((float8)(x0_1), w0_1, a1_1);
      const float x0_2 = xp[96];
      a2_0 = mad((float8)(x0_2), w0_0, a2_0);
      a2_1 = mad((float8)(x0_2), w0_1, a2_1);
      const float x0_3 = xp[144];
      a3_0 = mad((float8)(x0_3), w0_0, a3_0);
      a3_1 = mad((float8)(x0_3), w0_1, a3_1);
      const float x0_4 = xp[192];
      a4_0 = mad((float8)(x0_4), w0_0, a4_0);
      a4_1 = mad((float8)(x0_4), w0_1, a4_1);
      const float x0_5 = xp[240];
      a5_0 = mad((float8)(x0_5), w0_0, a5_0);
      a5_1 = mad((float8)(x0_5), w0_1, a5_1);
      const float8 w1_0 = vload8(0, wp + 16);
      const float8 w1_1 = vload8(0, wp + 24);
      const float x1_0 = xp[1];
      a0_0 = mad((float8)(x1_0), w1_0, a0_0);
      a0_1 = mad((float8)(x1_0), w1_1, a0_1);
      const float x1_1 = xp[49];
      a1_0 = mad((float8)(x1_1), w1_0, a1_0);
      a1_1 = mad((float8)(x1_1), w1_1, a1_1);
      const float x1_2 = xp[97];
      a2_0 = mad((float8)(x1_2), w1_0, a2_0);
      a2_1 = mad((float8)(x1_2), w1_1, a2_1);
      const float x1_3 = xp[145];
      a3_0 = mad((float8)(x1_3), w1_0, a3_0);
      a3_1 = mad((float8)(x1_3), w1_1, a3_1);
      const float x1_4 = xp[193];
      a4_0 = mad((float8)(x1_4), w1_0, a4_0);
      a4_1 = mad((float8)(x1_4), w1_1, a4_1);
      const float x1_5 = xp[241];
      a5_0 = mad((float8)(x1_5), w1_0, a5_0);
      a5_1 = mad((float8)(x1_5), w1_1, a5_1);
      const float8 w2_0 = vload8(0, wp + 32);
      const float8 w2_1 = vload8(0, wp + 40);
      const float x2_0 = xp[2];
      a0_0 = mad((float8)(x2_0), w2_0, a0_0);
      a0_1 = mad((float8)(x2_0), w2_1, a0_1);
      const float x2_1 = xp[50];
      a1_0 = mad((float8)(x2_1), w2_0, a1_0);
      a1_1 = mad((float8)(x2_1), w2_1, a1_1);
      const float x2_2 = xp[98];
      a2_0 = mad((float8)(x2_2), w2_0, a2_0);
      a2_1 = mad((float8)(x2_2), w2_1, a2_1);
      const float x2_3 = xp[146];
      a3_0 = mad((float8)(x2_3), w2_0, a3_0);
      a3_1 = mad((float8)(x2_3), w2_1, a3_1);
      const float x2_4 = xp[194];
      a4_0 = mad((float8)(x2_4), w2_0, a4_0);
      a4_1 = mad((float8)(x2_4), w2_1, a4_1);
      const float x2_5 = xp[242];
      a5_0 = mad((float8)(x2_5), w2_0, a5_0);
      a5_1 = mad((float8)(x2_5), w2_1, a5_1);
      const float8 w3_0 = vload8(0, wp + 48);
      const float8 w3_1 = vload8(0, wp + 56);
      const float x3_0 = xp[3];
      a0_0 = mad((float8)(x3_0), w3_0, a0_0);
      a0_1 = mad((float8)(x3_0), w3_1, a0_1);
      const float x3_1 = xp[51];
      a1_0 = mad((float8)(x3_1), w3_0, a1_0);
      a1_1 = mad((float8)(x3_1), w3_1, a1_1);
      const float x3_2 = xp[99];
      a2_0 = mad((float8)(x3_2), w3_0, a2_0);
      a2_1 = mad((float8)(x3_2), w3_1, a2_1);
      const float x3_3 = xp[147];
      a3_0 = mad((float8)(x3_3), w3_0, a3_0);
      a3_1 = mad((float8)(x3_3), w3_1, a3_1);
      const float x3_4 = xp[195];
      a4_0 = mad((float8)(x3_4), w3_0, a4_0);
      a4_1 = mad((float8)(x3_4), w3_1, a4_1);
      const float x3_5 = xp[243];
      a5_0 = mad((float8)(x3_5), w3_0, a5_0);
      a5_1 = mad((float8)(x3_5), w3_1, a5_1);
      xp += 4; wp += 64;
    }
    const float8 q0_0_t0 = (a0_0 + h1_0);
    vstore8(q0_0_t0, 0, y + r0 * 0 + c0 * 32 + 0);
    const float8 q0_1_t0 = (a0_1 + h1_1);
    vstore8(q0_1_t0, 0, y + r0 * 0 + c0 * 32 + 8);
    const float8 q1_0_t0 = (a1_0 + h1_0);
    vstore8(q1_0_t0, 0, y + r0 * 0 + c0 * 32 + 32);
    const float8 q1_1_t0 = (a1_1 + h1_1);
    vstore8(q1_1_t0, 0, y + r0 * 0 + c0 * 32 + 40);
    const float8 q2_0_t0 = (a2_0 + h1_0);
    vstore8(q2_0_t0, 0, y + r0 * 0 + c0 * 32 + 64);
    const float8 q2_1_t0 = (a2_1 + h1_1);
    vstore8(q2_1_t0, 0, y + r0 * 0 + c0 * 32 + 72);
    const float8 q3_0_t0 = (a3_0 + h1_0);
    vstore8(q3_0_t0, 0, y + r0 * 0 + c0 * 32 + 96);
    const float8 q3_1_t0 = (a3_1 + h1_1);
    vstore8(q3_1_t0, 0, y + r0 * 0 + c0 * 32 + 104);
    const float8 q4_0_t0 = (a4_0 + h1_0);
    vstore8(q4_0_t0, 0, y + r0 * 0 + c0 * 32 + 128);
    const float8 q4_1_t0 = (a4_1 + h1_1);
    vstore8(q4_1_t0, 0, y + r0 * 0 + c0 * 32 + 136);
    const float8 q5_0_t0 = (a5_0 + h1_0);
    vstore8(q5_0_t0, 0, y + r0 * 0 + c0 * 32 + 160);
    const float8 q5_1_t0 = (a5_1 + h1_1);
    vstore8(q5_1_t0, 0, y + r0 * 0 + c0 * 32 + 168);
  }
}
