// Products of pairs of 16-bit integers, each pair added. OpenCL C cannot say it so that compilers find
// the instruction; where the device is a CPU that has it, OL_AVX2 is set, and LLVM's own name for it is.
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
OL_ZIPS(char)
OL_ZIPS(uchar)
OL_ZIPS(short)
OL_MADD(, 2)
OL_MADD(2, 4)
#ifdef OL_AVX2
int4 __attribute__((overloadable)) ol_madd(short8 a, short8 b) __asm__("llvm.x86.sse2.pmadd.wd");
int8 __attribute__((overloadable)) ol_madd(short16 a, short16 b) __asm__("llvm.x86.avx2.pmadd.wd");
#else
OL_MADD(4, 8)
OL_MADD(8, 16)
#endif
OL_EACH int ol_pair(int a, int b) { return (a & 0xffff) | (b << 16); }
