// ol_quads: products of 64 bytes, unsigned by signed; four neighbours are added to a sum of 32 bits. This
// is one instruction of AVX-512 VNNI, which compilers do not make of OpenCL C, nor of dot_acc_sat. Intel's
// compiler accepts LLVM's name of it; PoCL's LLVM has another form of that, but accepts assembly.
#define OL_QUADS __attribute__((overloadable, always_inline)) int16 ol_quads(int16 a, int16 x, int16 w)
#ifdef OL_VNNI_NAME
typedef char ol_char64 __attribute__((ext_vector_type(64)));
int16 __attribute__((overloadable)) ol_quads(int16 a, ol_char64 x, ol_char64 w) __asm__("llvm.x86.avx512.vpdpbusd.512");
OL_QUADS { return ol_quads(a, __builtin_astype(x, ol_char64), __builtin_astype(w, ol_char64)); }
#endif
#ifdef OL_VNNI_ASSEMBLY
OL_QUADS {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(a) : "v"(x), "v"(w));
  return a;
}
#endif
