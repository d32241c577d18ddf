// ArgMax(ArgMax0.0)
//
// launch 0: argextreme_cb70f98c3519(arena[0, +12288], arena[12288, +512]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void argextreme_cb70f98c3519(
    __global const float* p0,
    __global long* p1)
{
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    const int d0 = u;
    __global const float* x = p0 + d0 * 48;
    __global long* y = p1 + d0;
    float best = x[0];
    int at = 0;
    for (int i = 1; i < 48; ++i) {
      const float v = x[i * 1];
      if (best == best && (v > best || v != v)) { best = v; at = i; }
    }
    *y = at;
  }
}
