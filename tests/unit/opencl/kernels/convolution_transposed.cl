// ConvTranspose(ConvTranspose0.0, ConvTranspose0.1)
//
// launch 0: pointwise_d266c1f08225(arena[4608, +4608], arena[0, +4608]), 1 work-items in groups of 1
// launch 1: product1x1_8to4_6d12fffa5d72(arena[0, +4608], weight 0, arena[4608, +9216]), 1 work-items in groups of 1
// launch 2: product1x1_8to4_2551329a8b1b(arena[0, +4608], weight 0, arena[4608, +9216]), 1 work-items in groups of 1
// launch 3: product1x1_8to4_0e79b46e3b26(arena[0, +4608], weight 0, arena[4608, +9216]), 1 work-items in groups of 1
// launch 4: product1x1_8to4_cf6deb84340f(arena[0, +4608], weight 0, arena[4608, +9216]), 1 work-items in groups of 1
// launch 5: pointwise_a25fda2c385f(arena[4608, +9216], arena[13824, +9216]), 1 work-items in groups of 1

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
__kernel void product1x1_8to4_6d12fffa5d72(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 4, 0);
  __global const float* x = p0 + 0;
  __global const float* w = p1 + 0 + panel * 32;
  __global float* y = p2 + 0 + n0 * 1;
  for (int t = group * 12; t < min(group * 12 + 12, 12); ++t) {
    const int r0 = min((t) * 1, 11), c0 = 0;
    __global const float* xt = x + r0 * 96 + c0 * 8;
    float4 a0_0 = 0.0f;
    float4 a1_0 = 0.0f;
    float4 a2_0 = 0.0f;
    float4 a3_0 = 0.0f;
    float4 a4_0 = 0.0f;
    float4 a5_0 = 0.0f;
    float4 a6_0 = 0.0f;
    float4 a7_0 = 0.0f;
    float4 a8_0 = 0.0f;
    float4 a9_0 = 0.0f;
    float4 a10_0 = 0.0f;
    float4 a11_0 = 0.0f;
    __global const float* xp = xt;
    __global const float* wp = w;
    for (int k = 0; k < 8; k += 4) {
      const float4 w0_0 = vload4(0, wp + 0);
      const float x0_0 = xp[0];
      a0_0 = mad((float4)(x0_0), w0_0, a0_0);
      const float x0_1 = xp[8];
      a1_0 = mad((float4)(x0_1), w0_0, a1_0);
      const float x0_2 = xp[16];
      a2_0 = mad((float4)(x0_2), w0_0, a2_0);
      const float x0_3 = xp[24];
      a3_0 = mad((float4)(x0_3), w0_0, a3_0);
      const float x0_4 = xp[32];
      a4_0 = mad((float4)(x0_4), w0_0, a4_0);
      const float x0_5 = xp[40];
      a5_0 = mad((float4)(x0_5), w0_0, a5_0);
      const float x0_6 = xp[48];
      a6_0 = mad((float4)(x0_6), w0_0, a6_0);
      const float x0_7 = xp[56];
      a7_0 = mad((float4)(x0_7), w0_0, a7_0);
      const float x0_8 = xp[64];
      a8_0 = mad((float4)(x0_8), w0_0, a8_0);
      const float x0_9 = xp[72];
      a9_0 = mad((float4)(x0_9), w0_0, a9_0);
      const float x0_10 = xp[80];
      a10_0 = mad((float4)(x0_10), w0_0, a10_0);
      const float x0_11 = xp[88];
      a11_0 = mad((float4)(x0_11), w0_0, a11_0);
      const float4 w1_0 = vload4(0, wp + 4);
      const float x1_0 = xp[1];
      a0_0 = mad((float4)(x1_0), w1_0, a0_0);
      const float x1_1 = xp[9];
      a1_0 = mad((float4)(x1_1), w1_0, a1_0);
      const float x1_2 = xp[17];
      a2_0 = mad((float4)(x1_2), w1_0, a2_0);
      const float x1_3 = xp[25];
      a3_0 = mad((float4)(x1_3), w1_0, a3_0);
      const float x1_4 = xp[33];
      a4_0 = mad((float4)(x1_4), w1_0, a4_0);
      const float x1_5 = xp[41];
      a5_0 = mad((float4)(x1_5), w1_0, a5_0);
      const float x1_6 = xp[49];
      a6_0 = mad((float4)(x1_6), w1_0, a6_0);
      const float x1_7 = xp[57];
      a7_0 = mad((float4)(x1_7), w1_0, a7_0);
      const float x1_8 = xp[65];
      a8_0 = mad((float4)(x1_8), w1_0, a8_0);
      const float x1_9 = xp[73];
      a9_0 = mad((float4)(x1_9), w1_0, a9_0);
      const float x1_10 = xp[81];
      a10_0 = mad((float4)(x1_10), w1_0, a10_0);
      const float x1_11 = xp[89];
      a11_0 = mad((float4)(x1_11), w1_0, a11_0);
      const float4 w2_0 = vload4(0, wp + 8);
      const float x2_0 = xp[2];
      a0_0 = mad((float4)(x2_0), w2_0, a0_0);
      const float x2_1 = xp[10];
      a1_0 = mad((float4)(x2_1), w2_0, a1_0);
      const float x2_2 = xp[18];
      a2_0 = mad((float4)(x2_2), w2_0, a2_0);
      const float x2_3 = xp[26];
      a3_0 = mad((float4)(x2_3), w2_0, a3_0);
      const float x2_4 = xp[34];
      a4_0 = mad((float4)(x2_4), w2_0, a4_0);
      const float x2_5 = xp[42];
      a5_0 = mad((float4)(x2_5), w2_0, a5_0);
      const float x2_6 = xp[50];
      a6_0 = mad((float4)(x2_6), w2_0, a6_0);
      const float x2_7 = xp[58];
      a7_0 = mad((float4)(x2_7), w2_0, a7_0);
      const float x2_8 = xp[66];
      a8_0 = mad((float4)(x2_8), w2_0, a8_0);
      const float x2_9 = xp[74];
      a9_0 = mad((float4)(x2_9), w2_0, a9_0);
      const float x2_10 = xp[82];
      a10_0 = mad((float4)(x2_10), w2_0, a10_0);
      const float x2_11 = xp[90];
      a11_0 = mad((float4)(x2_11), w2_0, a11_0);
      const float4 w3_0 = vload4(0, wp + 12);
      const float x3_0 = xp[3];
      a0_0 = mad((float4)(x3_0), w3_0, a0_0);
      const float x3_1 = xp[11];
      a1_0 = mad((float4)(x3_1), w3_0, a1_0);
      const float x3_2 = xp[19];
      a2_0 = mad((float4)(x3_2), w3_0, a2_0);
      const float x3_3 = xp[27];
      a3_0 = mad((float4)(x3_3), w3_0, a3_0);
      const float x3_4 = xp[35];
      a4_0 = mad((float4)(x3_4), w3_0, a4_0);
      const float x3_5 = xp[43];
      a5_0 = mad((float4)(x3_5), w3_0, a5_0);
      const float x3_6 = xp[51];
      a6_0 = mad((float4)(x3_6), w3_0, a6_0);
      const float x3_7 = xp[59];
      a7_0 = mad((float4)(x3_7), w3_0, a7_0);
      const float x3_8 = xp[67];
      a8_0 = mad((float4)(x3_8), w3_0, a8_0);
      const float x3_9 = xp[75];
      a9_0 = mad((float4)(x3_9), w3_0, a9_0);
      const float x3_10 = xp[83];
      a10_0 = mad((float4)(x3_10), w3_0, a10_0);
      const float x3_11 = xp[91];
      a11_0 = mad((float4)(x3_11), w3_0, a11_0);
      xp += 4; wp += 16;
    }
    vstore4(a0_0, 0, y + r0 * 192 + c0 * 8 + 0);
    vstore4(a1_0, 0, y + r0 * 192 + c0 * 8 + 8);
    vstore4(a2_0, 0, y + r0 * 192 + c0 * 8 + 16);
    vstore4(a3_0, 0, y + r0 * 192 + c0 * 8 + 24);
    vstore4(a4_0, 0, y + r0 * 192 + c0 * 8 + 32);
    vstore4(a5_0, 0, y + r0 * 192 + c0 * 8 + 40);
    vstore4(a6_0, 0, y + r0 * 192 + c0 * 8 + 48);
    vstore4(a7_0, 0, y + r0 * 192 + c0 * 8 + 56);
    vstore4(a8_0, 0, y + r0 * 192 + c0 * 8 + 64);
    vstore4(a9_0, 0, y + r0 * 192 + c0 * 8 + 72);
    vstore4(a10_0, 0, y + r0 * 192 + c0 * 8 + 80);
    vstore4(a11_0, 0, y + r0 * 192 + c0 * 8 + 88);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void product1x1_8to4_2551329a8b1b(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 4, 0);
  __global const float* x = p0 + 0;
  __global const float* w = p1 + 0 + panel * 32;
  __global float* y = p2 + 4 + n0 * 1;
  for (int t = group * 12; t < min(group * 12 + 12, 12); ++t) {
    const int r0 = min((t) * 1, 11), c0 = 0;
    __global const float* xt = x + r0 * 96 + c0 * 8;
    float4 a0_0 = 0.0f;
    float4 a1_0 = 0.0f;
    float4 a2_0 = 0.0f;
    float4 a3_0 = 0.0f;
    float4 a4_0 = 0.0f;
    float4 a5_0 = 0.0f;
    float4 a6_0 = 0.0f;
    float4 a7_0 = 0.0f;
    float4 a8_0 = 0.0f;
    float4 a9_0 = 0.0f;
    float4 a10_0 = 0.0f;
    float4 a11_0 = 0.0f;
    __global const float* xp = xt;
    __global const float* wp = w;
    for (int k = 0; k < 8; k += 4) {
      const float4 w0_0 = vload4(0, wp + 0);
      const float x0_0 = xp[0];
      a0_0 = mad((float4)(x0_0), w0_0, a0_0);
      const float x0_1 = xp[8];
      a1_0 = mad((float4)(x0_1), w0_0, a1_0);
      const float x0_2 = xp[16];
      a2_0 = mad((float4)(x0_2), w0_0, a2_0);
      const float x0_3 = xp[24];
      a3_0 = mad((float4)(x0_3), w0_0, a3_0);
      const float x0_4 = xp[32];
      a4_0 = mad((float4)(x0_4), w0_0, a4_0);
      const float x0_5 = xp[40];
      a5_0 = mad((float4)(x0_5), w0_0, a5_0);
      const float x0_6 = xp[48];
      a6_0 = mad((float4)(x0_6), w0_0, a6_0);
      const float x0_7 = xp[56];
      a7_0 = mad((float4)(x0_7), w0_0, a7_0);
      const float x0_8 = xp[64];
      a8_0 = mad((float4)(x0_8), w0_0, a8_0);
      const float x0_9 = xp[72];
      a9_0 = mad((float4)(x0_9), w0_0, a9_0);
      const float x0_10 = xp[80];
      a10_0 = mad((float4)(x0_10), w0_0, a10_0);
      const float x0_11 = xp[88];
      a11_0 = mad((float4)(x0_11), w0_0, a11_0);
      const float4 w1_0 = vload4(0, wp + 4);
      const float x1_0 = xp[1];
      a0_0 = mad((float4)(x1_0), w1_0, a0_0);
      const float x1_1 = xp[9];
      a1_0 = mad((float4)(x1_1), w1_0, a1_0);
      const float x1_2 = xp[17];
      a2_0 = mad((float4)(x1_2), w1_0, a2_0);
      const float x1_3 = xp[25];
      a3_0 = mad((float4)(x1_3), w1_0, a3_0);
      const float x1_4 = xp[33];
      a4_0 = mad((float4)(x1_4), w1_0, a4_0);
      const float x1_5 = xp[41];
      a5_0 = mad((float4)(x1_5), w1_0, a5_0);
      const float x1_6 = xp[49];
      a6_0 = mad((float4)(x1_6), w1_0, a6_0);
      const float x1_7 = xp[57];
      a7_0 = mad((float4)(x1_7), w1_0, a7_0);
      const float x1_8 = xp[65];
      a8_0 = mad((float4)(x1_8), w1_0, a8_0);
      const float x1_9 = xp[73];
      a9_0 = mad((float4)(x1_9), w1_0, a9_0);
      const float x1_10 = xp[81];
      a10_0 = mad((float4)(x1_10), w1_0, a10_0);
      const float x1_11 = xp[89];
      a11_0 = mad((float4)(x1_11), w1_0, a11_0);
      const float4 w2_0 = vload4(0, wp + 8);
      const float x2_0 = xp[2];
      a0_0 = mad((float4)(x2_0), w2_0, a0_0);
      const float x2_1 = xp[10];
      a1_0 = mad((float4)(x2_1), w2_0, a1_0);
      const float x2_2 = xp[18];
      a2_0 = mad((float4)(x2_2), w2_0, a2_0);
      const float x2_3 = xp[26];
      a3_0 = mad((float4)(x2_3), w2_0, a3_0);
      const float x2_4 = xp[34];
      a4_0 = mad((float4)(x2_4), w2_0, a4_0);
      const float x2_5 = xp[42];
      a5_0 = mad((float4)(x2_5), w2_0, a5_0);
      const float x2_6 = xp[50];
      a6_0 = mad((float4)(x2_6), w2_0, a6_0);
      const float x2_7 = xp[58];
      a7_0 = mad((float4)(x2_7), w2_0, a7_0);
      const float x2_8 = xp[66];
      a8_0 = mad((float4)(x2_8), w2_0, a8_0);
      const float x2_9 = xp[74];
      a9_0 = mad((float4)(x2_9), w2_0, a9_0);
      const float x2_10 = xp[82];
      a10_0 = mad((float4)(x2_10), w2_0, a10_0);
      const float x2_11 = xp[90];
      a11_0 = mad((float4)(x2_11), w2_0, a11_0);
      const float4 w3_0 = vload4(0, wp + 12);
      const float x3_0 = xp[3];
      a0_0 = mad((float4)(x3_0), w3_0, a0_0);
      const float x3_1 = xp[11];
      a1_0 = mad((float4)(x3_1), w3_0, a1_0);
      const float x3_2 = xp[19];
      a2_0 = mad((float4)(x3_2), w3_0, a2_0);
      const float x3_3 = xp[27];
      a3_0 = mad((float4)(x3_3), w3_0, a3_0);
      const float x3_4 = xp[35];
      a4_0 = mad((float4)(x3_4), w3_0, a4_0);
      const float x3_5 = xp[43];
      a5_0 = mad((float4)(x3_5), w3_0, a5_0);
      const float x3_6 = xp[51];
      a6_0 = mad((float4)(x3_6), w3_0, a6_0);
      const float x3_7 = xp[59];
      a7_0 = mad((float4)(x3_7), w3_0, a7_0);
      const float x3_8 = xp[67];
      a8_0 = mad((float4)(x3_8), w3_0, a8_0);
      const float x3_9 = xp[75];
      a9_0 = mad((float4)(x3_9), w3_0, a9_0);
      const float x3_10 = xp[83];
      a10_0 = mad((float4)(x3_10), w3_0, a10_0);
      const float x3_11 = xp[91];
      a11_0 = mad((float4)(x3_11), w3_0, a11_0);
      xp += 4; wp += 16;
    }
    vstore4(a0_0, 0, y + r0 * 192 + c0 * 8 + 0);
    vstore4(a1_0, 0, y + r0 * 192 + c0 * 8 + 8);
    vstore4(a2_0, 0, y + r0 * 192 + c0 * 8 + 16);
    vstore4(a3_0, 0, y + r0 * 192 + c0 * 8 + 24);
    vstore4(a4_0, 0, y + r0 * 192 + c0 * 8 + 32);
    vstore4(a5_0, 0, y + r0 * 192 + c0 * 8 + 40);
    vstore4(a6_0, 0, y + r0 * 192 + c0 * 8 + 48);
    vstore4(a7_0, 0, y + r0 * 192 + c0 * 8 + 56);
    vstore4(a8_0, 0, y + r0 * 192 + c0 * 8 + 64);
    vstore4(a9_0, 0, y + r0 * 192 + c0 * 8 + 72);
    vstore4(a10_0, 0, y + r0 * 192 + c0 * 8 + 80);
    vstore4(a11_0, 0, y + r0 * 192 + c0 * 8 + 88);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void product1x1_8to4_0e79b46e3b26(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 4, 0);
  __global const float* x = p0 + 0;
  __global const float* w = p1 + 0 + panel * 32;
  __global float* y = p2 + 96 + n0 * 1;
  for (int t = group * 12; t < min(group * 12 + 12, 12); ++t) {
    const int r0 = min((t) * 1, 11), c0 = 0;
    __global const float* xt = x + r0 * 96 + c0 * 8;
    float4 a0_0 = 0.0f;
    float4 a1_0 = 0.0f;
    float4 a2_0 = 0.0f;
    float4 a3_0 = 0.0f;
    float4 a4_0 = 0.0f;
    float4 a5_0 = 0.0f;
    float4 a6_0 = 0.0f;
    float4 a7_0 = 0.0f;
    float4 a8_0 = 0.0f;
    float4 a9_0 = 0.0f;
    float4 a10_0 = 0.0f;
    float4 a11_0 = 0.0f;
    __global const float* xp = xt;
    __global const float* wp = w;
    for (int k = 0; k < 8; k += 4) {
      const float4 w0_0 = vload4(0, wp + 0);
      const float x0_0 = xp[0];
      a0_0 = mad((float4)(x0_0), w0_0, a0_0);
      const float x0_1 = xp[8];
      a1_0 = mad((float4)(x0_1), w0_0, a1_0);
      const float x0_2 = xp[16];
      a2_0 = mad((float4)(x0_2), w0_0, a2_0);
      const float x0_3 = xp[24];
      a3_0 = mad((float4)(x0_3), w0_0, a3_0);
      const float x0_4 = xp[32];
      a4_0 = mad((float4)(x0_4), w0_0, a4_0);
      const float x0_5 = xp[40];
      a5_0 = mad((float4)(x0_5), w0_0, a5_0);
      const float x0_6 = xp[48];
      a6_0 = mad((float4)(x0_6), w0_0, a6_0);
      const float x0_7 = xp[56];
      a7_0 = mad((float4)(x0_7), w0_0, a7_0);
      const float x0_8 = xp[64];
      a8_0 = mad((float4)(x0_8), w0_0, a8_0);
      const float x0_9 = xp[72];
      a9_0 = mad((float4)(x0_9), w0_0, a9_0);
      const float x0_10 = xp[80];
      a10_0 = mad((float4)(x0_10), w0_0, a10_0);
      const float x0_11 = xp[88];
      a11_0 = mad((float4)(x0_11), w0_0, a11_0);
      const float4 w1_0 = vload4(0, wp + 4);
      const float x1_0 = xp[1];
      a0_0 = mad((float4)(x1_0), w1_0, a0_0);
      const float x1_1 = xp[9];
      a1_0 = mad((float4)(x1_1), w1_0, a1_0);
      const float x1_2 = xp[17];
      a2_0 = mad((float4)(x1_2), w1_0, a2_0);
      const float x1_3 = xp[25];
      a3_0 = mad((float4)(x1_3), w1_0, a3_0);
      const float x1_4 = xp[33];
      a4_0 = mad((float4)(x1_4), w1_0, a4_0);
      const float x1_5 = xp[41];
      a5_0 = mad((float4)(x1_5), w1_0, a5_0);
      const float x1_6 = xp[49];
      a6_0 = mad((float4)(x1_6), w1_0, a6_0);
      const float x1_7 = xp[57];
      a7_0 = mad((float4)(x1_7), w1_0, a7_0);
      const float x1_8 = xp[65];
      a8_0 = mad((float4)(x1_8), w1_0, a8_0);
      const float x1_9 = xp[73];
      a9_0 = mad((float4)(x1_9), w1_0, a9_0);
      const float x1_10 = xp[81];
      a10_0 = mad((float4)(x1_10), w1_0, a10_0);
      const float x1_11 = xp[89];
      a11_0 = mad((float4)(x1_11), w1_0, a11_0);
      const float4 w2_0 = vload4(0, wp + 8);
      const float x2_0 = xp[2];
      a0_0 = mad((float4)(x2_0), w2_0, a0_0);
      const float x2_1 = xp[10];
      a1_0 = mad((float4)(x2_1), w2_0, a1_0);
      const float x2_2 = xp[18];
      a2_0 = mad((float4)(x2_2), w2_0, a2_0);
      const float x2_3 = xp[26];
      a3_0 = mad((float4)(x2_3), w2_0, a3_0);
      const float x2_4 = xp[34];
      a4_0 = mad((float4)(x2_4), w2_0, a4_0);
      const float x2_5 = xp[42];
      a5_0 = mad((float4)(x2_5), w2_0, a5_0);
      const float x2_6 = xp[50];
      a6_0 = mad((float4)(x2_6), w2_0, a6_0);
      const float x2_7 = xp[58];
      a7_0 = mad((float4)(x2_7), w2_0, a7_0);
      const float x2_8 = xp[66];
      a8_0 = mad((float4)(x2_8), w2_0, a8_0);
      const float x2_9 = xp[74];
      a9_0 = mad((float4)(x2_9), w2_0, a9_0);
      const float x2_10 = xp[82];
      a10_0 = mad((float4)(x2_10), w2_0, a10_0);
      const float x2_11 = xp[90];
      a11_0 = mad((float4)(x2_11), w2_0, a11_0);
      const float4 w3_0 = vload4(0, wp + 12);
      const float x3_0 = xp[3];
      a0_0 = mad((float4)(x3_0), w3_0, a0_0);
      const float x3_1 = xp[11];
      a1_0 = mad((float4)(x3_1), w3_0, a1_0);
      const float x3_2 = xp[19];
      a2_0 = mad((float4)(x3_2), w3_0, a2_0);
      const float x3_3 = xp[27];
      a3_0 = mad((float4)(x3_3), w3_0, a3_0);
      const float x3_4 = xp[35];
      a4_0 = mad((float4)(x3_4), w3_0, a4_0);
      const float x3_5 = xp[43];
      a5_0 = mad((float4)(x3_5), w3_0, a5_0);
      const float x3_6 = xp[51];
      a6_0 = mad((float4)(x3_6), w3_0, a6_0);
      const float x3_7 = xp[59];
      a7_0 = mad((float4)(x3_7), w3_0, a7_0);
      const float x3_8 = xp[67];
      a8_0 = mad((float4)(x3_8), w3_0, a8_0);
      const float x3_9 = xp[75];
      a9_0 = mad((float4)(x3_9), w3_0, a9_0);
      const float x3_10 = xp[83];
      a10_0 = mad((float4)(x3_10), w3_0, a10_0);
      const float x3_11 = xp[91];
      a11_0 = mad((float4)(x3_11), w3_0, a11_0);
      xp += 4; wp += 16;
    }
    vstore4(a0_0, 0, y + r0 * 192 + c0 * 8 + 0);
    vstore4(a1_0, 0, y + r0 * 192 + c0 * 8 + 8);
    vstore4(a2_0, 0, y + r0 * 192 + c0 * 8 + 16);
    vstore4(a3_0, 0, y + r0 * 192 + c0 * 8 + 24);
    vstore4(a4_0, 0, y + r0 * 192 + c0 * 8 + 32);
    vstore4(a5_0, 0, y + r0 * 192 + c0 * 8 + 40);
    vstore4(a6_0, 0, y + r0 * 192 + c0 * 8 + 48);
    vstore4(a7_0, 0, y + r0 * 192 + c0 * 8 + 56);
    vstore4(a8_0, 0, y + r0 * 192 + c0 * 8 + 64);
    vstore4(a9_0, 0, y + r0 * 192 + c0 * 8 + 72);
    vstore4(a10_0, 0, y + r0 * 192 + c0 * 8 + 80);
    vstore4(a11_0, 0, y + r0 * 192 + c0 * 8 + 88);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void product1x1_8to4_cf6deb84340f(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 4, 0);
  __global const float* x = p0 + 0;
  __global const float* w = p1 + 0 + panel * 32;
  __global float* y = p2 + 100 + n0 * 1;
  for (int t = group * 12; t < min(group * 12 + 12, 12); ++t) {
    const int r0 = min((t) * 1, 11), c0 = 0;
    __global const float* xt = x + r0 * 96 + c0 * 8;
    float4 a0_0 = 0.0f;
    float4 a1_0 = 0.0f;
    float4 a2_0 = 0.0f;
    float4 a3_0 = 0.0f;
    float4 a4_0 = 0.0f;
    float4 a5_0 = 0.0f;
    float4 a6_0 = 0.0f;
    float4 a7_0 = 0.0f;
    float4 a8_0 = 0.0f;
    float4 a9_0 = 0.0f;
    float4 a10_0 = 0.0f;
    float4 a11_0 = 0.0f;
    __global const float* xp = xt;
    __global const float* wp = w;
    for (int k = 0; k < 8; k += 4) {
      const float4 w0_0 = vload4(0, wp + 0);
      const float x0_0 = xp[0];
      a0_0 = mad((float4)(x0_0), w0_0, a0_0);
      const float x0_1 = xp[8];
      a1_0 = mad((float4)(x0_1), w0_0, a1_0);
      const float x0_2 = xp[16];
      a2_0 = mad((float4)(x0_2), w0_0, a2_0);
      const float x0_3 = xp[24];
      a3_0 = mad((float4)(x0_3), w0_0, a3_0);
      const float x0_4 = xp[32];
      a4_0 = mad((float4)(x0_4), w0_0, a4_0);
      const float x0_5 = xp[40];
      a5_0 = mad((float4)(x0_5), w0_0, a5_0);
      const float x0_6 = xp[48];
      a6_0 = mad((float4)(x0_6), w0_0, a6_0);
      const float x0_7 = xp[56];
      a7_0 = mad((float4)(x0_7), w0_0, a7_0);
      const float x0_8 = xp[64];
      a8_0 = mad((float4)(x0_8), w0_0, a8_0);
      const float x0_9 = xp[72];
      a9_0 = mad((float4)(x0_9), w0_0, a9_0);
      const float x0_10 = xp[80];
      a10_0 = mad((float4)(x0_10), w0_0, a10_0);
      const float x0_11 = xp[88];
      a11_0 = mad((float4)(x0_11), w0_0, a11_0);
      const float4 w1_0 = vload4(0, wp + 4);
      const float x1_0 = xp[1];
      a0_0 = mad((float4)(x1_0), w1_0, a0_0);
      const float x1_1 = xp[9];
      a1_0 = mad((float4)(x1_1), w1_0, a1_0);
      const float x1_2 = xp[17];
      a2_0 = mad((float4)(x1_2), w1_0, a2_0);
      const float x1_3 = xp[25];
      a3_0 = mad((float4)(x1_3), w1_0, a3_0);
      const float x1_4 = xp[33];
      a4_0 = mad((float4)(x1_4), w1_0, a4_0);
      const float x1_5 = xp[41];
      a5_0 = mad((float4)(x1_5), w1_0, a5_0);
      const float x1_6 = xp[49];
      a6_0 = mad((float4)(x1_6), w1_0, a6_0);
      const float x1_7 = xp[57];
      a7_0 = mad((float4)(x1_7), w1_0, a7_0);
      const float x1_8 = xp[65];
      a8_0 = mad((float4)(x1_8), w1_0, a8_0);
      const float x1_9 = xp[73];
      a9_0 = mad((float4)(x1_9), w1_0, a9_0);
      const float x1_10 = xp[81];
      a10_0 = mad((float4)(x1_10), w1_0, a10_0);
      const float x1_11 = xp[89];
      a11_0 = mad((float4)(x1_11), w1_0, a11_0);
      const float4 w2_0 = vload4(0, wp + 8);
      const float x2_0 = xp[2];
      a0_0 = mad((float4)(x2_0), w2_0, a0_0);
      const float x2_1 = xp[10];
      a1_0 = mad((float4)(x2_1), w2_0, a1_0);
      const float x2_2 = xp[18];
      a2_0 = mad((float4)(x2_2), w2_0, a2_0);
      const float x2_3 = xp[26];
      a3_0 = mad((float4)(x2_3), w2_0, a3_0);
      const float x2_4 = xp[34];
      a4_0 = mad((float4)(x2_4), w2_0, a4_0);
      const float x2_5 = xp[42];
      a5_0 = mad((float4)(x2_5), w2_0, a5_0);
      const float x2_6 = xp[50];
      a6_0 = mad((float4)(x2_6), w2_0, a6_0);
      const float x2_7 = xp[58];
      a7_0 = mad((float4)(x2_7), w2_0, a7_0);
      const float x2_8 = xp[66];
      a8_0 = mad((float4)(x2_8), w2_0, a8_0);
      const float x2_9 = xp[74];
      a9_0 = mad((float4)(x2_9), w2_0, a9_0);
      const float x2_10 = xp[82];
      a10_0 = mad((float4)(x2_10), w2_0, a10_0);
      const float x2_11 = xp[90];
      a11_0 = mad((float4)(x2_11), w2_0, a11_0);
      const float4 w3_0 = vload4(0, wp + 12);
      const float x3_0 = xp[3];
      a0_0 = mad((float4)(x3_0), w3_0, a0_0);
      const float x3_1 = xp[11];
      a1_0 = mad((float4)(x3_1), w3_0, a1_0);
      const float x3_2 = xp[19];
      a2_0 = mad((float4)(x3_2), w3_0, a2_0);
      const float x3_3 = xp[27];
      a3_0 = mad((float4)(x3_3), w3_0, a3_0);
      const float x3_4 = xp[35];
      a4_0 = mad((float4)(x3_4), w3_0, a4_0);
      const float x3_5 = xp[43];
      a5_0 = mad((float4)(x3_5), w3_0, a5_0);
      const float x3_6 = xp[51];
      a6_0 = mad((float4)(x3_6), w3_0, a6_0);
      const float x3_7 = xp[59];
      a7_0 = mad((float4)(x3_7), w3_0, a7_0);
      const float x3_8 = xp[67];
      a8_0 = mad((float4)(x3_8), w3_0, a8_0);
      const float x3_9 = xp[75];
      a9_0 = mad((float4)(x3_9), w3_0, a9_0);
      const float x3_10 = xp[83];
      a10_0 = mad((float4)(x3_10), w3_0, a10_0);
      const float x3_11 = xp[91];
      a11_0 = mad((float4)(x3_11), w3_0, a11_0);
      xp += 4; wp += 16;
    }
    vstore4(a0_0, 0, y + r0 * 192 + c0 * 8 + 0);
    vstore4(a1_0, 0, y + r0 * 192 + c0 * 8 + 8);
    vstore4(a2_0, 0, y + r0 * 192 + c0 * 8 + 16);
    vstore4(a3_0, 0, y + r0 * 192 + c0 * 8 + 24);
    vstore4(a4_0, 0, y + r0 * 192 + c0 * 8 + 32);
    vstore4(a5_0, 0, y + r0 * 192 + c0 * 8 + 40);
    vstore4(a6_0, 0, y + r0 * 192 + c0 * 8 + 48);
    vstore4(a7_0, 0, y + r0 * 192 + c0 * 8 + 56);
    vstore4(a8_0, 0, y + r0 * 192 + c0 * 8 + 64);
    vstore4(a9_0, 0, y + r0 * 192 + c0 * 8 + 72);
    vstore4(a10_0, 0, y + r0 * 192 + c0 * 8 + 80);
    vstore4(a11_0, 0, y + r0 * 192 + c0 * 8 + 88);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_a25fda2c385f(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 4; u < min(id * 4 + 4, 4); ++u) {
    const int d0 = u;
    const int o0 = d0 * 576;
    const int o1 = d0;
    const int end = 576;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = (float8)(p0[o1 + i * 4 + 0], p0[o1 + i * 4 + 4], p0[o1 + i * 4 + 8], p0[o1 + i * 4 + 12], p0[o1 + i * 4 + 16], p0[o1 + i * 4 + 20], p0[o1 + i * 4 + 24], p0[o1 + i * 4 + 28]);
      vstore8(v0, 0, p1 + o0 + i);
    }
  }
}
