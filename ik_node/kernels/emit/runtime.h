/* What all kernels share: Python's arithmetic, views of arrays, scratch memory. `real` is declared before. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifndef IK_NO_ARENA
#include <stdlib.h>
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#define IK_INLINE static inline __attribute__((always_inline))
#else
#define IK_INLINE static inline
#endif

/* min and max return the first argument unless the second one is beyond it, as Python does with NaN too. */
IK_INLINE real ik_min_f(real a, real b) { return b < a ? b : a; }
IK_INLINE real ik_max_f(real a, real b) { return b > a ? b : a; }
IK_INLINE int64_t ik_min_i(int64_t a, int64_t b) { return b < a ? b : a; }
IK_INLINE int64_t ik_max_i(int64_t a, int64_t b) { return b > a ? b : a; }
IK_INLINE int64_t ik_abs(int64_t a) { return a < 0 ? -a : a; }

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
static real ik_pow(real a, real b)
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
static int64_t ik_argmin(const real *p, int64_t n, int64_t stride)
{
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (p[i * stride] != p[i * stride]) return i;
        if (p[i * stride] < p[best * stride]) best = i;
    }
    return best;
}
static int64_t ik_argmax(const real *p, int64_t n, int64_t stride)
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

#ifndef IK_NO_ARENA
/* Scratch memory in blocks that are kept and never moved. A function gives back what it took when it returns. */
typedef struct ik_block { struct ik_block *next; size_t size; } ik_block;
typedef struct { ik_block *block; char *at; } ik_mark;
typedef struct { ik_block *first, *block; char *at; } ik_arena;
#define IK_BLOCK ((size_t)1 << 17)

static void ik_failed(void); /* out of memory: does not return */
static void ik_grow(ik_arena *A, size_t size)
{
    ik_block *next = A->block ? A->block->next : A->first;
    if (!next || next->size < size) {
        size_t most = size > IK_BLOCK ? size : IK_BLOCK;
        ik_block *more = malloc(sizeof *more + most);
        if (!more) ik_failed();
        more->size = most;
        more->next = next;
        if (A->block) A->block->next = more; else A->first = more;
        next = more;
    }
    A->block = next;
    A->at = (char *)(next + 1);
}
static inline void *ik_take(ik_arena *A, int64_t count, size_t each)
{
    size_t size = ((size_t)(count > 0 ? count : 0) * each + 15) & ~(size_t)15;
    if (!A->block || (size_t)((char *)(A->block + 1) + A->block->size - A->at) < size) ik_grow(A, size);
    void *place = A->at;
    A->at += size;
#ifdef IK_CHECKED
    memset(place, 0xff, size); /* NaN */
#endif
    return place;
}
static inline ik_mark ik_here(const ik_arena *A) { ik_mark mark = {A->block, A->at}; return mark; }
static inline void ik_release(ik_arena *A, ik_mark mark) { A->block = mark.block; A->at = mark.at; }

#define IK_NEW(LETTER, TYPE)                                                                    \
    static inline ik_##LETTER##1 ik_new_##LETTER##1(ik_arena *A, int64_t n)                     \
    {                                                                                           \
        ik_##LETTER##1 a = {ik_take(A, n, sizeof(TYPE)), n};                                    \
        return a;                                                                               \
    }                                                                                           \
    static inline ik_##LETTER##2 ik_new_##LETTER##2(ik_arena *A, int64_t n, int64_t m)          \
    {                                                                                           \
        ik_##LETTER##2 a = {ik_take(A, n * m, sizeof(TYPE)), n, m, m};                          \
        return a;                                                                               \
    }                                                                                           \
    static inline ik_##LETTER##3 ik_new_##LETTER##3(ik_arena *A, int64_t n, int64_t m, int64_t k) \
    {                                                                                           \
        ik_##LETTER##3 a = {ik_take(A, n * m * k, sizeof(TYPE)), n, m, k, m * k, k};            \
        return a;                                                                               \
    }                                                                                           \
    static inline ik_##LETTER##1 ik_copied_##LETTER##1(ik_##LETTER##1 a, ik_##LETTER##1 b)      \
    {                                                                                           \
        ik_copied_##LETTER(a.p, b.p, a.n0);                                                     \
        return a;                                                                               \
    }                                                                                           \
    static inline ik_##LETTER##2 ik_copied_##LETTER##2(ik_##LETTER##2 a, ik_##LETTER##2 b)      \
    {                                                                                           \
        for (int64_t i = 0; i < a.n0; i++) ik_copied_##LETTER(a.p + i * a.s0, b.p + i * b.s0, a.n1); \
        return a;                                                                               \
    }
IK_NEW(f, real)
IK_NEW(i, int64_t)
IK_NEW(u, uint64_t)
IK_NEW(b, bool)
#endif
