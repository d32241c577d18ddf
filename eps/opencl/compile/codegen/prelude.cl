// Functions of float scalars and vectors. The drivers' own vector versions are two to ten times
// slower, or less exact than 1e-6 with fast-math; these are within 2e-7 of the value (ol_erf, ol_tanh
// 3e-7), keep NaN, and saturate exactly. Coefficients: minimax of the relative error, by Lawson's
// iteration. A clamp is written so that a comparison with NaN keeps it, in one instruction on x86.
//
// OL_SHIFT + n, rounded, has the bits of n + 127 in its lowest byte: shifted into the exponent's
// place they are 2^n, from 0 at n = -127 to infinity at n = 128.
#define OL_SHIFT 12583039.0f
#define OL_FUNCTIONS(F, I)                                                                        \
  __attribute__((overloadable)) F ol_clamp(F x, F low, F high) {                                  \
    const F c = select(x, low, low > x);                                                          \
    return select(c, high, high < c);                                                             \
  }                                                                                               \
  __attribute__((overloadable)) F ol_exp_part(F x, F n) {                                         \
    const F r = mad(n, (F)(2.12194440e-4f), mad(n, (F)(-0.693359375f), x));                       \
    F p = mad((F)(8.2903e-3f), r, (F)(4.189804e-2f));                                             \
    p = mad(p, r, (F)(1.6667637e-1f));                                                            \
    p = mad(p, r, (F)(4.9999149e-1f));                                                            \
    p = mad(p, r, (F)(9.9999971e-1f));                                                            \
    return mad(p, r, (F)(1.0f));                                                                  \
  }                                                                                               \
  __attribute__((overloadable)) F ol_exp(F x) {                                                   \
    const F c = ol_clamp(x, (F)(-104.0f), (F)(89.0f));                                            \
    const F t = mad(c, (F)(1.44269504f), (F)(OL_SHIFT));                                          \
    const I k = as_##I(t) - as_##I((F)(OL_SHIFT)), l = k >> 1;                                    \
    const F p = ol_exp_part(c, t - OL_SHIFT);                                                     \
    return p * as_##F((l + 127) << 23) * as_##F((k - l + 127) << 23);                             \
  }                                                                                               \
  /* e^x, but 0 where that is denormal and infinity from 88.4 on. */                              \
  __attribute__((overloadable)) F ol_exp_normal(F x) {                                            \
    const F c = ol_clamp(x, (F)(-88.0f), (F)(89.0f));                                             \
    const F t = mad(c, (F)(1.44269504f), (F)(OL_SHIFT));                                          \
    return ol_exp_part(c, t - OL_SHIFT) * as_##F(as_##I(t) << 23);                                \
  }                                                                                               \
  __attribute__((overloadable)) F ol_sigmoid(F x) { return 1.0f / (1.0f + ol_exp_normal(-x)); }   \
  __attribute__((overloadable)) F ol_tanh(F x) {                                                  \
    const F z = ol_clamp(x, (F)(-9.01f), (F)(9.01f)), s = z * z;                                  \
    F p = mad((F)(1.37457255e-8f), s, (F)(2.08704136e-5f));                                       \
    p = mad(p, s, (F)(3.51088339e-3f));                                                           \
    p = mad(p, s, (F)(1.33937656e-1f));                                                           \
    p = mad(p, s, (F)(9.99999982e-1f));                                                           \
    F q = mad((F)(7.92973433e-7f), s, (F)(3.31101438e-4f));                                       \
    q = mad(q, s, (F)(2.59347201e-2f));                                                           \
    q = mad(q, s, (F)(4.67270835e-1f));                                                           \
    q = mad(q, s, (F)(1.0f));                                                                     \
    return ol_clamp(z * p / q, (F)(-1.0f), (F)(1.0f));                                            \
  }                                                                                               \
  __attribute__((overloadable)) F ol_erf(F x) {                                                   \
    const F z = ol_clamp(x, (F)(-3.92f), (F)(3.92f)), s = z * z;                                  \
    F p = mad((F)(2.07097908e-6f), s, (F)(2.85580928e-4f));                                       \
    p = mad(p, s, (F)(3.74867616e-3f));                                                           \
    p = mad(p, s, (F)(5.27065117e-2f));                                                           \
    p = mad(p, s, (F)(1.89886765e-1f));                                                           \
    p = mad(p, s, (F)(1.12837915f));                                                              \
    F q = mad((F)(3.83358857e-5f), s, (F)(1.16023792e-3f));                                       \
    q = mad(q, s, (F)(1.49368153e-2f));                                                           \
    q = mad(q, s, (F)(1.13918069e-1f));                                                           \
    q = mad(q, s, (F)(5.01615528e-1f));                                                           \
    q = mad(q, s, (F)(1.0f));                                                                     \
    return ol_clamp(z * p / q, (F)(-1.0f), (F)(1.0f));                                            \
  }
OL_FUNCTIONS(float, int)
