// QMoE(QMoE0.0, QMoE0.1, QMoE0.2, QMoE0.3, QMoE0.4, QMoE0.5, QMoE0.6)
//
// launch 0: topindices_db5092eb88b3(arena[0, +8], arena[384, +8]), 1 work-items in groups of 1
// launch 1: gatherelements_1b465badab4c(arena[0, +8], arena[384, +8], arena[128, +4]), 1 work-items in groups of 1
// launch 2: softmax_b9edecec8e56(arena[128, +4], arena[512, +4]), 1 work-items in groups of 1
// launch 3: weights4bit_experts_ab48569cf673(arena[256, +128], weight 0, weight 1, weight 2, arena[384, +8], arena[0, +256]), 1 work-items in groups of 1
// launch 4: pointwise_349f8e547843(arena[0, +256], arena[0, +256], arena[256, +128]), 1 work-items in groups of 1
// launch 5: weights4bit_experts_e3de31e2ff12(arena[256, +128], weight 1, weight 2, arena[384, +8], arena[0, +128]), 1 work-items in groups of 1
// launch 6: pointwise_95c360b30710(arena[0, +128], arena[512, +4], arena[128, +128]), 1 work-items in groups of 1
// launch 7: reduce_b74c1e5a5182(arena[128, +128], arena[0, +128]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void topindices_db5092eb88b3(
    __global const float* p0,
    __global long* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 1); ++u) {
    __global const float* x = p0 + 0;
    __global long* y = p1 + 0;
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
__kernel void gatherelements_1b465badab4c(
    __global const float* p0,
    __global const long* p1,
    __global float* p2,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 1); ++u) {
    long pick = p1[0];
    pick += pick < 0 ? 2 : 0;
    if (pick < 0 || pick >= 2) { *wrong = 1; pick = 0; }
    p2[0] = p0[(int)pick];
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void softmax_b9edecec8e56(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 1; u < min(id * 1 + 1, 1); ++u) {
    const int x0 = 0;
    const int y0 = 0;
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
__kernel void weights4bit_experts_ab48569cf673(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global const float* p3,
    __global const long* p4,
    __global float* p5)
{
  float x[32], sums[2];
  const int id = get_global_id(0), m = id / 1;
  const int e = (int)p4[0 + m];
  __global const float* row = p0 + 0 + m * 32;
  for (int b = 0; b < 2; ++b) {
    float sum = 0.0f;
    for (int i = b * 16; i < (b + 1) * 16; i += 8) {
      const float v0 = row[i + 0];
      x[i + 0] = v0 * 1.0f;
      const float v1 = row[i + 1];
      x[i + 1] = v1 * 0.0625f;
      const float v2 = row[i + 2];
      x[i + 2] = v2 * 0.00390625f;
      const float v3 = row[i + 3];
      x[i + 3] = v3 * 0.000244140625f;
      const float v4 = row[i + 4];
      x[i + 4] = v4 * 1.52587890625e-05f;
      const float v5 = row[i + 5];
      x[i + 5] = v5 * 9.5367431640625e-07f;
      const float v6 = row[i + 6];
      x[i + 6] = v6 * 5.960464477539063e-08f;
      const float v7 = row[i + 7];
      x[i + 7] = v7 * 1.0f;
      sum += v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7;
    }
    sums[b] = sum;
  }
  const int first = id % 1 * 2;
  for (int u = first; u < min(first + 2, 2); ++u) {
    const size_t panel = (size_t)e * 2 + u;
    const int n0 = min(u * 32, 32);
    __global const int* w = p1 + (size_t)panel * 128 + 0;
    __global const float* scales = p2 + panel * 64 + 0;
    float8 t0_0 = (float8)(0.0f), t0_1 = (float8)(0.0f), t0_2 = (float8)(0.0f), t0_3 = (float8)(0.0f);
    for (int b = 0; b < 2; ++b) {
      float8 a0_0 = (float8)(0.0f), a0_1 = (float8)(0.0f), a0_2 = (float8)(0.0f), a0_3 = (float8)(0.0f);
      for (int i = 0; i < 2; ++i) {
        __private const float* xi = x + b * 16 + i * 8;
        const int8 w0 = vload8(0, w + 0);
        const int8 w1 = vload8(0, w + 8);
        const int8 w2 = vload8(0, w + 16);
        const int8 w3 = vload8(0, w + 24);
        w += 32;
        const float8 x0 = (float8)(xi[0]);
        a0_0 = mad(x0, convert_float8(w0 & 15), a0_0);
        a0_1 = mad(x0, convert_float8(w1 & 15), a0_1);
        a0_2 = mad(x0, convert_float8(w2 & 15), a0_2);
        a0_3 = mad(x0, convert_float8(w3 & 15), a0_3);
        const float8 x1 = (float8)(xi[1]);
        a0_0 = mad(x1, convert_float8(w0 & 240), a0_0);
        a0_1 = mad(x1, convert_float8(w1 & 240), a0_1);
        a0_2 = mad(x1, convert_float8(w2 & 240), a0_2);
        a0_3 = mad(x1, convert_float8(w3 & 240), a0_3);
        const float8 x2 = (float8)(xi[2]);
        a0_0 = mad(x2, convert_float8(w0 & 3840), a0_0);
        a0_1 = mad(x2, convert_float8(w1 & 3840), a0_1);
        a0_2 = mad(x2, convert_float8(w2 & 3840), a0_2);
        a0_3 = mad(x2, convert_float8(w3 & 3840), a0_3);
        const float8 x3 = (float8)(xi[3]);
        a0_0 = mad(x3, convert_float8(w0 & 61440), a0_0);
        a0_1 = mad(x3, convert_float8(w1 & 61440), a0_1);
        a0_2 = mad(x3, convert_float8(w2 & 61440), a0_2);
        a0_3 = mad(x3, convert_float8(w3 & 61440), a0_3);
        const float8 x4 = (float8)(xi[4]);
        a0_0 = mad(x4, convert_float8(w0 & 983040), a0_0);
        a0_1 = mad(x4, convert_float8(w1 & 983040), a0_1);
        a0_2 = mad(x4, convert_float8(w2 & 983040), a0_2);
        a0_3 = mad(x4, convert_float8(w3 & 983040), a0_3);
        const float8 x5 = (float8)(xi[5]);
        a0_0 = mad(x5, convert_float8(w0 & 15728640), a0_0);
        a0_1 = mad(x5, convert_float8(w1 & 15728640), a0_1);
        a0_2 = mad(x5, convert_float8(w2 & 15728640), a0_2);
        a0_3 = mad(x5, convert_float8(w3 & 15728640), a0_3);
        const float8 x6 = (float8)(xi[6]);
        a0_0 = mad(x6, convert_float8(w0 & 251658240), a0_0);
        a0_1 = mad(x6, convert_float8(w1 & 251658240), a0_1);
        a0_2 = mad(x6, convert_float8(w2 & 251658240), a0_2);
        a0_3 = mad(x6, convert_float8(w3 & 251658240), a0_3);
        const float8 x7 = (float8)(xi[7]);
        a0_0 = mad(x7, convert_float8((w0 >> 28) & 15), a0_0);
        a0_1 = mad(x7, convert_float8((w1 >> 28) & 15), a0_1);
        a0_2 = mad(x7, convert_float8((w2 >> 28) & 15), a0_2);
        a0_3 = mad(x7, convert_float8((w3 >> 28) & 15), a0_3);
      }
      t0_0 = mad(vload8(0, scales + b * 32 + 0), a0_0 - (float8)(8.0f) * sums[b], t0_0);
      t0_1 = mad(vload8(0, scales + b * 32 + 8), a0_1 - (float8)(8.0f) * sums[b], t0_1);
      t0_2 = mad(vload8(0, scales + b * 32 + 16), a0_2 - (float8)(8.0f) * sums[b], t0_2);
      t0_3 = mad(vload8(0, scales + b * 32 + 24), a0_3 - (float8)(8.0f) * sums[b], t0_3);
    }
    vstore8(t0_0 + vload8(0, p3 + e * 64 + n0 + 0), 0, p5 + 0 + m * 64 + n0 + 0);
    vstore8(t0_1 + vload8(0, p3 + e * 64 + n0 + 8), 0, p5 + 0 + m * 64 + n0 + 8);
    vstore8(t0_2 + vload8(0, p3 + e * 64 + n0 + 16), 0, p5 + 0 + m * 64 + n0 + 16);
    vstore8(t0_3 + vload8(0, p3 + e * 64 + n0 + 24), 0, p5 + 0 + m * 64 + n0 + 24);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_349f8e547843(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int u = id;
  const int o0 = 0;
  const int o1 = 0;
  const int o2 = 32;
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

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void weights4bit_experts_e3de31e2ff12(
    __global const float* p0,
    __global const int* p1,
    __global const float* p2,
    __global const long* p3,
    __global float* p4)
{
  float x[32], sums[2];
  const int id = get_global_id(0), m = id / 1;
  const int e = (int)p3[0 + m];
  __global const float* row = p0 + 0 + m * 32;
  for (int b = 0; b < 2; ++b) {
    float sum = 0.0f;
    for (int i = b * 16; i < (b + 1) * 16; i += 8) {
      const float v0 = row[i + 0];
      x[i + 0] = v0 * 1.0f;
      const float v1 = row[i + 1];
      x[i + 1] = v1 * 0.0625f;
      const float v2 = row[i + 2];
      x[i + 2] = v2 * 0.00390625f;
      const float v3 = row[i + 3];
      x[i + 3] = v3 * 0.000244140625f;
      const float v4 = row[i + 4];
      x[i + 4] = v4 * 1.52587890625e-05f;
      const float v5 = row[i + 5];
      x[i + 5] = v5 * 9.5367431640625e-07f;
      const float v6 = row[i + 6];
      x[i + 6] = v6 * 5.960464477539063e-08f;
      const float v7 = row[i + 7];
      x[i + 7] = v7 * 1.0f;
      sum += v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7;
    }
    sums[b] = sum;
  }
  const int first = id % 1 * 1;
  for (int u = first; u < min(first + 1, 1); ++u) {
    const size_t panel = (size_t)e * 1 + u;
    const int n0 = min(u * 32, 0);
    __global const int* w = p1 + (size_t)panel * 128 + 0;
    __global const float* scales = p2 + panel * 64 + 0;
    float8 t0_0 = (float8)(0.0f), t0_1 = (float8)(0.0f), t0_2 = (float8)(0.0f), t0_3 = (float8)(0.0f);
    for (int b = 0; b < 2; ++b) {
      float8 a0_0 = (float8)(0.0f), a0_1 = (float8)(0.0f), a0_2 = (float8)(0.0f), a0_3 = (float8)(0.0f);
      for (int i = 0; i < 2; ++i) {
        __private const float* xi = x + b * 16 + i * 8;
        const int8 w0 = vload8(0, w + 0);
        const int8 w1 = vload8(0, w + 8);
        const int8 w2 = vload8(0, w + 16);
        const int8 w3 = vload8(0, w + 24);
        w += 32;
        const float8 x0 = (float8)(xi[0]);
        a0_0 = mad(x0, convert_float8(w0 & 15), a0_0);
        a0_1 = mad(x0, convert_float8(w1 & 15), a0_1);
        a0_2 = mad(x0, convert_float8(w2 & 15), a0_2);
        a0_3 = mad(x0, convert_float8(w3 & 15), a0_3);
        const float8 x1 = (float8)(xi[1]);
        a0_0 = mad(x1, convert_float8(w0 & 240), a0_0);
        a0_1 = mad(x1, convert_float8(w1 & 240), a0_1);
        a0_2 = mad(x1, convert_float8(w2 & 240), a0_2);
        a0_3 = mad(x1, convert_float8(w3 & 240), a0_3);
        const float8 x2 = (float8)(xi[2]);
        a0_0 = mad(x2, convert_float8(w0 & 3840), a0_0);
        a0_1 = mad(x2, convert_float8(w1 & 3840), a0_1);
        a0_2 = mad(x2, convert_float8(w2 & 3840), a0_2);
        a0_3 = mad(x2, convert_float8(w3 & 3840), a0_3);
        const float8 x3 = (float8)(xi[3]);
        a0_0 = mad(x3, convert_float8(w0 & 61440), a0_0);
        a0_1 = mad(x3, convert_float8(w1 & 61440), a0_1);
        a0_2 = mad(x3, convert_float8(w2 & 61440), a0_2);
        a0_3 = mad(x3, convert_float8(w3 & 61440), a0_3);
        const float8 x4 = (float8)(xi[4]);
        a0_0 = mad(x4, convert_float8(w0 & 983040), a0_0);
        a0_1 = mad(x4, convert_float8(w1 & 983040), a0_1);
        a0_2 = mad(x4, convert_float8(w2 & 983040), a0_2);
        a0_3 = mad(x4, convert_float8(w3 & 983040), a0_3);
        const float8 x5 = (float8)(xi[5]);
        a0_0 = mad(x5, convert_float8(w0 & 15728640), a0_0);
        a0_1 = mad(x5, convert_float8(w1 & 15728640), a0_1);
        a0_2 = mad(x5, convert_float8(w2 & 15728640), a0_2);
        a0_3 = mad(x5, convert_float8(w3 & 15728640), a0_3);
        const float8 x6 = (float8)(xi[6]);
        a0_0 = mad(x6, convert_float8(w0 & 251658240), a0_0);
        a0_1 = mad(x6, convert_float8(w1 & 251658240), a0_1);
        a0_2 = mad(x6, convert_float8(w2 & 251658240), a0_2);
        a0_3 = mad(x6, convert_float8(w3 & 251658240), a0_3);
        const float8 x7 = (float8)(xi[7]);
        a0_0 = mad(x7, convert_float8((w0 >> 28) & 15), a0_0);
        a0_1 = mad(x7, convert_float8((w1 >> 28) & 15), a0_1);
        a0_2 = mad(x7, convert_float8((w2 >> 28) & 15), a0_2);
        a0_3 = mad(x7, convert_float8((w3 >> 28) & 15), a0_3);
      }
      t0_0 = mad(vload8(0, scales + b * 32 + 0), a0_0 - (float8)(8.0f) * sums[b], t0_0);
      t0_1 = mad(vload8(0, scales + b * 32 + 8), a0_1 - (float8)(8.0f) * sums[b], t0_1);
      t0_2 = mad(vload8(0, scales + b * 32 + 16), a0_2 - (float8)(8.0f) * sums[b], t0_2);
      t0_3 = mad(vload8(0, scales + b * 32 + 24), a0_3 - (float8)(8.0f) * sums[b], t0_3);
    }
    vstore8(t0_0, 0, p4 + 0 + m * 32 + n0 + 0);
    vstore8(t0_1, 0, p4 + 0 + m * 32 + n0 + 8);
    vstore8(t0_2, 0, p4 + 0 + m * 32 + n0 + 16);
    vstore8(t0_3, 0, p4 + 0 + m * 32 + n0 + 24);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_95c360b30710(
    __global const float* p0,
    __global const float* p1,
    __global float* p2)
{
  const int id = get_global_id(0);
  const int u = id;
  const int o0 = 0;
  const int o1 = 0;
  const int o2 = 0;
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

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void reduce_b74c1e5a5182(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 4; u < min(id * 4 + 4, 4); ++u) {
    const int d0 = u;
    const int n0 = min(d0 * 8, 24);
    const int x0 = n0;
    const int y0 = n0;
    float8 a = (float8)(0);
    const float8 v = vload8(0, p0 + x0);
    a = a + v;
    const float8 result = a;
    vstore8(result, 0, p1 + y0);
  }
}
