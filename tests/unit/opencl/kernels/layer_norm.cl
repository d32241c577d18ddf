// LayerNormalization(LayerNormalization0.0, LayerNormalization0.1, LayerNormalization0.2)
//
// launch 0: layernorm_199725741674(arena[0, +12288], weight 0, weight 0, arena[12288, +12288]), 1 work-items in groups of 1

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void layernorm_199725741674(
    __global const float* p0,
    __global const float* p1,
    __global const float* p2,
    __global float* p3)
{
  const int id = get_global_id(0);
  for (int u = id * 64; u < min(id * 64 + 64, 64); ++u) {
    __global const float* x = p0 + 0 + u * 48;
    __global float* y = p3 + 0 + u * 48;
    float16 total0 = 0.0f, total1 = 0.0f;
    for (int i = 0; i < 32; i += 32) {
      { const float16 v = vload16(0, x + i); total0 = total0 + v; }
      { const float16 v = vload16(0, x + i + 16); total1 = total1 + v; }
    }
    { const float16 v = vload16(0, x + 32); total0 = total0 + v; }
    total0 = total0 + total1;
    const float8 total0_8 = total0.lo + total0.hi;
    const float4 total0_8_4 = total0_8.lo + total0_8.hi;
    const float2 total0_8_4_2 = total0_8_4.lo + total0_8_4.hi;
    const float total0_8_4_2_1 = total0_8_4_2.lo + total0_8_4_2.hi;
    float total = total0_8_4_2_1;
    const float mean = total * 0.020833333333333332f;
    float16 square0 = 0.0f, square1 = 0.0f;
    for (int i = 0; i < 32; i += 32) {
      { const float16 v = vload16(0, x + i) - mean; square0 = square0 + v * v; }
      { const float16 v = vload16(0, x + i + 16) - mean; square1 = square1 + v * v; }
    }
    { const float16 v = vload16(0, x + 32) - mean; square0 = square0 + v * v; }
    square0 = square0 + square1;
    const float8 square0_8 = square0.lo + square0.hi;
    const float4 square0_8_4 = square0_8.lo + square0_8.hi;
    const float2 square0_8_4_2 = square0_8_4.lo + square0_8_4.hi;
    const float square0_8_4_2_1 = square0_8_4_2.lo + square0_8_4_2.hi;
    float square = square0_8_4_2_1;
    const float scale = 1.0f / sqrt(square * 0.020833333333333332f + 1e-05f);
    for (int i = 0; i < 48; i += 16) {
      const float16 v = (vload16(0, x + i) - mean) * scale;
      const float16 r = v * vload16(0, p1 + i) + vload16(0, p2 + i);
      vstore16(r, 0, y + i);
    }
  }
}
