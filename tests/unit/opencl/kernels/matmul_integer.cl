// MatMulInteger(MatMulInteger0.0, MatMulInteger0.1, MatMulInteger0.2)
//
// launch 0: integer_e4196513f3a8(arena[256, +96], weight 0, weight 1, arena[0, +192]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void integer_e4196513f3a8(
    __global const uchar* p0,
    __global const char* p1,
    __global const int* p2,
    __global int* p3)
{
  const int id = get_global_id(0);
  const int panel = id / 1, group = id % 1;
  const int n0 = min(panel * 8, 0);
  __global const uchar* x = p0 + 0;
  __global const char* w = p1 + 0 + panel * 192;
  __global int* y = p3 + 0 + n0 * 1;
  const int8 h1_0 = vload8(0, p2 + 0 + n0 * 1 + 0);
  for (int t = group * 1; t < min(group * 1 + 1, 1); ++t) {
    const int r0 = 0, c0 = 0;
    __global const uchar* xt = x + r0 * 0 + c0 * 16;
    int8 a0_0 = vload8(0, (__global const int*)(w + 128));
    int8 a1_0 = vload8(0, (__global const int*)(w + 128));
    int8 a2_0 = vload8(0, (__global const int*)(w + 128));
    int8 a3_0 = vload8(0, (__global const int*)(w + 128));
    int8 a4_0 = vload8(0, (__global const int*)(w + 128));
    int8 a5_0 = vload8(0, (__global const int*)(w + 128));
    __global const uchar* xp = xt;
    __global const char* wp = w;
    for (int k = 0; k < 16; k += 4) {
      const int8 x0 = (int8)(as_int(vload4(0, xp + 0)));
      const int8 x1 = (int8)(as_int(vload4(0, xp + 16)));
      const int8 x2 = (int8)(as_int(vload4(0, xp + 32)));
      const int8 x3 = (int8)(as_int(vload4(0, xp + 48)));
      const int8 x4 = (int8)(as_int(vload4(0, xp + 64)));
      const int8 x5 = (int8)(as_int(vload4(0, xp + 80)));
      const int8 w_0 = vload8(0, (__global const int*)(wp + 0));
      a0_0 = ol_dot(a0_0, x0, w_0);
      a1_0 = ol_dot(a1_0, x1, w_0);
      a2_0 = ol_dot(a2_0, x2, w_0);
      a3_0 = ol_dot(a3_0, x3, w_0);
      a4_0 = ol_dot(a4_0, x4, w_0);
      a5_0 = ol_dot(a5_0, x5, w_0);
      xp += 4; wp += 32;
    }
    {
      {
        __global const char* wp = p1 + as_int(vload4(0, w + 160));
        for (int e = as_int(vload4(0, w + 164)); e > 0; --e) {
          __global const uchar* xp = xt + as_int(vload4(0, wp + 0));
          wp += 4;
          const int8 x0 = (int8)(as_int(vload4(0, xp + 0)));
          const int8 x1 = (int8)(as_int(vload4(0, xp + 16)));
          const int8 x2 = (int8)(as_int(vload4(0, xp + 32)));
          const int8 x3 = (int8)(as_int(vload4(0, xp + 48)));
          const int8 x4 = (int8)(as_int(vload4(0, xp + 64)));
          const int8 x5 = (int8)(as_int(vload4(0, xp + 80)));
          const int8 w_0 = vload8(0, (__global const int*)(wp + 0));
          a0_0 = ol_dot(a0_0, x0, w_0);
          a1_0 = ol_dot(a1_0, x1, w_0);
          a2_0 = ol_dot(a2_0, x2, w_0);
          a3_0 = ol_dot(a3_0, x3, w_0);
          a4_0 = ol_dot(a4_0, x4, w_0);
          a5_0 = ol_dot(a5_0, x5, w_0);
          wp += 32;
        }
      }
    }
    const int8 q0_0_t0 = (a0_0 - h1_0);
    vstore8(q0_0_t0, 0, y + r0 * 0 + c0 * 8 + 0);
    const int8 q1_0_t0 = (a1_0 - h1_0);
    vstore8(q1_0_t0, 0, y + r0 * 0 + c0 * 8 + 8);
    const int8 q2_0_t0 = (a2_0 - h1_0);
    vstore8(q2_0_t0, 0, y + r0 * 0 + c0 * 8 + 16);
    const int8 q3_0_t0 = (a3_0 - h1_0);
    vstore8(q3_0_t0, 0, y + r0 * 0 + c0 * 8 + 24);
    const int8 q4_0_t0 = (a4_0 - h1_0);
    vstore8(q4_0_t0, 0, y + r0 * 0 + c0 * 8 + 32);
    const int8 q5_0_t0 = (a5_0 - h1_0);
    vstore8(q5_0_t0, 0, y + r0 * 0 + c0 * 8 + 40);
  }
}
