/* What all kernels share: Python's arithmetic, views of arrays, scratch memory. `real` is declared before. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__GNUC__)
#define IK_INLINE static inline __attribute__((always_inline))
#else
#define IK_INLINE static inline
#endif
/* A struct with the members that follow in braces: C++ writes it in another way. */
#ifdef __cplusplus
#define IK_VALUE(TYPE) TYPE
#else
#define IK_VALUE(TYPE) (TYPE)
#endif

/* min and max return the first argument unless the second one is beyond it, as Python does with NaN too. */
IK_INLINE real ik_min_f(real a, real b) { return b < a ? b : a; }
IK_INLINE real ik_max_f(real a, real b) { return b > a ? b : a; }
IK_INLINE int64_t ik_min_i(int64_t a, int64_t b) { return b < a ? b : a; }
IK_INLINE int64_t ik_max_i(int64_t a, int64_t b) { return b > a ? b : a; }
IK_INLINE int64_t ik_abs(int64_t a) { return a < 0 ? -a : a; }

/* The whole part; beyond int64 its end, which compares as Python's larger number does; of NaN, where Python raises, 0. */
IK_INLINE int64_t ik_int(real a)
{
    if (a >= (real)9223372036854775808.0) return INT64_MAX;
    return a > (real)-9223372036854775808.0 ? (int64_t)a : a == a ? INT64_MIN : 0;
}

/* // and % round towards minus infinity. */
IK_INLINE int64_t ik_div(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
IK_INLINE int64_t ik_mod(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
IK_INLINE int64_t ik_power(int64_t a, int64_t n)
{
    int64_t result = 1;
    while (n-- > 0) result *= a;
    return result;
}
static inline real ik_pow(real a, real b)
{
    volatile real exponent = b; /* or compilers replace some powers by products, with other last bits */
    return sizeof(real) == sizeof(float) ? (real)powf((float)a, (float)exponent) : (real)pow(a, exponent);
}
typedef struct { real e0; int64_t e1; } ik_tfi;
IK_INLINE ik_tfi ik_frexp(real a)
{
    int exponent;
    ik_tfi parts;
    parts.e0 = (real)frexp(a, &exponent);
    parts.e1 = exponent;
    return parts;
}

typedef struct { real re, im; } ik_complex;
IK_INLINE ik_complex ik_c(real re, real im) { ik_complex z = {re, im}; return z; }
IK_INLINE ik_complex ik_cadd(ik_complex a, ik_complex b) { return ik_c(a.re + b.re, a.im + b.im); }
IK_INLINE ik_complex ik_csub(ik_complex a, ik_complex b) { return ik_c(a.re - b.re, a.im - b.im); }
IK_INLINE ik_complex ik_cmul(ik_complex a, ik_complex b)
{
    return ik_c(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
IK_INLINE ik_complex ik_cneg(ik_complex a) { return ik_c(-a.re, -a.im); }
IK_INLINE ik_complex ik_conjugate(ik_complex a) { return ik_c(a.re, -a.im); }
IK_INLINE real ik_cabs(ik_complex a)
{
    return sizeof(real) == sizeof(float) ? (real)hypotf((float)a.re, (float)a.im) : (real)hypot(a.re, a.im);
}

/* The length of array[low:high] of an array with size entries. */
IK_INLINE int64_t ik_span(int64_t low, int64_t high, int64_t size)
{
    if (high > size) high = size;
    return high > low ? high - low : 0;
}
/* The first index of the least or largest of n entries, stride apart; of the first NaN, if there is one. */
static inline int64_t ik_argmin(const real *p, int64_t n, int64_t stride)
{
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (p[i * stride] != p[i * stride]) return i;
        if (p[i * stride] < p[best * stride]) best = i;
    }
    return best;
}
static inline int64_t ik_argmax(const real *p, int64_t n, int64_t stride)
{
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (p[i * stride] != p[i * stride]) return i;
        if (p[i * stride] > p[best * stride]) best = i;
    }
    return best;
}

#ifdef IK_CHECKED
#include <stdio.h>
#include <stdlib.h>
static int64_t ik_index(int64_t i, int64_t n, const char *place)
{
    if (i >= 0 && i < n) return i;
    fprintf(stderr, "index %lld of %lld in %s\n", (long long)i, (long long)n, place);
    abort();
}
#endif

/* Views: a pointer, sizes, strides of all dimensions but the last. ik_f2 is one of reals with two dimensions. */
#define IK_ARRAY(LETTER, TYPE)                                                                  \
    typedef struct { TYPE *p; int64_t n0; } ik_##LETTER##1;                                     \
    typedef struct { TYPE *p; int64_t n0, n1, s0; } ik_##LETTER##2;                             \
    typedef struct { TYPE *p; int64_t n0, n1, n2, s0, s1; } ik_##LETTER##3;                     \
    IK_INLINE TYPE *ik_filled_##LETTER(TYPE *p, int64_t n, TYPE value)                          \
    {                                                                                           \
        for (int64_t i = 0; i < n; i++) p[i] = value;                                           \
        return p;                                                                               \
    }                                                                                           \
    IK_INLINE ik_##LETTER##1 ik_filled_##LETTER##1(ik_##LETTER##1 a, TYPE value)                \
    {                                                                                           \
        ik_filled_##LETTER(a.p, a.n0, value);                                                   \
        return a;                                                                               \
    }                                                                                           \
    IK_INLINE ik_##LETTER##2 ik_filled_##LETTER##2(ik_##LETTER##2 a, TYPE value)                \
    {                                                                                           \
        for (int64_t i = 0; i < a.n0; i++) ik_filled_##LETTER(a.p + i * a.s0, a.n1, value);     \
        return a;                                                                               \
    }                                                                                           \
    IK_INLINE TYPE *ik_copied_##LETTER(TYPE *p, const TYPE *q, int64_t n)                       \
    {                                                                                           \
        for (int64_t i = 0; i < n; i++) p[i] = q[i];                                            \
        return p;                                                                               \
    }
IK_ARRAY(f, real)
IK_ARRAY(i, int64_t)
IK_ARRAY(u, uint64_t)
IK_ARRAY(b, bool)
