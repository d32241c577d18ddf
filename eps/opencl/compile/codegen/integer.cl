// ol_madd: products of pairs of 16-bit integers, each pair added. ol_dot: of four bytes, unsigned by
// signed, added to a; two neighbours' are within 16 bits. OpenCL C cannot say it so that compilers find
// the instructions; where the device is a CPU that has them, OL_AVX2 is set, and LLVM's own names are.
#define OL_EACH __attribute__((overloadable, always_inline))
#define OL_ZIP(T, V, V2)                                                                          \
  OL_EACH T##V2 ol_zip(T##V a, T##V b) {                                                          \
    T##V2 both;                                                                                   \
    both.even = a;                                                                                \
    both.odd = b;                                                                                 \
    return both;                                                                                  \
  }
#define OL_ZIPS(T) OL_ZIP(T, , 2) OL_ZIP(T, 2, 4) OL_ZIP(T, 4, 8) OL_ZIP(T, 8, 16)
#define OL_MADD(V, V2)                                                                            \
  OL_EACH int##V ol_madd(short##V2 a, short##V2 b) {                                              \
    return convert_int##V(a.even) * convert_int##V(b.even) +                                      \
           convert_int##V(a.odd) * convert_int##V(b.odd);                                         \
  }
#define OL_DOT(V)                                                                                 \
  OL_EACH int##V ol_dot(int##V a, int##V x, int##V w) {                                           \
    return a + (x & 255) * ((w << 24) >> 24) + ((x >> 8) & 255) * ((w << 16) >> 24) +             \
           ((x >> 16) & 255) * ((w << 8) >> 24) + ((x >> 24) & 255) * (w >> 24);                  \
  }
OL_ZIPS(char)
OL_ZIPS(uchar)
OL_ZIPS(short)
OL_MADD(, 2)
OL_MADD(2, 4)
OL_DOT()
OL_DOT(2)
#ifdef OL_AVX2
int4 __attribute__((overloadable)) ol_madd(short8 a, short8 b) __asm__("llvm.x86.sse2.pmadd.wd");
int8 __attribute__((overloadable)) ol_madd(short16 a, short16 b) __asm__("llvm.x86.avx2.pmadd.wd");
typedef char ol_char32 __attribute__((ext_vector_type(32)));
short8 __attribute__((overloadable)) ol_bytes(char16 x, char16 w) __asm__("llvm.x86.ssse3.pmadd.ub.sw.128");
short16 __attribute__((overloadable)) ol_bytes(ol_char32 x, ol_char32 w) __asm__("llvm.x86.avx2.pmadd.ub.sw");
OL_EACH short16 ol_bytes(int8 x, int8 w) {
  return ol_bytes(__builtin_astype(x, ol_char32), __builtin_astype(w, ol_char32));
}
#if defined(OL_VNNI_NAME)
int4 __attribute__((overloadable)) ol_dot(int4 a, char16 x, char16 w) __asm__("llvm.x86.avx512.vpdpbusd.128");
int8 __attribute__((overloadable)) ol_dot(int8 a, ol_char32 x, ol_char32 w) __asm__("llvm.x86.avx512.vpdpbusd.256");
OL_EACH int4 ol_dot(int4 a, int4 x, int4 w) { return ol_dot(a, as_char16(x), as_char16(w)); }
OL_EACH int8 ol_dot(int8 a, int8 x, int8 w) {
  return ol_dot(a, __builtin_astype(x, ol_char32), __builtin_astype(w, ol_char32));
}
#elif defined(OL_VNNI_ASSEMBLY)
#define OL_DOT_BY_VNNI(T)                                        \
  OL_EACH T ol_dot(T a, T x, T w) {                              \
    __asm__("vpdpbusd %2, %1, %0" : "+v"(a) : "v"(x), "v"(w));   \
    return a;                                                    \
  }
OL_DOT_BY_VNNI(int4)
OL_DOT_BY_VNNI(int8)
#else
OL_EACH int4 ol_dot(int4 a, int4 x, int4 w) {
  return a + ol_madd(ol_bytes(as_char16(x), as_char16(w)), (short8)(1));
}
OL_EACH int8 ol_dot(int8 a, int8 x, int8 w) {
  const ol_char32 bytes = __builtin_astype(x, ol_char32);
  return a + ol_madd(ol_bytes(bytes, __builtin_astype(w, ol_char32)), (short16)(1));
}
#endif
#else
OL_MADD(4, 8)
OL_MADD(8, 16)
OL_DOT(4)
OL_DOT(8)
#endif
OL_EACH int ol_pair(int a, int b) { return (a & 0xffff) | (b << 16); }
