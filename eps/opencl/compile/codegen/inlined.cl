// What inner loops use of OpenCL's functions, in terms of the language itself. PoCL's own are compiled
// for a fixed CPU, and LLVM inlines nothing into a kernel for another one: on AMD's CPUs (PoCL 3.0)
// every vector load and every multiplication was a call, and kernels were 10 to 20 times slower.
#define OL_INLINE __attribute__((overloadable, always_inline))
#define OL_MEMORY(T, V, SPACE)                                                                    \
  OL_INLINE T##V ol_load##V(size_t i, SPACE const T* p) {                                         \
    return *(SPACE const ol_unaligned_##T##V*)(p + V * i);                                        \
  }                                                                                               \
  OL_INLINE void ol_store##V(T##V v, size_t i, SPACE T* p) {                                      \
    *(SPACE ol_unaligned_##T##V*)(p + V * i) = v;                                                 \
  }
#define OL_TYPE(T, V, SIZE)                                                                       \
  typedef T##V ol_unaligned_##T##V __attribute__((aligned(SIZE)));                                \
  OL_MEMORY(T, V, __global)
#define OL_WIDTH(V)                                                                               \
  OL_TYPE(float, V, 4)                                                                            \
  OL_TYPE(int, V, 4)                                                                              \
  OL_TYPE(short, V, 2)                                                                            \
  OL_TYPE(char, V, 1)                                                                             \
  OL_TYPE(uchar, V, 1)                                                                            \
  OL_MEMORY(float, V, __private)                                                                  \
  OL_MEMORY(short, V, __private)                                                                  \
  OL_MEMORY(uchar, V, __private)                                                                  \
  OL_INLINE float##V ol_fmax(float##V a, float##V b) { return __builtin_elementwise_max(a, b); }  \
  OL_INLINE float##V ol_fabs(float##V a) { return __builtin_elementwise_abs(a); }                 \
  OL_INLINE float##V ol_rint(float##V a) { return __builtin_elementwise_roundeven(a); }           \
  OL_INLINE float##V ol_copysign(float##V a, float##V b) {                                        \
    const int##V sign = (int##V)(1 << 31);                                                        \
    return as_float##V((as_int##V(a) & ~sign) | (as_int##V(b) & sign));                           \
  }
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
#undef convert_short
#undef convert_short2
#undef convert_short4
#undef convert_short8
#undef convert_short16
#undef convert_char2
#undef convert_char4
#undef convert_char8
#undef convert_char16
#undef convert_uchar2
#undef convert_uchar4
#undef convert_uchar8
#undef convert_uchar16
#undef convert_float2
#undef convert_float4
#undef convert_float8
#undef convert_float16
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
#define convert_short(a) ((short)(a))
#define convert_int2(a) __builtin_convertvector(a, int2)
#define convert_short2(a) __builtin_convertvector(a, short2)
#define convert_char2(a) __builtin_convertvector(a, char2)
#define convert_uchar2(a) __builtin_convertvector(a, uchar2)
#define convert_float2(a) __builtin_convertvector(a, float2)
#define convert_int4(a) __builtin_convertvector(a, int4)
#define convert_short4(a) __builtin_convertvector(a, short4)
#define convert_char4(a) __builtin_convertvector(a, char4)
#define convert_uchar4(a) __builtin_convertvector(a, uchar4)
#define convert_float4(a) __builtin_convertvector(a, float4)
#define convert_int8(a) __builtin_convertvector(a, int8)
#define convert_short8(a) __builtin_convertvector(a, short8)
#define convert_char8(a) __builtin_convertvector(a, char8)
#define convert_uchar8(a) __builtin_convertvector(a, uchar8)
#define convert_float8(a) __builtin_convertvector(a, float8)
#define convert_int16(a) __builtin_convertvector(a, int16)
#define convert_short16(a) __builtin_convertvector(a, short16)
#define convert_char16(a) __builtin_convertvector(a, char16)
#define convert_uchar16(a) __builtin_convertvector(a, uchar16)
#define convert_float16(a) __builtin_convertvector(a, float16)
#define fmax ol_fmax
#define fabs ol_fabs
#define rint ol_rint
#define copysign ol_copysign
#define mad(a, b, c) ((a) * (b) + (c))
#define select(a, b, c) ((c) ? (b) : (a))
#define isnan(a) ((a) != (a))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
