// ScatterElements(ScatterElements0.0, ScatterElements0.1, ScatterElements0.2)
//
// launch 0: scatterelements_124acc0b5bc1(arena[0, +12288], arena[12288, +12288]), 1 work-items in groups of 1
// launch 1: scatterelements_7f510c33603c(arena[24576, +1536], arena[26112, +768], arena[12288, +12288]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void scatterelements_124acc0b5bc1(
    __global const float* p0,
    __global float* p1)
{
  const int id = get_global_id(0);
  const int u = id;
  const int o0 = 0;
  const int o1 = 0;
  const int end = 3072;
  int i = 0;
  for (; i + 8 <= end; i += 8) {
    const float8 v0 = vload8(0, p0 + o1 + i);
    vstore8(v0, 0, p1 + o0 + i);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void scatterelements_7f510c33603c(
    __global const long* p0,
    __global const float* p1,
    __global float* p2,
    __global int* wrong)
{
  const int id = get_global_id(0);
  for (int u = id * 48; u < min(id * 48 + 48, 48); ++u) {
    const int d1 = u;
    for (int i = 0; i < 4; ++i) {
      long pick = p0[i * 48 + d1];
      pick += pick < 0 ? 64 : 0;
      if (pick < 0 || pick >= 64) { *wrong = 1; pick = 0; }
      { const float held = p2[(int)pick * 48 + d1], next = p1[i * 48 + d1]; p2[(int)pick * 48 + d1] = held + next; }
    }
  }
}
