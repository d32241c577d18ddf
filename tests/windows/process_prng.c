/* bcryptprimitives.dll, which Wine 8 lacks and the Rust runtime in blake3 asks for random bytes. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG size); /* RtlGenRandom, in advapi32 */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T size) {
  while (size) {
    ULONG part = size > 0x10000000 ? 0x10000000 : (ULONG)size;
    if (!SystemFunction036(buffer, part)) return FALSE;
    buffer += part;
    size -= part;
  }
  return TRUE;
}
