// What inner loops use of OpenCL's functions, in terms of the language itself. PoCL's own are compiled
// for a fixed CPU, and LLVM inlines nothing into a kernel for another one: on AMD's CPUs (PoCL 3.0)
// every vector load and every multiplication was a call, and kernels were 10 to 20 times slower.
#define OL_INLINE __attribute__((overloadable, always_inline))
#define OL_MEMORY(V, SPACE)                                                                       \
  OL_INLINE float##V ol_load##V(size_t i, SPACE const float* p) {                                 \
    return *(SPACE const ol_unaligned##V*)(p + V * i);                                            \
  }                                                                                               \
  OL_INLINE void ol_store##V(float##V v, size_t i, SPACE float* p) {                              \
    *(SPACE ol_unaligned##V*)(p + V * i) = v;                                                     \
  }
#define OL_WIDTH(V)                                                                               \
  typedef float##V ol_unaligned##V __attribute__((aligned(4)));                                   \
  OL_MEMORY(V, __global)                                                                          \
  OL_MEMORY(V, __private)                                                                         \
  OL_INLINE float##V ol_fmax(float##V a, float##V b) { return __builtin_elementwise_max(a, b); }  \
  OL_INLINE float##V ol_fabs(float##V a) { return __builtin_elementwise_abs(a); }                 \
  OL_INLINE float##V ol_rint(float##V a) { return __builtin_elementwise_roundeven(a); }           \
  OL_INLINE float##V ol_copysign(float##V a, float##V b) {                                        \
    const int##V sign = (int##V)(1 << 31);                                                        \
    return as_float##V((as_int##V(a) & ~sign) | (as_int##V(b) & sign));                           \
  }                                                                                               \
  OL_INLINE int##V ol_to_int##V(float##V a) { return __builtin_convertvector(a, int##V); }
OL_WIDTH(2)
OL_WIDTH(4)
OL_WIDTH(8)
OL_WIDTH(16)
OL_INLINE float ol_fmax(float a, float b) { return __builtin_fmaxf(a, b); }
OL_INLINE float ol_fabs(float a) { return __builtin_fabsf(a); }
OL_INLINE float ol_rint(float a) { return __builtin_elementwise_roundeven(a); }
OL_INLINE float ol_copysign(float a, float b) { return __builtin_copysignf(a, b); }
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
OL_INLINE double ol_fabs(double a) { return __builtin_fabs(a); }
OL_INLINE double ol_rint(double a) { return __builtin_elementwise_roundeven(a); }
#endif
#undef vload2
#undef vload4
#undef vload8
#undef vload16
#undef vstore2
#undef vstore4
#undef vstore8
#undef vstore16
#undef convert_int2
#undef convert_int4
#undef convert_int8
#undef convert_int16
#undef convert_int
#undef fmax
#undef fabs
#undef rint
#undef copysign
#undef mad
#undef select
#undef isnan
#undef min
#undef max
#define vload2 ol_load2
#define vload4 ol_load4
#define vload8 ol_load8
#define vload16 ol_load16
#define vstore2 ol_store2
#define vstore4 ol_store4
#define vstore8 ol_store8
#define vstore16 ol_store16
#define convert_int(a) ((int)(a))
#define convert_int2 ol_to_int2
#define convert_int4 ol_to_int4
#define convert_int8 ol_to_int8
#define convert_int16 ol_to_int16
#define fmax ol_fmax
#define fabs ol_fabs
#define rint ol_rint
#define copysign ol_copysign
#define mad(a, b, c) ((a) * (b) + (c))
#define select(a, b, c) ((c) ? (b) : (a))
#define isnan(a) ((a) != (a))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
