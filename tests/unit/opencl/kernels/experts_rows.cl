// QMoE(QMoE0.0, QMoE0.1, QMoE0.2, QMoE0.3, QMoE0.4, QMoE0.5, QMoE0.6)
//
// launch 0: topindices_35950b031a14(arena[0, +40], arena[1920, +40]), 1 work-items in groups of 1
// launch 1: gatherelements_553ce9e3bee6(arena[0, +40], arena[1920, +40], arena[128, +20]), 1 work-items in groups of 1
// launch 2: softmax_e1b77793519f(arena[128, +20], arena[2176, +20]), 1 work-items in groups of 1
// launch 3: expert_rows_60adc7e34417(arena[1920, +40], arena[2048, +32]), 1 work-items in groups of 1
// launch 4: weights4bit_experts_02a123a46ae1(arena[1280, +640], weight 0, weight 1, weight 2, arena[2048, +32], arena[0, +1280]), 2 work-items in groups of 1
// launch 5: pointwise_642df4bcf469(arena[0, +1280], arena[0, +1280], arena[1280, +640]), 1 work-items in groups of 1
// launch 6: expert_rows_60adc7e34417(arena[1920, +40], arena[640, +32]), 1 work-items in groups of 1
// launch 7: weights4bit_experts_9bc970362c3d(arena[1280, +640], weight 1, weight 2, arena[640, +32], arena[0, +640]), 2 work-items in groups of 1
// launch 8: pointwise_8cb9b8797176(arena[0, +640], arena[2176, +20], arena[640, +640]), 1 work-items in groups of 1
// launch 9: reduce_fc80a8912cc3(arena[640, +640], arena[0, +640]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void topindices_35950b031a14(
    __global const float* p0,
    __global long* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 5; u < min(id * 5 + 5, 5); ++u) {
    const int d0 = u;
    __global const float* x = p0 + d0 * 2;
    __global long* y = p1 + d0;
    int held = 0;
    for (int i = 0; i < 2; ++i) {
      const float v = x[i * 1];
      if (held == 1 && !(v >= x[(int)y[0] * 1])) continue;
      int at = held < 1 ? held++ : 0;
      while (at > 0 && v >= x[(int)y[(at - 1) * 1] * 1]) {
        y[at * 1] = y[(at - 1) * 1];
        --at;
      }
      y[at * 1] = i;
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void gatherelements_553ce9e3bee6(
    __global const float* p0,
    __global const long* p1,
    __global float* p2,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 5; u < min(id * 5 + 5, 5); ++u) {
    const int d0 = u;
    long pick = p1[d0];
    pick += pick < 0 ? 2 : 0;
    if (pick < 0 || pick >= 2) { *wrong = 1; pick = 0; }
    p2[d0] = p0[d0 * 2 + (int)pick];
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void softmax_e1b77793519f(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 5; u < min(id * 5 + 5, 5); ++u) {
    const int d0 = u;
    const int x0 = d0;
    const int y0 = d0;
    float top = -INFINITY, sum = 0.0f;
    for (int i = 0; i < 1; ++i) {
      const float v = p0[x0 + i * 1];
      top = select(top, v, v > top);
    }
    for (int i = 0; i < 1; ++i) {
      const float e = ol_exp_normal(p0[x0 + i * 1] - top);
      sum += e;
      p1[y0 + i * 1] = e;
    }
    const float scale = 1.0f / sum;
    for (int i = 0; i < 1; ++i) {
      const float r = p1[y0 + i * 1] * scale;
      p1[y0 + i * 1] = r;
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void expert_rows_60adc7e34417(
    __global const long* p0,
    __global int* p1)
{
  if (get_global_id(0) == 0) {
    int next[2];
    __global int* rows = p1 + 3;
    for (int e = 0; e < 2; ++e) {
      next[e] = 0;
    }
    for (int m = 0; m < 5; ++m) {
      ++next[(int)p0[0 + m]];
    }
    int begin = 0;
    for (int e = 0; e < 2; ++e) {
      const int count = next[e];
      p1[e] = next[e] = begin;
      begin += count;
    }
    p1[2] = begin;
    for (int m = 0; m < 5; ++m) {
      rows[next[(int)p0[0 + m]]++] = m;
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights4bit_experts_02a123a46ae1(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global const float* p3,
    __global const int* p4,
    __global float* p5)
{
  float f[2048] __attribute__((aligned(64)));
  const int id = get_global_id(0), e = id / 1, group = id % 1;
  __global const int* rows = p4 + 3;
  const int begin = p4[e], end = p4[e + 1];
  const size_t first = (size_t)e * 2;
  const int count = min(2, 2 - group * 2);
  for (int k0 = 0; k0 < 32 && begin < end; k0 += 32) {
    const int depth = min(32, 32 - k0);
    for (int p = 0; p < count; ++p) {
      const int u = group * 2 + p;
      const int n0 = min(u * 32, 32);
      __global const int* w = p1 + (size_t)(first + u) * 128 + 0;
      __global const float* scales = p2 + (first + u) * 64 + 0;
      w += k0 / 8 * 32;
      for (int c = 0; c < 2; ++c) {
        const int b = k0 / 16 + c;
        const float8 scale0 = vload8(0, scales + b * 32 + 0);
        const float8 zero0 = (float8)(8.0f);
        const float8 scale1 = vload8(0, scales + b * 32 + 8);
        const float8 zero1 = (float8)(8.0f);
        const float8 scale2 = vload8(0, scales + b * 32 + 16);
        const float8 zero2 = (float8)(8.0f);
        const float8 scale3 = vload8(0, scales + b * 32 + 24);
        const float8 zero3 = (float8)(8.0f);
        for (int i = 0; i < 2; ++i) {
          __private float* to = f + p * 1024 + (c * 16 + i * 8) * 16;
          const int8 w0 = vload8(0, w + 0);
          vstore8((convert_float8(((w0 >> 0) & 15)) - zero0) * scale0, 0, to + 0);
          vstore8((convert_float8(((w0 >> 4) & 15)) - zero0) * scale0, 0, to + 16);
          vstore8((convert_float8(((w0 >> 8) & 15)) - zero0) * scale0, 0, to + 32);
          vstore8((convert_float8(((w0 >> 12) & 15)) - zero0) * scale0, 0, to + 48);
          vstore8((convert_float8(((w0 >> 16) & 15)) - zero0) * scale0, 0, to + 64);
          vstore8((convert_float8(((w0 >> 20) & 15)) - zero0) * scale0, 0, to + 80);
          vstore8((convert_float8(((w0 >> 24) & 15)) - zero0) * scale0, 0, to + 96);
          vstore8((convert_float8(((w0 >> 28) & 15)) - zero0) * scale0, 0, to + 112);
          const int8 w1 = vload8(0, w + 8);
          vstore8((convert_float8(((w1 >> 0) & 15)) - zero1) * scale1, 0, to + 8);
          vstore8((convert_float8(((w1 >> 4) & 15)) - zero1) * scale1, 0, to + 24);
          vstore8((convert_float8(((w1 >> 8) & 15)) - zero1) * scale1, 0, to + 40);
          vstore8((convert_float8(((w1 >> 12) & 15)) - zero1) * scale1, 0, to + 56);
          vstore8((convert_float8(((w1 >> 16) & 15)) - zero1) * scale1, 0, to + 72);
          vstore8((convert_float8(((w1 >> 20) & 15)) - zero1) * scale1, 0, to + 88);
          vstore8((convert_float8(((w1 >> 24) & 15)) - zero1) * scale1, 0, to + 104);
          vstore8((convert_float8(((w1 >> 28) & 15)) - zero1) * scale1, 0, to + 120);
          const int8 w2 = vload8(0, w + 16);
          vstore8((convert_float8(((w2 >> 0) & 15)) - zero2) * scale2, 0, to + 512);
          vstore8((convert_float8(((w2 >> 4) & 15)) - zero2) * scale2, 0, to + 528);
          vstore8((convert_float8(((w2 >> 8) & 15)) - zero2) * scale2, 0, to + 544);
          vstore8((convert_float8(((w2 >> 12) & 15)) - zero2) * scale2, 0, to + 560);
          vstore8((convert_float8(((w2 >> 16) & 15)) - zero2) * scale2, 0, to + 576);
          vstore8((convert_float8(((w2 >> 20) & 15)) - zero2) * scale2, 0, to + 592);
          vstore8((convert_float8(((w2 >> 24) & 15)) - zero2) * scale2, 0, to + 608);
          vstore8((convert_float8(((w2 >> 28) & 15)) - zero2) * scale2, 0, to + 624);
          const int8 w3 = vload8(0, w + 24);
          vstore8((convert_float8(((w3 >> 0) & 15)) - zero3) * scale3, 0, to + 520);
          vstore8((convert_float8(((w3 >> 4) & 15)) - zero3) * scale3, 0, to + 536);
          vstore8((convert_float8(((w3 >> 8) & 15)) - zero3) * scale3, 0, to + 552);
          vstore8((convert_float8(((w3 >> 12) & 15)) - zero3) * scale3, 0, to + 568);
          vstore8((convert_float8(((w3 >> 16) & 15)) - zero3) * scale3, 0, to + 584);
          vstore8((convert_float8(((w3 >> 20) & 15)) - zero3) * scale3, 0, to + 600);
          vstore8((convert_float8(((w3 >> 24) & 15)) - zero3) * scale3, 0, to + 616);
          vstore8((convert_float8(((w3 >> 28) & 15)) - zero3) * scale3, 0, to + 632);
          w += 32;
        }
      }
    }
    int m = begin;
    for (; m + 5 <= end; m += 5) {
      const int row0 = rows[min(m + 0, end - 1)];
      __global const float* x0 = p0 + 0 + row0 * 32 + k0;
      const int row1 = rows[min(m + 1, end - 1)];
      __global const float* x1 = p0 + 0 + row1 * 32 + k0;
      const int row2 = rows[min(m + 2, end - 1)];
      __global const float* x2 = p0 + 0 + row2 * 32 + k0;
      const int row3 = rows[min(m + 3, end - 1)];
      __global const float* x3 = p0 + 0 + row3 * 32 + k0;
      const int row4 = rows[min(m + 4, end - 1)];
      __global const float* x4 = p0 + 0 + row4 * 32 + k0;
      for (int strip = 0; strip < count * 2; ++strip) {
        __private const float* fs = f + strip * 512;
        const int column = group * 64 + strip * 16;
        __global float* y0 = p5 + 0 + row0 * 64 + column;
        __global float* y1 = p5 + 0 + row1 * 64 + column;
        __global float* y2 = p5 + 0 + row2 * 64 + column;
        __global float* y3 = p5 + 0 + row3 * 64 + column;
        __global float* y4 = p5 + 0 + row4 * 64 + column;
        const float8 begin0 = vload8(0, p3 + e * 64 + column + 0);
        const float8 begin1 = vload8(0, p3 + e * 64 + column + 8);
        float8 a0_0 = k0 ? vload8(0, y0 + 0) : begin0;
        float8 a0_1 = k0 ? vload8(0, y0 + 8) : begin1;
        float8 a1_0 = k0 ? vload8(0, y1 + 0) : begin0;
        float8 a1_1 = k0 ? vload8(0, y1 + 8) : begin1;
        float8 a2_0 = k0 ? vload8(0, y2 + 0) : begin0;
        float8 a2_1 = k0 ? vload8(0, y2 + 8) : begin1;
        float8 a3_0 = k0 ? vload8(0, y3 + 0) : begin0;
        float8 a3_1 = k0 ? vload8(0, y3 + 8) : begin1;
        float8 a4_0 = k0 ? vload8(0, y4 + 0) : begin0;
        float8 a4_1 = k0 ? vload8(0, y4 + 8) : begin1;
        for (int k = 0; k < depth; k += 4) {
          const float8 f0_0 = vload8(0, fs + (k + 0) * 16 + 0);
          const float8 f0_1 = vload8(0, fs + (k + 0) * 16 + 8);
          const float8 b0_0 = (float8)(x0[k + 0]);
          a0_0 = mad(b0_0, f0_0, a0_0);
          a0_1 = mad(b0_0, f0_1, a0_1);
          const float8 b0_1 = (float8)(x1[k + 0]);
          a1_0 = mad(b0_1, f0_0, a1_0);
          a1_1 = mad(b0_1, f0_1, a1_1);
          const float8 b0_2 = (float8)(x2[k + 0]);
          a2_0 = mad(b0_2, f0_0, a2_0);
          a2_1 = mad(b0_2, f0_1, a2_1);
          const float8 b0_3 = (float8)(x3[k + 0]);
          a3_0 = mad(b0_3, f0_0, a3_0);
          a3_1 = mad(b0_3, f0_1, a3_1);
          const float8 b0_4 = (float8)(x4[k + 0]);
          a4_0 = mad(b0_4, f0_0, a4_0);
          a4_1 = mad(b0_4, f0_1, a4_1);
          const float8 f1_0 = vload8(0, fs + (k + 1) * 16 + 0);
          const float8 f1_1 = vload8(0, fs + (k + 1) * 16 + 8);
          const float8 b1_0 = (float8)(x0[k + 1]);
          a0_0 = mad(b1_0, f1_0, a0_0);
          a0_1 = mad(b1_0, f1_1, a0_1);
          const float8 b1_1 = (float8)(x1[k + 1]);
          a1_0 = mad(b1_1, f1_0, a1_0);
          a1_1 = mad(b1_1, f1_1, a1_1);
          const float8 b1_2 = (float8)(x2[k + 1]);
          a2_0 = mad(b1_2, f1_0, a2_0);
          a2_1 = mad(b1_2, f1_1, a2_1);
          const float8 b1_3 = (float8)(x3[k + 1]);
          a3_0 = mad(b1_3, f1_0, a3_0);
          a3_1 = mad(b1_3, f1_1, a3_1);
          const float8 b1_4 = (float8)(x4[k + 1]);
          a4_0 = mad(b1_4, f1_0, a4_0);
          a4_1 = mad(b1_4, f1_1, a4_1);
          const float8 f2_0 = vload8(0, fs + (k + 2) * 16 + 0);
          const float8 f2_1 = vload8(0, fs + (k + 2) * 16 + 8);
          const float8 b2_0 = (float8)(x0[k + 2]);
          a0_0 = mad(b2_0, f2_0, a0_0);
          a0_1 = mad(b2_0, f2_1, a0_1);
          const float8 b2_1 = (float8)(x1[k + 2]);
          a1_0 = mad(b2_1, f2_0, a1_0);
          a1_1 = mad(b2_1, f2_1, a1_1);
          const float8 b2_2 = (float8)(x2[k + 2]);
          a2_0 = mad(b2_2, f2_0, a2_0);
          a2_1 = mad(b2_2, f2_1, a2_1);
          const float8 b2_3 = (float8)(x3[k + 2]);
          a3_0 = mad(b2_3, f2_0, a3_0);
          a3_1 = mad(b2_3, f2_1, a3_1);
          const float8 b2_4 = (float8)(x4[k + 2]);
          a4_0 = mad(b2_4, f2_0, a4_0);
          a4_1 = mad(b2_4, f2_1, a4_1);
          const float8 f3_0 = vload8(0, fs + (k + 3) * 16 + 0);
          const float8 f3_1 = vload8(0, fs + (k + 3) * 16 + 8);
          const float8 b3_0 = (float8)(x0[k + 3]);
          a0_0 = mad(b3_0, f3_0, a0_0);
          a0_1 = mad(b3_0, f3_1, a0_1);
          const float8 b3_1 = (float8)(x1[k + 3]);
          a1_0 = mad(b3_1, f3_0, a1_0);
          a1_1 = mad(b3_1, f3_1, a1_1);
          const float8 b3_2 = (float8)(x2[k + 3]);
          a2_0 = mad(b3_2, f3_0, a2_0);
          a2_1 = mad(b3_2, f3_1, a2_1);
          const float8 b3_3 = (float8)(x3[k + 3]);
          a3_0 = mad(b3_3, f3_0, a3_0);
          a3_1 = mad(b3_3, f3_1, a3_1);
          const float8 b3_4 = (float8)(x4[k + 3]);
          a4_0 = mad(b3_4, f3_0, a4_0);
          a4_1 = mad(b3_4, f3_1, a4_1);
        }
        vstore8(a0_0, 0, y0 + 0);
        vstore8(a0_1, 0, y0 + 8);
        vstore8(a1_0, 0, y1 + 0);
        vstore8(a1_1, 0, y1 + 8);
        vstore8(a2_0, 0, y2 + 0);
        vstore8(a2_1, 0, y2 + 8);
        vstore8(a3_0, 0, y3 + 0);
        vstore8(a3_1, 0, y3 + 8);
        vstore8(a4_0, 0, y4 + 0);
        vstore8(a4_1, 0, y4 + 8);
      }
    }
    for (; m < end; m += 4) {
      const int row0 = rows[min(m + 0, end - 1)];
      __global const float* x0 = p0 + 0 + row0 * 32 + k0;
      const int row1 = rows[min(m + 1, end - 1)];
      __global const float* x1 = p0 + 0 + row1 * 32 + k0;
      const int row2 = rows[min(m + 2, end - 1)];
      __global const float* x2 = p0 + 0 + row2 * 32 + k0;
      const int row3 = rows[min(m + 3, end - 1)];
      __global const float* x3 = p0 + 0 + row3 * 32 + k0;
      for (int strip = 0; strip < count * 2; ++strip) {
        __private const float* fs = f + strip * 512;
        const int column = group * 64 + strip * 16;
        __global float* y0 = p5 + 0 + row0 * 64 + column;
        __global float* y1 = p5 + 0 + row1 * 64 + column;
        __global float* y2 = p5 + 0 + row2 * 64 + column;
        __global float* y3 = p5 + 0 + row3 * 64 + column;
        const float8 begin0 = vload8(0, p3 + e * 64 + column + 0);
        const float8 begin1 = vload8(0, p3 + e * 64 + column + 8);
        float8 a0_0 = k0 ? vload8(0, y0 + 0) : begin0;
        float8 a0_1 = k0 ? vload8(0, y0 + 8) : begin1;
        float8 a1_0 = k0 ? vload8(0, y1 + 0) : begin0;
        float8 a1_1 = k0 ? vload8(0, y1 + 8) : begin1;
        float8 a2_0 = k0 ? vload8(0, y2 + 0) : begin0;
        float8 a2_1 = k0 ? vload8(0, y2 + 8) : begin1;
        float8 a3_0 = k0 ? vload8(0, y3 + 0) : begin0;
        float8 a3_1 = k0 ? vload8(0, y3 + 8) : begin1;
        for (int k = 0; k < depth; k += 4) {
          const float8 f0_0 = vload8(0, fs + (k + 0) * 16 + 0);
          const float8 f0_1 = vload8(0, fs + (k + 0) * 16 + 8);
          const float8 b0_0 = (float8)(x0[k + 0]);
          a0_0 = mad(b0_0, f0_0, a0_0);
          a0_1 = mad(b0_0, f0_1, a0_1);
          const float8 b0_1 = (float8)(x1[k + 0]);
          a1_0 = mad(b0_1, f0_0, a1_0);
          a1_1 = mad(b0_1, f0_1, a1_1);
          const float8 b0_2 = (float8)(x2[k + 0]);
          a2_0 = mad(b0_2, f0_0, a2_0);
          a2_1 = mad(b0_2, f0_1, a2_1);
          const float8 b0_3 = (float8)(x3[k + 0]);
          a3_0 = mad(b0_3, f0_0, a3_0);
          a3_1 = mad(b0_3, f0_1, a3_1);
          const float8 f1_0 = vload8(0, fs + (k + 1) * 16 + 0);
          const float8 f1_1 = vload8(0, fs + (k + 1) * 16 + 8);
          const float8 b1_0 = (float8)(x0[k + 1]);
          a0_0 = mad(b1_0, f1_0, a0_0);
          a0_1 = mad(b1_0, f1_1, a0_1);
          const float8 b1_1 = (float8)(x1[k + 1]);
          a1_0 = mad(b1_1, f1_0, a1_0);
          a1_1 = mad(b1_1, f1_1, a1_1);
          const float8 b1_2 = (float8)(x2[k + 1]);
          a2_0 = mad(b1_2, f1_0, a2_0);
          a2_1 = mad(b1_2, f1_1, a2_1);
          const float8 b1_3 = (float8)(x3[k + 1]);
          a3_0 = mad(b1_3, f1_0, a3_0);
          a3_1 = mad(b1_3, f1_1, a3_1);
          const float8 f2_0 = vload8(0, fs + (k + 2) * 16 + 0);
          const float8 f2_1 = vload8(0, fs + (k + 2) * 16 + 8);
          const float8 b2_0 = (float8)(x0[k + 2]);
          a0_0 = mad(b2_0, f2_0, a0_0);
          a0_1 = mad(b2_0, f2_1, a0_1);
          const float8 b2_1 = (float8)(x1[k + 2]);
          a1_0 = mad(b2_1, f2_0, a1_0);
          a1_1 = mad(b2_1, f2_1, a1_1);
          const float8 b2_2 = (float8)(x2[k + 2]);
          a2_0 = mad(b2_2, f2_0, a2_0);
          a2_1 = mad(b2_2, f2_1, a2_1);
          const float8 b2_3 = (float8)(x3[k + 2]);
          a3_0 = mad(b2_3, f2_0, a3_0);
          a3_1 = mad(b2_3, f2_1, a3_1);
          const float8 f3_0 = vload8(0, fs + (k + 3) * 16 + 0);
          const float8 f3_1 = vload8(0, fs + (k + 3) * 16 + 8);
          const float8 b3_0 = (float8)(x0[k + 3]);
          a0_0 = mad(b3_0, f3_0, a0_0);
          a0_1 = mad(b3_0, f3_1, a0_1);
          const float8 b3_1 = (float8)(x1[k + 3]);
          a1_0 = mad(b3_1, f3_0, a1_0);
          a1_1 = mad(b3_1, f3_1, a1_1);
          const float8 b3_2 = (float8)(x2[k + 3]);
          a2_0 = mad(b3_2, f3_0, a2_0);
          a2_1 = mad(b3_2, f3_1, a2_1);
          const float8 b3_3 = (float8)(x3[k + 3]);
          a3_0 = mad(b3_3, f3_0, a3_0);
          a3_1 = mad(b3_3, f3_1, a3_1);
        }
        vstore8(a0_0, 0, y0 + 0);
        vstore8(a0_1, 0, y0 + 8);
        vstore8(a1_0, 0, y1 + 0);
        vstore8(a1_1, 0, y1 + 8);
        vstore8(a2_0, 0, y2 + 0);
        vstore8(a2_1, 0, y2 + 8);
        vstore8(a3_0, 0, y3 + 0);
        vstore8(a3_1, 0, y3 + 8);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_642df4bcf469(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  for (int u = id * 5; u < min(id * 5 + 5, 5); ++u) {
    const int d0 = u;
    const int o0 = d0 * 32;
    const int o1 = d0 * 64;
    const int o2 = d0 * 64 + 32;
    const int end = 32;
    int i = 0;
    for (; i + 16 <= end; i += 16) {
      const float16 v0 = vload16(0, p0 + o1 + i);
      const float16 v1 = vload16(0, p1 + o2 + i);
      const float16 t3 = (v0 * (float16)(1.0f));
      const float16 t2 = ol_sigmoid(t3);
      const float16 t1 = (v0 * t2);
      const float16 t4 = (v1 + (float16)(0.0f));
      const float16 t0 = (t1 * t4);
      vstore16(t0, 0, p2 + o0 + i);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights4bit_experts_9bc970362c3d(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global const int* p3,
    __global float* p4)
{
  float f[1024] __attribute__((aligned(64)));
  const int id = get_global_id(0), e = id / 1, group = id % 1;
  __global const int* rows = p3 + 3;
  const int begin = p3[e], end = p3[e + 1];
  const size_t first = (size_t)e * 1;
  const int count = min(1, 1 - group * 1);
  for (int k0 = 0; k0 < 32 && begin < end; k0 += 32) {
    const int depth = min(32, 32 - k0);
    for (int p = 0; p < count; ++p) {
      const int u = group * 1 + p;
      const int n0 = min(u * 32, 0);
      __global const int* w = p1 + (size_t)(first + u) * 128 + 0;
      __global const float* scales = p2 + (first + u) * 64 + 0;
      w += k0 / 8 * 32;
      for (int c = 0; c < 2; ++c) {
        const int b = k0 / 16 + c;
        const float8 scale0 = vload8(0, scales + b * 32 + 0);
        const float8 zero0 = (float8)(8.0f);
        const float8 scale1 = vload8(0, scales + b * 32 + 8);
        const float8 zero1 = (float8)(8.0f);
        const float8 scale2 = vload8(0, scales + b * 32 + 16);
        const float8 zero2 = (float8)(8.0f);
        const float8 scale3 = vload8(0, scales + b * 32 + 24);
        const float8 zero3 = (float8)(8.0f);
        for (int i = 0; i < 2; ++i) {
          __private float* to = f + p * 1024 + (c * 16 + i * 8) * 16;
          const int8 w0 = vload8(0, w + 0);
          vstore8((convert_float8(((w0 >> 0) & 15)) - zero0) * scale0, 0, to + 0);
          vstore8((convert_float8(((w0 >> 4) & 15)) - zero0) * scale0, 0, to + 16);
          vstore8((convert_float8(((w0 >> 8) & 15)) - zero0) * scale0, 0, to + 32);
          vstore8((convert_float8(((w0 >> 12) & 15)) - zero0) * scale0, 0, to + 48);
          vstore8((convert_float8(((w0 >> 16) & 15)) - zero0) * scale0, 0, to + 64);
          vstore8((convert_float8(((w0 >> 20) & 15)) - zero0) * scale0, 0, to + 80);
          vstore8((convert_float8(((w0 >> 24) & 15)) - zero0) * scale0, 0, to + 96);
          vstore8((convert_float8(((w0 >> 28) & 15)) - zero0) * scale0, 0, to + 112);
          const int8 w1 = vload8(0, w + 8);
          vstore8((convert_float8(((w1 >> 0) & 15)) - zero1) * scale1, 0, to + 8);
          vstore8((convert_float8(((w1 >> 4) & 15)) - zero1) * scale1, 0, to + 24);
          vstore8((convert_float8(((w1 >> 8) & 15)) - zero1) * scale1, 0, to + 40);
          vstore8((convert_float8(((w1 >> 12) & 15)) - zero1) * scale1, 0, to + 56);
          vstore8((convert_float8(((w1 >> 16) & 15)) - zero1) * scale1, 0, to + 72);
          vstore8((convert_float8(((w1 >> 20) & 15)) - zero1) * scale1, 0, to + 88);
          vstore8((convert_float8(((w1 >> 24) & 15)) - zero1) * scale1, 0, to + 104);
          vstore8((convert_float8(((w1 >> 28) & 15)) - zero1) * scale1, 0, to + 120);
          const int8 w2 = vload8(0, w + 16);
          vstore8((convert_float8(((w2 >> 0) & 15)) - zero2) * scale2, 0, to + 512);
          vstore8((convert_float8(((w2 >> 4) & 15)) - zero2) * scale2, 0, to + 528);
          vstore8((convert_float8(((w2 >> 8) & 15)) - zero2) * scale2, 0, to + 544);
          vstore8((convert_float8(((w2 >> 12) & 15)) - zero2) * scale2, 0, to + 560);
          vstore8((convert_float8(((w2 >> 16) & 15)) - zero2) * scale2, 0, to + 576);
          vstore8((convert_float8(((w2 >> 20) & 15)) - zero2) * scale2, 0, to + 592);
          vstore8((convert_float8(((w2 >> 24) & 15)) - zero2) * scale2, 0, to + 608);
          vstore8((convert_float8(((w2 >> 28) & 15)) - zero2) * scale2, 0, to + 624);
          const int8 w3 = vload8(0, w + 24);
          vstore8((convert_float8(((w3 >> 0) & 15)) - zero3) * scale3, 0, to + 520);
          vstore8((convert_float8(((w3 >> 4) & 15)) - zero3) * scale3, 0, to + 536);
          vstore8((convert_float8(((w3 >> 8) & 15)) - zero3) * scale3, 0, to + 552);
          vstore8((convert_float8(((w3 >> 12) & 15)) - zero3) * scale3, 0, to + 568);
          vstore8((convert_float8(((w3 >> 16) & 15)) - zero3) * scale3, 0, to + 584);
          vstore8((convert_float8(((w3 >> 20) & 15)) - zero3) * scale3, 0, to + 600);
          vstore8((convert_float8(((w3 >> 24) & 15)) - zero3) * scale3, 0, to + 616);
          vstore8((convert_float8(((w3 >> 28) & 15)) - zero3) * scale3, 0, to + 632);
          w += 32;
        }
      }
    }
    int m = begin;
    for (; m + 5 <= end; m += 5) {
      const int row0 = rows[min(m + 0, end - 1)];
      __global const float* x0 = p0 + 0 + row0 * 32 + k0;
      const int row1 = rows[min(m + 1, end - 1)];
      __global const float* x1 = p0 + 0 + row1 * 32 + k0;
      const int row2 = rows[min(m + 2, end - 1)];
      __global const float* x2 = p0 + 0 + row2 * 32 + k0;
      const int row3 = rows[min(m + 3, end - 1)];
      __global const float* x3 = p0 + 0 + row3 * 32 + k0;
      const int row4 = rows[min(m + 4, end - 1)];
      __global const float* x4 = p0 + 0 + row4 * 32 + k0;
      for (int strip = 0; strip < count * 2; ++strip) {
        __private const float* fs = f + strip * 512;
        const int column = group * 32 + strip * 16;
        __global float* y0 = p4 + 0 + row0 * 32 + column;
        __global float* y1 = p4 + 0 + row1 * 32 + column;
        __global float* y2 = p4 + 0 + row2 * 32 + column;
        __global float* y3 = p4 + 0 + row3 * 32 + column;
        __global float* y4 = p4 + 0 + row4 * 32 + column;
        const float8 begin0 = (float8)(0.0f);
        const float8 begin1 = (float8)(0.0f);
        float8 a0_0 = k0 ? vload8(0, y0 + 0) : begin0;
        float8 a0_1 = k0 ? vload8(0, y0 + 8) : begin1;
        float8 a1_0 = k0 ? vload8(0, y1 + 0) : begin0;
        float8 a1_1 = k0 ? vload8(0, y1 + 8) : begin1;
        float8 a2_0 = k0 ? vload8(0, y2 + 0) : begin0;
        float8 a2_1 = k0 ? vload8(0, y2 + 8) : begin1;
        float8 a3_0 = k0 ? vload8(0, y3 + 0) : begin0;
        float8 a3_1 = k0 ? vload8(0, y3 + 8) : begin1;
        float8 a4_0 = k0 ? vload8(0, y4 + 0) : begin0;
        float8 a4_1 = k0 ? vload8(0, y4 + 8) : begin1;
        for (int k = 0; k < depth; k += 4) {
          const float8 f0_0 = vload8(0, fs + (k + 0) * 16 + 0);
          const float8 f0_1 = vload8(0, fs + (k + 0) * 16 + 8);
          const float8 b0_0 = (float8)(x0[k + 0]);
          a0_0 = mad(b0_0, f0_0, a0_0);
          a0_1 = mad(b0_0, f0_1, a0_1);
          const float8 b0_1 = (float8)(x1[k + 0]);
          a1_0 = mad(b0_1, f0_0, a1_0);
          a1_1 = mad(b0_1, f0_1, a1_1);
          const float8 b0_2 = (float8)(x2[k + 0]);
          a2_0 = mad(b0_2, f0_0, a2_0);
          a2_1 = mad(b0_2, f0_1, a2_1);
          const float8 b0_3 = (float8)(x3[k + 0]);
          a3_0 = mad(b0_3, f0_0, a3_0);
          a3_1 = mad(b0_3, f0_1, a3_1);
          const float8 b0_4 = (float8)(x4[k + 0]);
          a4_0 = mad(b0_4, f0_0, a4_0);
          a4_1 = mad(b0_4, f0_1, a4_1);
          const float8 f1_0 = vload8(0, fs + (k + 1) * 16 + 0);
          const float8 f1_1 = vload8(0, fs + (k + 1) * 16 + 8);
          const float8 b1_0 = (float8)(x0[k + 1]);
          a0_0 = mad(b1_0, f1_0, a0_0);
          a0_1 = mad(b1_0, f1_1, a0_1);
          const float8 b1_1 = (float8)(x1[k + 1]);
          a1_0 = mad(b1_1, f1_0, a1_0);
          a1_1 = mad(b1_1, f1_1, a1_1);
          const float8 b1_2 = (float8)(x2[k + 1]);
          a2_0 = mad(b1_2, f1_0, a2_0);
          a2_1 = mad(b1_2, f1_1, a2_1);
          const float8 b1_3 = (float8)(x3[k + 1]);
          a3_0 = mad(b1_3, f1_0, a3_0);
          a3_1 = mad(b1_3, f1_1, a3_1);
          const float8 b1_4 = (float8)(x4[k + 1]);
          a4_0 = mad(b1_4, f1_0, a4_0);
          a4_1 = mad(b1_4, f1_1, a4_1);
          const float8 f2_0 = vload8(0, fs + (k + 2) * 16 + 0);
          const float8 f2_1 = vload8(0, fs + (k + 2) * 16 + 8);
          const float8 b2_0 = (float8)(x0[k + 2]);
          a0_0 = mad(b2_0, f2_0, a0_0);
          a0_1 = mad(b2_0, f2_1, a0_1);
          const float8 b2_1 = (float8)(x1[k + 2]);
          a1_0 = mad(b2_1, f2_0, a1_0);
          a1_1 = mad(b2_1, f2_1, a1_1);
          const float8 b2_2 = (float8)(x2[k + 2]);
          a2_0 = mad(b2_2, f2_0, a2_0);
          a2_1 = mad(b2_2, f2_1, a2_1);
          const float8 b2_3 = (float8)(x3[k + 2]);
          a3_0 = mad(b2_3, f2_0, a3_0);
          a3_1 = mad(b2_3, f2_1, a3_1);
          const float8 b2_4 = (float8)(x4[k + 2]);
          a4_0 = mad(b2_4, f2_0, a4_0);
          a4_1 = mad(b2_4, f2_1, a4_1);
          const float8 f3_0 = vload8(0, fs + (k + 3) * 16 + 0);
          const float8 f3_1 = vload8(0, fs + (k + 3) * 16 + 8);
          const float8 b3_0 = (float8)(x0[k + 3]);
          a0_0 = mad(b3_0, f3_0, a0_0);
          a0_1 = mad(b3_0, f3_1, a0_1);
          const float8 b3_1 = (float8)(x1[k + 3]);
          a1_0 = mad(b3_1, f3_0, a1_0);
          a1_1 = mad(b3_1, f3_1, a1_1);
          const float8 b3_2 = (float8)(x2[k + 3]);
          a2_0 = mad(b3_2, f3_0, a2_0);
          a2_1 = mad(b3_2, f3_1, a2_1);
          const float8 b3_3 = (float8)(x3[k + 3]);
          a3_0 = mad(b3_3, f3_0, a3_0);
          a3_1 = mad(b3_3, f3_1, a3_1);
          const float8 b3_4 = (float8)(x4[k + 3]);
          a4_0 = mad(b3_4, f3_0, a4_0);
          a4_1 = mad(b3_4, f3_1, a4_1);
        }
        vstore8(a0_0, 0, y0 + 0);
        vstore8(a0_1, 0, y0 + 8);
        vstore8(a1_0, 0, y1 + 0);
        vstore8(a1_1, 0, y1 + 8);
        vstore8(a2_0, 0, y2 + 0);
        vstore8(a2_1, 0, y2 + 8);
        vstore8(a3_0, 0, y3 + 0);
        vstore8(a3_1, 0, y3 + 8);
        vstore8(a4_0, 0, y4 + 0);
        vstore8(a4_1, 0, y4 + 8);
      }
    }
    for (; m < end; m += 4) {
      const int row0 = rows[min(m + 0, end - 1)];
      __global const float* x0 = p0 + 0 + row0 * 32 + k0;
      const int row1 = rows[min(m + 1, end - 1)];
      __global const float* x1 = p0 + 0 + row1 * 32 + k0;
      const int row2 = rows[min(m + 2, end - 1)];
      __global const float* x2 = p0 + 0 + row2 * 32 + k0;
      const int row3 = rows[min(m + 3, end - 1)];
      __global const float* x3 = p0 + 0 + row3 * 32 + k0;
      for (int strip = 0; strip < count * 2; ++strip) {
        __private const float* fs = f + strip * 512;
        const int column = group * 32 + strip * 16;
        __global float* y0 = p4 + 0 + row0 * 32 + column;
        __global float* y1 = p4 + 0 + row1 * 32 + column;
        __global float* y2 = p4 + 0 + row2 * 32 + column;
        __global float* y3 = p4 + 0 + row3 * 32 + column;
        const float8 begin0 = (float8)(0.0f);
        const float8 begin1 = (float8)(0.0f);
        float8 a0_0 = k0 ? vload8(0, y0 + 0) : begin0;
        float8 a0_1 = k0 ? vload8(0, y0 + 8) : begin1;
        float8 a1_0 = k0 ? vload8(0, y1 + 0) : begin0;
        float8 a1_1 = k0 ? vload8(0, y1 + 8) : begin1;
        float8 a2_0 = k0 ? vload8(0, y2 + 0) : begin0;
        float8 a2_1 = k0 ? vload8(0, y2 + 8) : begin1;
        float8 a3_0 = k0 ? vload8(0, y3 + 0) : begin0;
        float8 a3_1 = k0 ? vload8(0, y3 + 8) : begin1;
        for (int k = 0; k < depth; k += 4) {
          const float8 f0_0 = vload8(0, fs + (k + 0) * 16 + 0);
          const float8 f0_1 = vload8(0, fs + (k + 0) * 16 + 8);
          const float8 b0_0 = (float8)(x0[k + 0]);
          a0_0 = mad(b0_0, f0_0, a0_0);
          a0_1 = mad(b0_0, f0_1, a0_1);
          const float8 b0_1 = (float8)(x1[k + 0]);
          a1_0 = mad(b0_1, f0_0, a1_0);
          a1_1 = mad(b0_1, f0_1, a1_1);
          const float8 b0_2 = (float8)(x2[k + 0]);
          a2_0 = mad(b0_2, f0_0, a2_0);
          a2_1 = mad(b0_2, f0_1, a2_1);
          const float8 b0_3 = (float8)(x3[k + 0]);
          a3_0 = mad(b0_3, f0_0, a3_0);
          a3_1 = mad(b0_3, f0_1, a3_1);
          const float8 f1_0 = vload8(0, fs + (k + 1) * 16 + 0);
          const float8 f1_1 = vload8(0, fs + (k + 1) * 16 + 8);
          const float8 b1_0 = (float8)(x0[k + 1]);
          a0_0 = mad(b1_0, f1_0, a0_0);
          a0_1 = mad(b1_0, f1_1, a0_1);
          const float8 b1_1 = (float8)(x1[k + 1]);
          a1_0 = mad(b1_1, f1_0, a1_0);
          a1_1 = mad(b1_1, f1_1, a1_1);
          const float8 b1_2 = (float8)(x2[k + 1]);
          a2_0 = mad(b1_2, f1_0, a2_0);
          a2_1 = mad(b1_2, f1_1, a2_1);
          const float8 b1_3 = (float8)(x3[k + 1]);
          a3_0 = mad(b1_3, f1_0, a3_0);
          a3_1 = mad(b1_3, f1_1, a3_1);
          const float8 f2_0 = vload8(0, fs + (k + 2) * 16 + 0);
          const float8 f2_1 = vload8(0, fs + (k + 2) * 16 + 8);
          const float8 b2_0 = (float8)(x0[k + 2]);
          a0_0 = mad(b2_0, f2_0, a0_0);
          a0_1 = mad(b2_0, f2_1, a0_1);
          const float8 b2_1 = (float8)(x1[k + 2]);
          a1_0 = mad(b2_1, f2_0, a1_0);
          a1_1 = mad(b2_1, f2_1, a1_1);
          const float8 b2_2 = (float8)(x2[k + 2]);
          a2_0 = mad(b2_2, f2_0, a2_0);
          a2_1 = mad(b2_2, f2_1, a2_1);
          const float8 b2_3 = (float8)(x3[k + 2]);
          a3_0 = mad(b2_3, f2_0, a3_0);
          a3_1 = mad(b2_3, f2_1, a3_1);
          const float8 f3_0 = vload8(0, fs + (k + 3) * 16 + 0);
          const float8 f3_1 = vload8(0, fs + (k + 3) * 16 + 8);
          const float8 b3_0 = (float8)(x0[k + 3]);
          a0_0 = mad(b3_0, f3_0, a0_0);
          a0_1 = mad(b3_0, f3_1, a0_1);
          const float8 b3_1 = (float8)(x1[k + 3]);
          a1_0 = mad(b3_1, f3_0, a1_0);
          a1_1 = mad(b3_1, f3_1, a1_1);
          const float8 b3_2 = (float8)(x2[k + 3]);
          a2_0 = mad(b3_2, f3_0, a2_0);
          a2_1 = mad(b3_2, f3_1, a2_1);
          const float8 b3_3 = (float8)(x3[k + 3]);
          a3_0 = mad(b3_3, f3_0, a3_0);
          a3_1 = mad(b3_3, f3_1, a3_1);
        }
        vstore8(a0_0, 0, y0 + 0);
        vstore8(a0_1, 0, y0 + 8);
        vstore8(a1_0, 0, y1 + 0);
        vstore8(a1_1, 0, y1 + 8);
        vstore8(a2_0, 0, y2 + 0);
        vstore8(a2_1, 0, y2 + 8);
        vstore8(a3_0, 0, y3 + 0);
        vstore8(a3_1, 0, y3 + 8);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_8cb9b8797176(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  for (int u = id * 5; u < min(id * 5 + 5, 5); ++u) {
    const int d0 = u;
    const int o0 = d0 * 32;
    const int o1 = d0 * 32;
    const int o2 = d0;
    const int end = 32;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const float8 v0 = vload8(0, p0 + o1 + i);
      const float8 v1 = (float8)(p1[o2]);
      const int8 t1 = (v1 > (float8)(0.0f));
      const float8 t2 = (v0 * v1);
      const float8 t0 = select((float8)(0.0f), t2, t1);
      vstore8(t0, 0, p2 + o0 + i);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void reduce_fc80a8912cc3(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 20; u < min(id * 20 + 20, 20); ++u) {
    const int d1 = u % 4;
    const int d0 = (u) / 4;
    const int n0 = min(d1 * 8, 24);
    const int x0 = d0 * 32 + n0;
    const int y0 = d0 * 32 + n0;
    float8 a = (float8)(0);
    const float8 v = vload8(0, p0 + x0);
    a = a + v;
    const float8 result = a;
    vstore8(result, 0, p1 + y0);
  }
}
