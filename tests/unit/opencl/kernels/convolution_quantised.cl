// QLinearConv(QLinearConv0.0, QLinearConv0.1, QLinearConv0.2, QLinearConv0.3, QLinearConv0.4, QLinearConv0.5, QLinearConv0.6, QLinearConv0.7)
//
// launch 0: pointwise_33adeb0cbcbe(arena[384, +288], arena[0, +288]), 1 work-items in groups of 1
// launch 1: integer_15d3dc949a05(arena[0, +288], weight 0, weight 1, arena[384, +256]), 1 work-items in groups of 1
// launch 2: pointwise_4e999f02b01b(arena[384, +256], arena[640, +256]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_33adeb0cbcbe(
    __global const uchar* p0,
    __global uchar* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 36; u < min(id * 36 + 36, 36); ++u) {
    const int d0 = u;
    const int o0 = d0 * 8;
    const int o1 = d0;
    const int end = 8;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const uchar8 v0 = (uchar8)(p0[o1 + i * 36 + 0], p0[o1 + i * 36 + 36], p0[o1 + i * 36 + 72], p0[o1 + i * 36 + 108], p0[o1 + i * 36 + 144], p0[o1 + i * 36 + 180], p0[o1 + i * 36 + 216], p0[o1 + i * 36 + 252]);
      vstore8(v0, 0, p1 + o0 + i);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void integer_15d3dc949a05(
    __global const uchar* p0,
    __global const char* p1,
    __global const int* p2,
    __global uchar* p3)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 16, 0);
  __global const uchar* x = p0 + 0;
  __global const char* w = p1 + 0 + panel * 1248;
  __global uchar* y = p3 + 0 + n0 * 1;
  const int8 h1_0 = vload8(0, p2 + 0 + n0 * 1 + 0);
  const int8 h1_1 = vload8(0, p2 + 0 + n0 * 1 + 8);
  for (int t = group * 4; t < min(group * 4 + 4, 4); ++t) {
    const int r0 = min((t) * 1, 3), c0 = 0;
    __global const uchar* xt = x + r0 * 48 + c0 * 8;
    int8 a0_0 = vload8(0, (__global const int*)(w + 1152));
    int8 a0_1 = vload8(0, (__global const int*)(w + 1184));
    int8 a1_0 = vload8(0, (__global const int*)(w + 1152));
    int8 a1_1 = vload8(0, (__global const int*)(w + 1184));
    int8 a2_0 = vload8(0, (__global const int*)(w + 1152));
    int8 a2_1 = vload8(0, (__global const int*)(w + 1184));
    int8 a3_0 = vload8(0, (__global const int*)(w + 1152));
    int8 a3_1 = vload8(0, (__global const int*)(w + 1184));
    for (int i = 0; i < 3; ++i) {
      __global const uchar* xp = xt + i * 48;
      __global const char* wp = w + i * 384;
      for (int k = 0; k < 24; k += 4) {
        const int8 x0 = (int8)(as_int(vload4(0, xp + 0)));
        const int8 x1 = (int8)(as_int(vload4(0, xp + 8)));
        const int8 x2 = (int8)(as_int(vload4(0, xp + 16)));
        const int8 x3 = (int8)(as_int(vload4(0, xp + 24)));
        const int8 w_0 = vload8(0, (__global const int*)(wp + 0));
        a0_0 = ol_dot(a0_0, x0, w_0);
        a1_0 = ol_dot(a1_0, x1, w_0);
        a2_0 = ol_dot(a2_0, x2, w_0);
        a3_0 = ol_dot(a3_0, x3, w_0);
        const int8 w_1 = vload8(0, (__global const int*)(wp + 32));
        a0_1 = ol_dot(a0_1, x0, w_1);
        a1_1 = ol_dot(a1_1, x1, w_1);
        a2_1 = ol_dot(a2_1, x2, w_1);
        a3_1 = ol_dot(a3_1, x3, w_1);
        xp += 4; wp += 64;
      }
    }
    {
      {
        __global const char* wp = p1 + as_int(vload4(0, w + 1216));
        for (int e = as_int(vload4(0, w + 1220)); e > 0; --e) {
          __global const uchar* xp = xt + as_int(vload4(0, wp + 0));
          wp += 4;
          const int8 x0 = (int8)(as_int(vload4(0, xp + 0)));
          const int8 x1 = (int8)(as_int(vload4(0, xp + 8)));
          const int8 x2 = (int8)(as_int(vload4(0, xp + 16)));
          const int8 x3 = (int8)(as_int(vload4(0, xp + 24)));
          const int8 w_0 = vload8(0, (__global const int*)(wp + 0));
          a0_0 = ol_dot(a0_0, x0, w_0);
          a1_0 = ol_dot(a1_0, x1, w_0);
          a2_0 = ol_dot(a2_0, x2, w_0);
          a3_0 = ol_dot(a3_0, x3, w_0);
          wp += 32;
        }
      }
      {
        __global const char* wp = p1 + as_int(vload4(0, w + 1224));
        for (int e = as_int(vload4(0, w + 1228)); e > 0; --e) {
          __global const uchar* xp = xt + as_int(vload4(0, wp + 0));
          wp += 4;
          const int8 x0 = (int8)(as_int(vload4(0, xp + 0)));
          const int8 x1 = (int8)(as_int(vload4(0, xp + 8)));
          const int8 x2 = (int8)(as_int(vload4(0, xp + 16)));
          const int8 x3 = (int8)(as_int(vload4(0, xp + 24)));
          const int8 w_1 = vload8(0, (__global const int*)(wp + 0));
          a0_1 = ol_dot(a0_1, x0, w_1);
          a1_1 = ol_dot(a1_1, x1, w_1);
          a2_1 = ol_dot(a2_1, x2, w_1);
          a3_1 = ol_dot(a3_1, x3, w_1);
          wp += 32;
        }
      }
    }
    const int8 q0_0_t7 = (a0_0 - h1_0);
    const float8 q0_0_t6 = convert_float8(q0_0_t7);
    const float8 q0_0_t5 = (q0_0_t6 * (float8)((0x1.0000000000000p-1f)));
    const float8 q0_0_t4 = rint(q0_0_t5);
    const float8 q0_0_t8 = convert_float8((uchar8)(((uchar)3)));
    const float8 q0_0_t3 = (q0_0_t4 + q0_0_t8);
    const float8 q0_0_t2 = select((float8)(0.0f), q0_0_t3, q0_0_t3 > (float8)(0.0f));
    const float8 q0_0_t1 = select((float8)(255.0f), q0_0_t2, q0_0_t2 < (float8)(255.0f));
    const uchar8 q0_0_t0 = convert_uchar8(convert_int8(q0_0_t1));
    vstore8(q0_0_t0, 0, y + r0 * 64 + c0 * 16 + 0);
    const int8 q0_1_t7 = (a0_1 - h1_1);
    const float8 q0_1_t6 = convert_float8(q0_1_t7);
    const float8 q0_1_t5 = (q0_1_t6 * (float8)((0x1.0000000000000p-1f)));
    const float8 q0_1_t4 = rint(q0_1_t5);
    const float8 q0_1_t8 = convert_float8((uchar8)(((uchar)3)));
    const float8 q0_1_t3 = (q0_1_t4 + q0_1_t8);
    const float8 q0_1_t2 = select((float8)(0.0f), q0_1_t3, q0_1_t3 > (float8)(0.0f));
    const float8 q0_1_t1 = select((float8)(255.0f), q0_1_t2, q0_1_t2 < (float8)(255.0f));
    const uchar8 q0_1_t0 = convert_uchar8(convert_int8(q0_1_t1));
    vstore8(q0_1_t0, 0, y + r0 * 64 + c0 * 16 + 8);
    const int8 q1_0_t7 = (a1_0 - h1_0);
    const float8 q1_0_t6 = convert_float8(q1_0_t7);
    const float8 q1_0_t5 = (q1_0_t6 * (float8)((0x1.0000000000000p-1f)));
    const float8 q1_0_t4 = rint(q1_0_t5);
    const float8 q1_0_t8 = convert_float8((uchar8)(((uchar)3)));
    const float8 q1_0_t3 = (q1_0_t4 + q1_0_t8);
    const float8 q1_0_t2 = select((float8)(0.0f), q1_0_t3, q1_0_t3 > (float8)(0.0f));
    const float8 q1_0_t1 = select((float8)(255.0f), q1_0_t2, q1_0_t2 < (float8)(255.0f));
    const uchar8 q1_0_t0 = convert_uchar8(convert_int8(q1_0_t1));
    vstore8(q1_0_t0, 0, y + r0 * 64 + c0 * 16 + 16);
    const int8 q1_1_t7 = (a1_1 - h1_1);
    const float8 q1_1_t6 = convert_float8(q1_1_t7);
    const float8 q1_1_t5 = (q1_1_t6 * (float8)((0x1.0000000000000p-1f)));
    const float8 q1_1_t4 = rint(q1_1_t5);
    const float8 q1_1_t8 = convert_float8((uchar8)(((uchar)3)));
    const float8 q1_1_t3 = (q1_1_t4 + q1_1_t8);
    const float8 q1_1_t2 = select((float8)(0.0f), q1_1_t3, q1_1_t3 > (float8)(0.0f));
    const float8 q1_1_t1 = select((float8)(255.0f), q1_1_t2, q1_1_t2 < (float8)(255.0f));
    const uchar8 q1_1_t0 = convert_uchar8(convert_int8(q1_1_t1));
    vstore8(q1_1_t0, 0, y + r0 * 64 + c0 * 16 + 24);
    const int8 q2_0_t7 = (a2_0 - h1_0);
    const float8 q2_0_t6 = convert_float8(q2_0_t7);
    const float8 q2_0_t5 = (q2_0_t6 * (float8)((0x1.0000000000000p-1f)));
    const float8 q2_0_t4 = rint(q2_0_t5);
    const float8 q2_0_t8 = convert_float8((uchar8)(((uchar)3)));
    const float8 q2_0_t3 = (q2_0_t4 + q2_0_t8);
    const float8 q2_0_t2 = select((float8)(0.0f), q2_0_t3, q2_0_t3 > (float8)(0.0f));
    const float8 q2_0_t1 = select((float8)(255.0f), q2_0_t2, q2_0_t2 < (float8)(255.0f));
    const uchar8 q2_0_t0 = convert_uchar8(convert_int8(q2_0_t1));
    vstore8(q2_0_t0, 0, y + r0 * 64 + c0 * 16 + 32);
    const int8 q2_1_t7 = (a2_1 - h1_1);
    const float8 q2_1_t6 = convert_float8(q2_1_t7);
    const float8 q2_1_t5 = (q2_1_t6 * (float8)((0x1.0000000000000p-1f)));
    const float8 q2_1_t4 = rint(q2_1_t5);
    const float8 q2_1_t8 = convert_float8((uchar8)(((uchar)3)));
    const float8 q2_1_t3 = (q2_1_t4 + q2_1_t8);
    const float8 q2_1_t2 = select((float8)(0.0f), q2_1_t3, q2_1_t3 > (float8)(0.0f));
    const float8 q2_1_t1 = select((float8)(255.0f), q2_1_t2, q2_1_t2 < (float8)(255.0f));
    const uchar8 q2_1_t0 = convert_uchar8(convert_int8(q2_1_t1));
    vstore8(q2_1_t0, 0, y + r0 * 64 + c0 * 16 + 40);
    const int8 q3_0_t7 = (a3_0 - h1_0);
    const float8 q3_0_t6 = convert_float8(q3_0_t7);
    const float8 q3_0_t5 = (q3_0_t6 * (float8)((0x1.0000000000000p-1f)));
    const float8 q3_0_t4 = rint(q3_0_t5);
    const float8 q3_0_t8 = convert_float8((uchar8)(((uchar)3)));
    const float8 q3_0_t3 = (q3_0_t4 + q3_0_t8);
    const float8 q3_0_t2 = select((float8)(0.0f), q3_0_t3, q3_0_t3 > (float8)(0.0f));
    const float8 q3_0_t1 = select((float8)(255.0f), q3_0_t2, q3_0_t2 < (float8)(255.0f));
    const uchar8 q3_0_t0 = convert_uchar8(convert_int8(q3_0_t1));
    vstore8(q3_0_t0, 0, y + r0 * 64 + c0 * 16 + 48);
    const int8 q3_1_t7 = (a3_1 - h1_1);
    const float8 q3_1_t6 = convert_float8(q3_1_t7);
    const float8 q3_1_t5 = (q3_1_t6 * (float8)((0x1.0000000000000p-1f)));
    const float8 q3_1_t4 = rint(q3_1_t5);
    const float8 q3_1_t8 = convert_float8((uchar8)(((uchar)3)));
    const float8 q3_1_t3 = (q3_1_t4 + q3_1_t8);
    const float8 q3_1_t2 = select((float8)(0.0f), q3_1_t3, q3_1_t3 > (float8)(0.0f));
    const float8 q3_1_t1 = select((float8)(255.0f), q3_1_t2, q3_1_t2 < (float8)(255.0f));
    const uchar8 q3_1_t0 = convert_uchar8(convert_int8(q3_1_t1));
    vstore8(q3_1_t0, 0, y + r0 * 64 + c0 * 16 + 56);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void pointwise_4e999f02b01b(
    __global const uchar* p0,
    __global uchar* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 16; u < min(id * 16 + 16, 16); ++u) {
    const int d0 = u;
    const int o0 = d0 * 16;
    const int o1 = d0;
    const int end = 16;
    int i = 0;
    for (; i + 8 <= end; i += 8) {
      const uchar8 v0 = (uchar8)(p0[o1 + i * 16 + 0], p0[o1 + i * 16 + 16], p0[o1 + i * 16 + 32], p0[o1 + i * 16 + 48], p0[o1 + i * 16 + 64], p0[o1 + i * 16 + 80], p0[o1 + i * 16 + 96], p0[o1 + i * 16 + 112]);
      vstore8(v0, 0, p1 + o0 + i);
    }
  }
}
