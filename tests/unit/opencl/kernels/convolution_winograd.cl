// Conv(Conv0.0, Conv0.1)
//
// launch 0: pointwise_74f271d20890(arena[173056, +147456], arena[0, +173056]), 4 work-items in groups of 1
// launch 1: convolution_6c8296db82cc(arena[0, +173056], arena[173056, +334080]), 1 work-items in groups of 1
// launch 2: winograd4_e93102859bf2(arena[173056, +334080], weight 0, arena[507136, +147456]), 8 work-items in groups of 1
// launch 3: pointwise_3b5b315764b3(arena[507136, +147456], arena[173056, +147456]), 4 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_74f271d20890(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 144; u < min(id * 144 + 144, 576); ++u) {
    const int d1 = u % 24;
    const int d0 = (u) / 24;
    const int o0 = d0 * 1664 + d1 * 64 + 1728;
    const int o1 = d0 * 24 + d1;
    const int end = 64;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = (float8)(p0[o1 + i * 576 + 0], p0[o1 + i * 576 + 576], p0[o1 + i * 576 + 1152], p0[o1 + i * 576 + 1728], p0[o1 + i * 576 + 2304], p0[o1 + i * 576 + 2880], p0[o1 + i * 576 + 3456], p0[o1 + i * 576 + 4032]);
      vstore8(v0, 0, p1 + o0 + i);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void convolution_6c8296db82cc(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 36; u < min(id * 36 + 36, 36); ++u) {
    const int g2 = u % 6;
    const int g1 = (u) / 6;
    const int r1 = g1 * 4, r0 = min(r1, 20);
    const int c1 = g2 * 4, c0 = min(c1, 20);
    __global float* yt = p1 + u * 64;
    __global const float* xt = p0 + r0 * 1664 + c0 * 64;
    for (int k = 0; k < 8; ++k) {
      const int n = min(k * 8, 56);
      float8 rows[36];
      #pragma unroll 1
      for (int j = 0; j < 6; ++j) {
        const float8 x0 = vload8(0, xt + n + 0 + j * 64);
        const float8 x1 = vload8(0, xt + n + 1664 + j * 64);
        const float8 x2 = vload8(0, xt + n + 3328 + j * 64);
        const float8 x3 = vload8(0, xt + n + 4992 + j * 64);
        const float8 x4 = vload8(0, xt + n + 6656 + j * 64);
        const float8 x5 = vload8(0, xt + n + 8320 + j * 64);
        const float8 d0 = x4 + x0 * 0.87890625f - x2 * 2.640625f;
        const float8 d1e = x4 - x2 * 2.25f, d1o = x3 * 0.625f - x1 * 1.40625f;
        const float8 d1 = d1e + d1o;
        const float8 d2 = d1e - d1o;
        const float8 d3e = x4 - x2 * 0.390625f, d3o = x3 * 1.5f - x1 * 0.5859375f;
        const float8 d3 = d3e + d3o;
        const float8 d4 = d3e - d3o;
        const float8 d5 = x5 + x1 * 0.87890625f - x3 * 2.640625f;
        rows[0 + j] = d0;
        rows[6 + j] = d1;
        rows[12 + j] = d2;
        rows[18 + j] = d3;
        rows[24 + j] = d4;
        rows[30 + j] = d5;
      }
      #pragma unroll 1
      for (int i = 0; i < 6; ++i) {
        const float8 v0 = rows[i * 6 + 4] + rows[i * 6 + 0] * 0.87890625f - rows[i * 6 + 2] * 2.640625f;
        const float8 v1e = rows[i * 6 + 4] - rows[i * 6 + 2] * 2.25f, v1o = rows[i * 6 + 3] * 0.625f - rows[i * 6 + 1] * 1.40625f;
        const float8 v1 = v1e + v1o;
        const float8 v2 = v1e - v1o;
        const float8 v3e = rows[i * 6 + 4] - rows[i * 6 + 2] * 0.390625f, v3o = rows[i * 6 + 3] * 1.5f - rows[i * 6 + 1] * 0.5859375f;
        const float8 v3 = v3e + v3o;
        const float8 v4 = v3e - v3o;
        const float8 v5 = rows[i * 6 + 5] + rows[i * 6 + 1] * 0.87890625f - rows[i * 6 + 3] * 2.640625f;
        vstore8(v0, 0, yt + n + i * 13920 + 0);
        vstore8(v1, 0, yt + n + i * 13920 + 2320);
        vstore8(v2, 0, yt + n + i * 13920 + 4640);
        vstore8(v3, 0, yt + n + i * 13920 + 6960);
        vstore8(v4, 0, yt + n + i * 13920 + 9280);
        vstore8(v5, 0, yt + n + i * 13920 + 11600);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void winograd4_e93102859bf2(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int panel = id / 2 % 4;
  const int block = id / 1 % 2;
  const int first = min(block * 18, 30);
  const int count = min(18, 36 - first);
  float products[10368];
  __global const float* v = p0 + first * 64;
  const int n0 = min(panel * 16, 48);
  for (int p = 0; p < 36; ++p) {
    __global const float* w = p1 + (panel * 36 + p) * 1024;
    for (int s = 0; s * 6 < count; ++s) {
      const int s0 = min(s * 6, count - 6);
      __global const float* xp = v + p * 2320 + s0 * 64;
      __global const float* wp = w;
      float8 a0_0 = 0.0f, a0_1 = 0.0f;
      float8 a1_0 = 0.0f, a1_1 = 0.0f;
      float8 a2_0 = 0.0f, a2_1 = 0.0f;
      float8 a3_0 = 0.0f, a3_1 = 0.0f;
      float8 a4_0 = 0.0f, a4_1 = 0.0f;
      float8 a5_0 = 0.0f, a5_1 = 0.0f;
      for (int k = 0; k < 64; k += 4) {
        const float8 w0_0 = vload8(0, wp + 0);
        const float8 w0_1 = vload8(0, wp + 8);
        const float x0_0 = xp[0];
        a0_0 = mad((float8)(x0_0), w0_0, a0_0);
        a0_1 = mad((float8)(x0_0), w0_1, a0_1);
        const float x0_1 = xp[64];
        a1_0 = mad((float8)(x0_1), w0_0, a1_0);
        a1_1 = mad((float8)(x0_1), w0_1, a1_1);
        const float x0_2 = xp[128];
        a2_0 = mad((float8)(x0_2), w0_0, a2_0);
        a2_1 = mad((float8)(x0_2), w0_1, a2_1);
        const float x0_3 = xp[192];
        a3_0 = mad((float8)(x0_3), w0_0, a3_0);
        a3_1 = mad((float8)(x0_3), w0_1, a3_1);
        const float x0_4 = xp[256];
        a4_0 = mad((float8)(x0_4), w0_0, a4_0);
        a4_1 = mad((float8)(x0_4), w0_1, a4_1);
        const float x0_5 = xp[320];
        a5_0 = mad((float8)(x0_5), w0_0, a5_0);
        a5_1 = mad((float8)(x0_5), w0_1, a5_1);
        const float8 w1_0 = vload8(0, wp + 16);
        const float8 w1_1 = vload8(0, wp + 24);
        const float x1_0 = xp[1];
        a0_0 = mad((float8)(x1_0), w1_0, a0_0);
        a0_1 = mad((float8)(x1_0), w1_1, a0_1);
        const float x1_1 = xp[65];
        a1_0 = mad((float8)(x1_1), w1_0, a1_0);
        a1_1 = mad((float8)(x1_1), w1_1, a1_1);
        const float x1_2 = xp[129];
        a2_0 = mad((float8)(x1_2), w1_0, a2_0);
        a2_1 = mad((float8)(x1_2), w1_1, a2_1);
        const float x1_3 = xp[193];
        a3_0 = mad((float8)(x1_3), w1_0, a3_0);
        a3_1 = mad((float8)(x1_3), w1_1, a3_1);
        const float x1_4 = xp[257];
        a4_0 = mad((float8)(x1_4), w1_0, a4_0);
        a4_1 = mad((float8)(x1_4), w1_1, a4_1);
        const float x1_5 = xp[321];
        a5_0 = mad((float8)(x1_5), w1_0, a5_0);
        a5_1 = mad((float8)(x1_5), w1_1, a5_1);
        const float8 w2_0 = vload8(0, wp + 32);
        const float8 w2_1 = vload8(0, wp + 40);
        const float x2_0 = xp[2];
        a0_0 = mad((float8)(x2_0), w2_0, a0_0);
        a0_1 = mad((float8)(x2_0), w2_1, a0_1);
        const float x2_1 = xp[66];
        a1_0 = mad((float8)(x2_1), w2_0, a1_0);
        a1_1 = mad((float8)(x2_1), w2_1, a1_1);
        const float x2_2 = xp[130];
        a2_0 = mad((float8)(x2_2), w2_0, a2_0);
        a2_1 = mad((float8)(x2_2), w2_1, a2_1);
        const float x2_3 = xp[194];
        a3_0 = mad((float8)(x2_3), w2_0, a3_0);
        a3_1 = mad((float8)(x2_3), w2_1, a3_1);
        const float x2_4 = xp[258];
        a4_0 = mad((float8)(x2_4), w2_0, a4_0);
        a4_1 = mad((float8)(x2_4), w2_1, a4_1);
        const float x2_5 = xp[322];
        a5_0 = mad((float8)(x2_5), w2_0, a5_0);
        a5_1 = mad((float8)(x2_5), w2_1, a5_1);
        const float8 w3_0 = vload8(0, wp + 48);
        const float8 w3_1 = vload8(0, wp + 56);
        const float x3_0 = xp[3];
        a0_0 = mad((float8)(x3_0), w3_0, a0_0);
        a0_1 = mad((float8)(x3_0), w3_1, a0_1);
        const float x3_1 = xp[67];
        a1_0 = mad((float8)(x3_1), w3_0, a1_0);
        a1_1 = mad((float8)(x3_1), w3_1, a1_1);
        const float x3_2 = xp[131];
        a2_0 = mad((float8)(x3_2), w3_0, a2_0);
        a2_1 = mad((float8)(x3_2), w3_1, a2_1);
        const float x3_3 = xp[195];
        a3_0 = mad((float8)(x3_3), w3_0, a3_0);
        a3_1 = mad((float8)(x3_3), w3_1, a3_1);
        const float x3_4 = xp[259];
        a4_0 = mad((float8)(x3_4), w3_0, a4_0);
        a4_1 = mad((float8)(x3_4), w3_1, a4_1);
        const float x3_5 = xp[323];
        a5_0 = mad((float8)(x3_5), w3_0, a5_0);
        a5_1 = mad((float8)(x3_5), w3_1, a5_1);
        xp += 4; wp += 64;
      }
      vstore8(a0_0, 0, products + ((s0 + 0) * 36 + p) * 16 + 0);
      vstore8(a0_1, 0, products + ((s0 + 0) * 36 + p) * 16 + 8);
      vstore8(a1_0, 0, products + ((s0 + 1) * 36 + p) * 16 + 0);
      vstore8(a1_1, 0, products + ((s0 + 1) * 36 + p) * 16 + 8);
      vstore8(a2_0, 0, products + ((s0 + 2) * 36 + p) * 16 + 0);
      vstore8(a2_1, 0, products + ((s0 + 2) * 36 + p) * 16 + 8);
      vstore8(a3_0, 0, products + ((s0 + 3) * 36 + p) * 16 + 0);
      vstore8(a3_1, 0, products + ((s0 + 3) * 36 + p) * 16 + 8);
      vstore8(a4_0, 0, products + ((s0 + 4) * 36 + p) * 16 + 0);
      vstore8(a4_1, 0, products + ((s0 + 4) * 36 + p) * 16 + 8);
      vstore8(a5_0, 0, products + ((s0 + 5) * 36 + p) * 16 + 0);
      vstore8(a5_1, 0, products + ((s0 + 5) * 36 + p) * 16 + 8);
    }
  }
  for (int t = 0; t < count; ++t) {
    const int number = first + t;
    const int g2 = number % 6;
    const int g1 = (number) / 6;
    const int r1 = g1 * 4, r0 = min(r1, 20);
    const int c1 = g2 * 4, c0 = min(c1, 20);
    for (int n = 0; n < 16; n += 8) {
      float8 rows[24];
      #pragma unroll 1
      for (int j = 0; j < 6; ++j) {
        const float8 m0 = vload8(0, products + (t * 36 + 0 + j) * 16 + n);
        const float8 m1 = vload8(0, products + (t * 36 + 6 + j) * 16 + n);
        const float8 m2 = vload8(0, products + (t * 36 + 12 + j) * 16 + n);
        const float8 m3 = vload8(0, products + (t * 36 + 18 + j) * 16 + n);
        const float8 m4 = vload8(0, products + (t * 36 + 24 + j) * 16 + n);
        const float8 m5 = vload8(0, products + (t * 36 + 30 + j) * 16 + n);
        const float8 ds1 = m1 + m2;
        const float8 dd1 = m1 - m2;
        const float8 ds3 = m3 + m4;
        const float8 dd3 = m3 - m4;
        const float8 d0 = m0 + ds1 + ds3;
        const float8 d1 = dd1 * 0.625f + dd3 * 1.5f;
        const float8 d2 = ds1 * 0.390625f + ds3 * 2.25f;
        const float8 d3 = m5 + dd1 * 0.24414062f + dd3 * 3.375f;
        rows[0 + j] = d0;
        rows[6 + j] = d1;
        rows[12 + j] = d2;
        rows[18 + j] = d3;
      }
      #pragma unroll 1
      for (int i = r1 - r0; i < 4; ++i) {
        const float8 ys1 = rows[i * 6 + 1] + rows[i * 6 + 2];
        const float8 yd1 = rows[i * 6 + 1] - rows[i * 6 + 2];
        const float8 ys3 = rows[i * 6 + 3] + rows[i * 6 + 4];
        const float8 yd3 = rows[i * 6 + 3] - rows[i * 6 + 4];
        const float8 y0 = rows[i * 6 + 0] + ys1 + ys3;
        const float8 y1 = yd1 * 0.625f + yd3 * 1.5f;
        const float8 y2 = ys1 * 0.390625f + ys3 * 2.25f;
        const float8 y3 = rows[i * 6 + 5] + yd1 * 0.24414062f + yd3 * 3.375f;
        vstore8(y0, 0, p2 + (r0 + i) * 1536 + c0 * 64 + (n0 + n) + 0);
        vstore8(y1, 0, p2 + (r0 + i) * 1536 + c0 * 64 + (n0 + n) + 64);
        vstore8(y2, 0, p2 + (r0 + i) * 1536 + c0 * 64 + (n0 + n) + 128);
        vstore8(y3, 0, p2 + (r0 + i) * 1536 + c0 * 64 + (n0 + n) + 192);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_3b5b315764b3(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 16; u < min(id * 16 + 16, 64); ++u) {
    const int d0 = u;
    const int o0 = d0 * 576;
    const int o1 = d0;
    const int end = 576;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = (float8)(p0[o1 + i * 64 + 0], p0[o1 + i * 64 + 64], p0[o1 + i * 64 + 128], p0[o1 + i * 64 + 192], p0[o1 + i * 64 + 256], p0[o1 + i * 64 + 320], p0[o1 + i * 64 + 384], p0[o1 + i * 64 + 448]);
      vstore8(v0, 0, p1 + o0 + i);
    }
  }
}
