// LSTM(LSTM0.0, LSTM0.1, LSTM0.2, LSTM0.4)
//
// launch 0: product1x1_8to448_7fecf709782d(arena[89600, +1600], weight 0, arena[0, +89600]), 19 work-items in groups of 1
// launch 1: pointwise_b5e12ef18ef3(arena[0, +89600], weight 1, arena[89600, +89600]), 2 work-items in groups of 1
// launch 2: counters_8d19f6d1d729(arena[23296, +192]), 1 work-items in groups of 1
// launch 3: recurrence_41fceb78fe0e(arena[89600, +89600], weight 2, arena[179200, +4], weight 2, arena[23296, +192], arena[0, +23296]), 2 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void product1x1_8to448_7fecf709782d(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 24, 424);
  __global const float* x = p0 + 0;
  __global const float* w = p1 + 0 + panel * 192;
  __global float* y = p2 + 0 + n0 * 1;
  for (int t = group * 13; t < min(group * 13 + 13, 13); ++t) {
    const int r0 = 0, c0 = min((t) * 4, 46);
    __global const float* xt = x + r0 * 0 + c0 * 8;
    float8 a0_0 = 0.0f, a0_1 = 0.0f, a0_2 = 0.0f;
    float8 a1_0 = 0.0f, a1_1 = 0.0f, a1_2 = 0.0f;
    float8 a2_0 = 0.0f, a2_1 = 0.0f, a2_2 = 0.0f;
    float8 a3_0 = 0.0f, a3_1 = 0.0f, a3_2 = 0.0f;
    __global const float* xp = xt;
    __global const float* wp = w;
    for (int k = 0; k < 8; k += 4) {
      const float8 w0_0 = vload8(0, wp + 0);
      const float8 w0_1 = vload8(0, wp + 8);
      const float8 w0_2 = vload8(0, wp + 16);
      const float x0_0 = xp[0];
      a0_0 = mad((float8)(x0_0), w0_0, a0_0);
      a0_1 = mad((float8)(x0_0), w0_1, a0_1);
      a0_2 = mad((float8)(x0_0), w0_2, a0_2);
      const float x0_1 = xp[8];
      a1_0 = mad((float8)(x0_1), w0_0, a1_0);
      a1_1 = mad((float8)(x0_1), w0_1, a1_1);
      a1_2 = mad((float8)(x0_1), w0_2, a1_2);
      const float x0_2 = xp[16];
      a2_0 = mad((float8)(x0_2), w0_0, a2_0);
      a2_1 = mad((float8)(x0_2), w0_1, a2_1);
      a2_2 = mad((float8)(x0_2), w0_2, a2_2);
      const float x0_3 = xp[24];
      a3_0 = mad((float8)(x0_3), w0_0, a3_0);
      a3_1 = mad((float8)(x0_3), w0_1, a3_1);
      a3_2 = mad((float8)(x0_3), w0_2, a3_2);
      const float8 w1_0 = vload8(0, wp + 24);
      const float8 w1_1 = vload8(0, wp + 32);
      const float8 w1_2 = vload8(0, wp + 40);
      const float x1_0 = xp[1];
      a0_0 = mad((float8)(x1_0), w1_0, a0_0);
      a0_1 = mad((float8)(x1_0), w1_1, a0_1);
      a0_2 = mad((float8)(x1_0), w1_2, a0_2);
      const float x1_1 = xp[9];
      a1_0 = mad((float8)(x1_1), w1_0, a1_0);
      a1_1 = mad((float8)(x1_1), w1_1, a1_1);
      a1_2 = mad((float8)(x1_1), w1_2, a1_2);
      const float x1_2 = xp[17];
      a2_0 = mad((float8)(x1_2), w1_0, a2_0);
      a2_1 = mad((float8)(x1_2), w1_1, a2_1);
      a2_2 = mad((float8)(x1_2), w1_2, a2_2);
      const float x1_3 = xp[25];
      a3_0 = mad((float8)(x1_3), w1_0, a3_0);
      a3_1 = mad((float8)(x1_3), w1_1, a3_1);
      a3_2 = mad((float8)(x1_3), w1_2, a3_2);
      const float8 w2_0 = vload8(0, wp + 48);
      const float8 w2_1 = vload8(0, wp + 56);
      const float8 w2_2 = vload8(0, wp + 64);
      const float x2_0 = xp[2];
      a0_0 = mad((float8)(x2_0), w2_0, a0_0);
      a0_1 = mad((float8)(x2_0), w2_1, a0_1);
      a0_2 = mad((float8)(x2_0), w2_2, a0_2);
      const float x2_1 = xp[10];
      a1_0 = mad((float8)(x2_1), w2_0, a1_0);
      a1_1 = mad((float8)(x2_1), w2_1, a1_1);
      a1_2 = mad((float8)(x2_1), w2_2, a1_2);
      const float x2_2 = xp[18];
      a2_0 = mad((float8)(x2_2), w2_0, a2_0);
      a2_1 = mad((float8)(x2_2), w2_1, a2_1);
      a2_2 = mad((float8)(x2_2), w2_2, a2_2);
      const float x2_3 = xp[26];
      a3_0 = mad((float8)(x2_3), w2_0, a3_0);
      a3_1 = mad((float8)(x2_3), w2_1, a3_1);
      a3_2 = mad((float8)(x2_3), w2_2, a3_2);
      const float8 w3_0 = vload8(0, wp + 72);
      const float8 w3_1 = vload8(0, wp + 80);
      const float8 w3_2 = vload8(0, wp + 88);
      const float x3_0 = xp[3];
      a0_0 = mad((float8)(x3_0), w3_0, a0_0);
      a0_1 = mad((float8)(x3_0), w3_1, a0_1);
      a0_2 = mad((float8)(x3_0), w3_2, a0_2);
      const float x3_1 = xp[11];
      a1_0 = mad((float8)(x3_1), w3_0, a1_0);
      a1_1 = mad((float8)(x3_1), w3_1, a1_1);
      a1_2 = mad((float8)(x3_1), w3_2, a1_2);
      const float x3_2 = xp[19];
      a2_0 = mad((float8)(x3_2), w3_0, a2_0);
      a2_1 = mad((float8)(x3_2), w3_1, a2_1);
      a2_2 = mad((float8)(x3_2), w3_2, a2_2);
      const float x3_3 = xp[27];
      a3_0 = mad((float8)(x3_3), w3_0, a3_0);
      a3_1 = mad((float8)(x3_3), w3_1, a3_1);
      a3_2 = mad((float8)(x3_3), w3_2, a3_2);
      xp += 4; wp += 96;
    }
    vstore8(a0_0, 0, y + r0 * 0 + c0 * 448 + 0);
    vstore8(a0_1, 0, y + r0 * 0 + c0 * 448 + 8);
    vstore8(a0_2, 0, y + r0 * 0 + c0 * 448 + 16);
    vstore8(a1_0, 0, y + r0 * 0 + c0 * 448 + 448);
    vstore8(a1_1, 0, y + r0 * 0 + c0 * 448 + 456);
    vstore8(a1_2, 0, y + r0 * 0 + c0 * 448 + 464);
    vstore8(a2_0, 0, y + r0 * 0 + c0 * 448 + 896);
    vstore8(a2_1, 0, y + r0 * 0 + c0 * 448 + 904);
    vstore8(a2_2, 0, y + r0 * 0 + c0 * 448 + 912);
    vstore8(a3_0, 0, y + r0 * 0 + c0 * 448 + 1344);
    vstore8(a3_1, 0, y + r0 * 0 + c0 * 448 + 1352);
    vstore8(a3_2, 0, y + r0 * 0 + c0 * 448 + 1360);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_b5e12ef18ef3(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  for (int u = id * 25; u < min(id * 25 + 25, 50); ++u) {
    const int d0 = u;
    const int o0 = d0 * 448;
    const int o1 = d0 * 448;
    const int o2 = 0;
    const int end = 448;
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
__kernel void counters_8d19f6d1d729(
    __global int* p0)
{
  for (int i = 0; i < 48; ++i) p0[i] = 0;
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void recurrence_41fceb78fe0e(
    __global const float* p0,
    __global const float* p1,
    __global const int* p2,
    __global const float* p3,
    __global int* p4,
    __global float* p5,
    __global int* wrong)
{
  const int item = get_global_id(0), id = item / 2, own = item % 2;
  const int d = id / 1, b = id % 1;
  volatile __global int* done = p4 + id * 48;
  float h[112], c[56];
  float a[232];
  int n = 50;
  n = p2[b];
  if (n < 0 || n > 50) { *wrong = 1; n = 0; }
  for (int t = 0; t <= n; ++t) {
    const int s = t, last = (t - 1);
    for (int turn = 0, has_state = 0; turn < 2; ++turn) {
      const int part = (own + turn) % 2, first = part * 56;
      volatile __global int* taken = done + (part + 1) * 16;
      if (*taken != t || atomic_cmpxchg(taken, t, t + 1) != t) continue;
      const int block = d * 2 + part;
      if (!has_state) {
        has_state = 1;
        if (t) {
          for (int u = 0; u < 112; u += 16) {
            vstore16(vload16(0, p5 + last * 112 + d * 112 + b * 112 + u), 0, h + u);
          }
        }
        else {
          for (int u = 0; u < 112; ++u) {
            h[u] = 0.0f;
          }
        }
      }
      for (int u = 0; u < 56; ++u) {
        const int v = first + u;
        c[u] = t ? p5[d * 112 + b * 112 + v + 5712] : 0.0f;
      }
      if (t < n) {
        for (int p = 0; p < 3; ++p) {
          __global const float* w = p3 + block * 25088 + 0 + p * 7168;
          float8 s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f, s4 = 0.0f, s5 = 0.0f, s6 = 0.0f, s7 = 0.0f;
          for (int k = 0; k < 112; ++k) {
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
        for (int p = 0; p < 1; ++p) {
          __global const float* w = p3 + block * 25088 + 21504 + p * 7168;
          float8 s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
          for (int k = 0; k < 112; ++k) {
            const float x = h[k];
            s0 = mad((float8)(x), vload8(0, w + 0), s0);
            s1 = mad((float8)(x), vload8(0, w + 8), s1);
            s2 = mad((float8)(x), vload8(0, w + 16), s2);
            s3 = mad((float8)(x), vload8(0, w + 24), s3);
            w += 32;
          }
          vstore8(s0, 0, a + 192 + p * 64);
          vstore8(s1, 0, a + 200 + p * 64);
          vstore8(s2, 0, a + 208 + p * 64);
          vstore8(s3, 0, a + 216 + p * 64);
        }
        for (int u = 0; u < 56; u += 8) {
          const int v = first + u;
          const float8 before = vload8(0, c + u);
          const float8 i = ol_sigmoid((vload8(0, p0 + s * 448 + b * 448 + d * 448 + v) + vload8(0, a + u)));
          const float8 f = ol_sigmoid((vload8(0, p0 + s * 448 + b * 448 + d * 448 + v + 224) + vload8(0, a + u + 112)));
          const float8 g = ol_tanh((vload8(0, p0 + s * 448 + b * 448 + d * 448 + v + 336) + vload8(0, a + u + 168)));
          const float8 cell = f * before + i * g;
          const float8 o = ol_sigmoid((vload8(0, p0 + s * 448 + b * 448 + d * 448 + v + 112) + vload8(0, a + u + 56)));
          const float8 out = o * ol_tanh((cell));
          vstore8(cell, 0, p5 + d * 112 + b * 112 + v + 5712);
          vstore8(out, 0, p5 + s * 112 + d * 112 + b * 112 + v);
        }
      }
      else {
        for (int u = 0; u < 56; ++u) {
          const int v = first + u;
          for (int e = n; e < 50; ++e) p5[e * 112 + d * 112 + b * 112 + v] = 0.0f;
          p5[d * 112 + b * 112 + v + 5600] = h[v];
          p5[d * 112 + b * 112 + v + 5712] = c[u];
        }
      }
      mem_fence(CLK_GLOBAL_MEM_FENCE);
      atomic_inc(done);
    }
    for (int waits = 0; *done < 2 * (t + 1); ++waits) {
      if (waits == 8192) return;
      ol_pause();
    }
    mem_fence(CLK_GLOBAL_MEM_FENCE);
  }
}
