// LSTM(LSTM0.0, LSTM0.1, LSTM0.2)
//
// launch 0: product1x1_8to64_558e0114b2c7(arena[2560, +320], weight 0, arena[0, +2560]), 4 work-items in groups of 1
// launch 1: pointwise_6a308d05c8e3(arena[0, +2560], weight 1, arena[2560, +2560]), 1 work-items in groups of 1
// launch 2: recurrence_e3b37883ee5e(arena[2560, +2560], weight 2, weight 2, arena[0, +896]), 2 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void product1x1_8to64_558e0114b2c7(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 16, 48);
  __global const float* x = p0 + 0;
  __global const float* w = p1 + 0 + panel * 128;
  __global float* y = p2 + 0 + n0 * 1;
  for (int t = group * 2; t < min(group * 2 + 2, 2); ++t) {
    const int r0 = 0, c0 = min((t) * 5, 5);
    __global const float* xt = x + r0 * 0 + c0 * 8;
    float8 a0_0 = 0.0f, a0_1 = 0.0f;
    float8 a1_0 = 0.0f, a1_1 = 0.0f;
    float8 a2_0 = 0.0f, a2_1 = 0.0f;
    float8 a3_0 = 0.0f, a3_1 = 0.0f;
    float8 a4_0 = 0.0f, a4_1 = 0.0f;
    __global const float* xp = xt;
    __global const float* wp = w;
    for (int k = 0; k < 8; k += 4) {
      const float8 w0_0 = vload8(0, wp + 0);
      const float8 w0_1 = vload8(0, wp + 8);
      const float x0_0 = xp[0];
      a0_0 = mad((float8)(x0_0), w0_0, a0_0);
      a0_1 = mad((float8)(x0_0), w0_1, a0_1);
      const float x0_1 = xp[8];
      a1_0 = mad((float8)(x0_1), w0_0, a1_0);
      a1_1 = mad((float8)(x0_1), w0_1, a1_1);
      const float x0_2 = xp[16];
      a2_0 = mad((float8)(x0_2), w0_0, a2_0);
      a2_1 = mad((float8)(x0_2), w0_1, a2_1);
      const float x0_3 = xp[24];
      a3_0 = mad((float8)(x0_3), w0_0, a3_0);
      a3_1 = mad((float8)(x0_3), w0_1, a3_1);
      const float x0_4 = xp[32];
      a4_0 = mad((float8)(x0_4), w0_0, a4_0);
      a4_1 = mad((float8)(x0_4), w0_1, a4_1);
      const float8 w1_0 = vload8(0, wp + 16);
      const float8 w1_1 = vload8(0, wp + 24);
      const float x1_0 = xp[1];
      a0_0 = mad((float8)(x1_0), w1_0, a0_0);
      a0_1 = mad((float8)(x1_0), w1_1, a0_1);
      const float x1_1 = xp[9];
      a1_0 = mad((float8)(x1_1), w1_0, a1_0);
      a1_1 = mad((float8)(x1_1), w1_1, a1_1);
      const float x1_2 = xp[17];
      a2_0 = mad((float8)(x1_2), w1_0, a2_0);
      a2_1 = mad((float8)(x1_2), w1_1, a2_1);
      const float x1_3 = xp[25];
      a3_0 = mad((float8)(x1_3), w1_0, a3_0);
      a3_1 = mad((float8)(x1_3), w1_1, a3_1);
      const float x1_4 = xp[33];
      a4_0 = mad((float8)(x1_4), w1_0, a4_0);
      a4_1 = mad((float8)(x1_4), w1_1, a4_1);
      const float8 w2_0 = vload8(0, wp + 32);
      const float8 w2_1 = vload8(0, wp + 40);
      const float x2_0 = xp[2];
      a0_0 = mad((float8)(x2_0), w2_0, a0_0);
      a0_1 = mad((float8)(x2_0), w2_1, a0_1);
      const float x2_1 = xp[10];
      a1_0 = mad((float8)(x2_1), w2_0, a1_0);
      a1_1 = mad((float8)(x2_1), w2_1, a1_1);
      const float x2_2 = xp[18];
      a2_0 = mad((float8)(x2_2), w2_0, a2_0);
      a2_1 = mad((float8)(x2_2), w2_1, a2_1);
      const float x2_3 = xp[26];
      a3_0 = mad((float8)(x2_3), w2_0, a3_0);
      a3_1 = mad((float8)(x2_3), w2_1, a3_1);
      const float x2_4 = xp[34];
      a4_0 = mad((float8)(x2_4), w2_0, a4_0);
      a4_1 = mad((float8)(x2_4), w2_1, a4_1);
      const float8 w3_0 = vload8(0, wp + 48);
      const float8 w3_1 = vload8(0, wp + 56);
      const float x3_0 = xp[3];
      a0_0 = mad((float8)(x3_0), w3_0, a0_0);
      a0_1 = mad((float8)(x3_0), w3_1, a0_1);
      const float x3_1 = xp[11];
      a1_0 = mad((float8)(x3_1), w3_0, a1_0);
      a1_1 = mad((float8)(x3_1), w3_1, a1_1);
      const float x3_2 = xp[19];
      a2_0 = mad((float8)(x3_2), w3_0, a2_0);
      a2_1 = mad((float8)(x3_2), w3_1, a2_1);
      const float x3_3 = xp[27];
      a3_0 = mad((float8)(x3_3), w3_0, a3_0);
      a3_1 = mad((float8)(x3_3), w3_1, a3_1);
      const float x3_4 = xp[35];
      a4_0 = mad((float8)(x3_4), w3_0, a4_0);
      a4_1 = mad((float8)(x3_4), w3_1, a4_1);
      xp += 4; wp += 64;
    }
    vstore8(a0_0, 0, y + r0 * 0 + c0 * 64 + 0);
    vstore8(a0_1, 0, y + r0 * 0 + c0 * 64 + 8);
    vstore8(a1_0, 0, y + r0 * 0 + c0 * 64 + 64);
    vstore8(a1_1, 0, y + r0 * 0 + c0 * 64 + 72);
    vstore8(a2_0, 0, y + r0 * 0 + c0 * 64 + 128);
    vstore8(a2_1, 0, y + r0 * 0 + c0 * 64 + 136);
    vstore8(a3_0, 0, y + r0 * 0 + c0 * 64 + 192);
    vstore8(a3_1, 0, y + r0 * 0 + c0 * 64 + 200);
    vstore8(a4_0, 0, y + r0 * 0 + c0 * 64 + 256);
    vstore8(a4_1, 0, y + r0 * 0 + c0 * 64 + 264);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_6a308d05c8e3(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  for (int u = id * 10; u < min(id * 10 + 10, 10); ++u) {
    const int d0 = u;
    const int o0 = d0 * 64;
    const int o1 = d0 * 64;
    const int o2 = 0;
    const int end = 64;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = vload8(0, p0 + o1 + i);
      const float8 v1 = vload8(0, p1 + o2 + i);
      const float8 t0 = (v0 + v1);
      vstore8(t0, 0, p2 + o0 + i);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void recurrence_e3b37883ee5e(
    __global const float* p0,
    __global const float* p1,
    __global const float* p2,
    __global float* p3)
{
  const int id = get_global_id(0);
  const int d = id / 2, b = id % 2;
  float h[16], c[16];
  float a[72];
  for (int u = 0; u < 16; ++u) {
    h[u] = 0.0f;
  }
  for (int u = 0; u < 16; ++u) {
    c[u] = 0.0f;
  }
  int n = 5;
  for (int t = 0; t < n; ++t) {
    const int s = t;
    for (int p = 0; p < 1; ++p) {
      __global const float* w = p2 + d * 1024 + 0 + p * 1024;
      float8 s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f, s4 = 0.0f, s5 = 0.0f, s6 = 0.0f, s7 = 0.0f;
      for (int k = 0; k < 16; ++k) {
        const float x = h[k];
        s0 = mad((float8)(x), vload8(0, w + 0), s0);
        s1 = mad((float8)(x), vload8(0, w + 8), s1);
        s2 = mad((float8)(x), vload8(0, w + 16), s2);
        s3 = mad((float8)(x), vload8(0, w + 24), s3);
        s4 = mad((float8)(x), vload8(0, w + 32), s4);
        s5 = mad((float8)(x), vload8(0, w + 40), s5);
        s6 = mad((float8)(x), vload8(0, w + 48), s6);
        s7 = mad((float8)(x), vload8(0, w + 56), s7);
        w += 64;
      }
      vstore8(s0, 0, a + 0 + p * 64);
      vstore8(s1, 0, a + 8 + p * 64);
      vstore8(s2, 0, a + 16 + p * 64);
      vstore8(s3, 0, a + 24 + p * 64);
      vstore8(s4, 0, a + 32 + p * 64);
      vstore8(s5, 0, a + 40 + p * 64);
      vstore8(s6, 0, a + 48 + p * 64);
      vstore8(s7, 0, a + 56 + p * 64);
    }
    for (int u = 0; u < 16; u += 8) {
      const float8 before = vload8(0, c + u);
      const float8 i = ol_sigmoid((vload8(0, p0 + s * 128 + b * 64 + d * 64 + u) + vload8(0, a + u)));
      const float8 f = ol_sigmoid((vload8(0, p0 + s * 128 + b * 64 + d * 64 + u + 32) + vload8(0, a + u + 32)));
      const float8 g = ol_tanh((vload8(0, p0 + s * 128 + b * 64 + d * 64 + u + 48) + vload8(0, a + u + 48)));
      const float8 cell = f * before + i * g;
      const float8 o = ol_sigmoid((vload8(0, p0 + s * 128 + b * 64 + d * 64 + u + 16) + vload8(0, a + u + 16)));
      const float8 out = o * ol_tanh((cell));
      vstore8(cell, 0, c + u);
      vstore8(out, 0, h + u);
      vstore8(out, 0, p3 + s * 32 + d * 32 + b * 16 + u);
    }
  }
  for (int u = 0; u < 16; ++u) p3[d * 32 + b * 16 + u + 160] = h[u];
  for (int u = 0; u < 16; ++u) p3[d * 32 + b * 16 + u + 192] = c[u];
}
