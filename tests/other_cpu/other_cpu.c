/* Has every library of a process see another x86-64 CPU than the one that it runs on.
 *
 * Linux traps CPUID in user mode where the processor can (arch_prctl ARCH_SET_CPUID); the trap is
 * a SIGSEGV, whose handler here runs the real instruction and changes its answer. To be preloaded:
 *
 *     LD_PRELOAD=.../other_cpu.so ORT_LITE_OTHER_CPU=zen5,no-avx512 python ...
 *
 * Words: zen5 (AMD family 26), zen4 (AMD family 25 from model 16), meteor-lake (Intel family 6,
 * model 170, without AVX-512), no-avx512, no-avx2 (nor FMA, BMI and what came with it), no-avx.
 * What the system itself asked before (ld.so, libc) has the real answer.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef ARCH_SET_CPUID
#define ARCH_SET_CPUID 0x1012
#endif

static int zen4, zen5, meteor_lake, no_avx512, no_avx2, no_avx;
static struct sigaction before;

static void clear(uint64_t *bits, const int *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) *bits &= ~(1ull << numbers[i]);
}
#define CLEAR(bits, ...)                                        \
  do {                                                          \
    const int numbers[] = {__VA_ARGS__};                        \
    clear(&(bits), numbers, sizeof numbers / sizeof *numbers);  \
  } while (0)

static void answer(uint32_t leaf, uint32_t sub, uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d) {
  if ((zen4 || zen5) && (leaf == 0 || leaf == 0x80000000)) {
    memcpy(b, "Auth\0\0\0\0", 8);
    memcpy(d, "enti\0\0\0\0", 8);
    memcpy(c, "cAMD\0\0\0\0", 8);
  }
  if (meteor_lake && (leaf == 0 || leaf == 0x80000000)) {
    memcpy(b, "Genu\0\0\0\0", 8);
    memcpy(d, "ineI\0\0\0\0", 8);
    memcpy(c, "ntel\0\0\0\0", 8);
  }
  if (leaf == 1) {
    if (meteor_lake) *a = 0x000A06A4; /* family 6, model 160 + 10, stepping 4 */
    if (zen4) *a = 0x00A10F11; /* family 15 + 10, model 17, stepping 1 */
    if (zen5) *a = 0x00B40F40; /* family 15 + 11, model 68, stepping 0 */
    if (no_avx2) CLEAR(*c, 12, 22); /* FMA, MOVBE */
    if (no_avx) CLEAR(*c, 12, 28, 29); /* FMA, AVX, F16C */
  }
  if (leaf == 7 && sub == 0) {
    if (no_avx512) {
      CLEAR(*b, 16, 17, 21, 26, 27, 28, 30, 31);
      CLEAR(*c, 1, 6, 11, 12, 14);
      CLEAR(*d, 2, 3, 8, 22, 23, 24, 25);
    }
    if (no_avx2) {
      CLEAR(*b, 3, 5, 8); /* BMI1, AVX2, BMI2 */
      CLEAR(*c, 9, 10);   /* VAES, VPCLMULQDQ */
    }
  }
  if (leaf == 7 && sub == 1 && (no_avx512 || no_avx2)) CLEAR(*a, 4, 5, 23);
  if (leaf == 0x80000001 && no_avx2) CLEAR(*c, 5); /* LZCNT */
}

static void trapped(int number, siginfo_t *info, void *where) {
  greg_t *r = ((ucontext_t *)where)->uc_mcontext.gregs;
  const uint8_t *code = (const uint8_t *)r[REG_RIP];
  if (code[0] != 0x0F || code[1] != 0xA2) { /* not CPUID: a fault of the program's own */
    if ((before.sa_flags & SA_SIGINFO) && before.sa_sigaction) {
      before.sa_sigaction(number, info, where);
      return;
    }
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
      before.sa_handler(number);
      return;
    }
    signal(number, SIG_DFL);
    return;
  }
  uint32_t leaf = r[REG_RAX], sub = r[REG_RCX], a, b, c, d;
  syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
  __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(sub));
  syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
  uint64_t ra = a, rb = b, rc = c, rd = d;
  answer(leaf, sub, &ra, &rb, &rc, &rd);
  r[REG_RAX] = ra, r[REG_RBX] = rb, r[REG_RCX] = rc, r[REG_RDX] = rd;
  r[REG_RIP] += 2;
}

/* A library that sets a handler of its own gets the faults that are not CPUID's. */
int sigaction(int number, const struct sigaction *wanted, struct sigaction *old) {
  static int (*next)(int, const struct sigaction *, struct sigaction *);
  if (!next) next = dlsym(RTLD_NEXT, "sigaction");
  if (number != SIGSEGV) return next(number, wanted, old);
  if (old) *old = before;
  if (wanted) before = *wanted;
  return 0;
}

__attribute__((constructor)) static void begin(void) {
  const char *words = getenv("ORT_LITE_OTHER_CPU");
  if (!words || !*words) return;
  zen4 = strstr(words, "zen4") != NULL;
  zen5 = strstr(words, "zen5") != NULL;
  no_avx = strstr(words, "no-avx,") != NULL || (strlen(words) >= 6 && !strcmp(words + strlen(words) - 6, "no-avx"));
  no_avx2 = no_avx || strstr(words, "no-avx2") != NULL;
  meteor_lake = strstr(words, "meteor-lake") != NULL;
  no_avx512 = no_avx2 || meteor_lake || strstr(words, "no-avx512") != NULL;
  int (*next)(int, const struct sigaction *, struct sigaction *) = dlsym(RTLD_NEXT, "sigaction");
  struct sigaction own = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  next(SIGSEGV, &own, NULL);
  if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0)) {
    fprintf(stderr, "other_cpu: CPUID cannot be trapped here: %s\n", strerror(errno));
    _exit(77);
  }
}
