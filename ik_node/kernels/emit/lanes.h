/* Vectors of LANES numbers, masks, and functions of math for them. ikL_ becomes ik4_ or ik8_. */
typedef double ikL_f __attribute__((vector_size(8 * LANES)));
typedef int64_t ikL_i __attribute__((vector_size(8 * LANES))); /* numbers; or a mask, -1 or 0 */
typedef struct { void *p; ikL_i at; } ikL_rows; /* a row of an array for each lane, which begins at entry at */
#define IKL_INLINE static inline __attribute__((always_inline, target(IK_TARGET)))
#define IKL_FUNCTION static inline __attribute__((target(IK_TARGET)))
#define ikL_everyone ((ikL_i){0} - 1)
#define ikL_none ((ikL_i){0})
#if LANES == 4
#define ikL_numbers ((ikL_i){0, 1, 2, 3})
#else
#define ikL_numbers ((ikL_i){0, 1, 2, 3, 4, 5, 6, 7})
#endif

IKL_INLINE ikL_f ikL_all_f(double a) { return (ikL_f){0} + a; }
IKL_INLINE ikL_i ikL_all_i(int64_t a) { return (ikL_i){0} + a; }
IKL_INLINE ikL_i ikL_all_b(bool a) { return (ikL_i){0} - (int64_t)a; }
#if LANES == 4
IKL_INLINE ikL_f ikL_fma(ikL_f a, ikL_f b, ikL_f c) { return (ikL_f)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
IKL_INLINE bool ikL_any(ikL_i m) { return !_mm256_testz_si256((__m256i)m, (__m256i)m); }
IKL_INLINE ikL_f ikL_sqrt(ikL_f a) { return (ikL_f)_mm256_sqrt_pd((__m256d)a); }
IKL_INLINE ikL_f ikL_floor(ikL_f a) { return (ikL_f)_mm256_floor_pd((__m256d)a); }
IKL_INLINE ikL_f ikL_ceil(ikL_f a) { return (ikL_f)_mm256_ceil_pd((__m256d)a); }
IKL_INLINE ikL_f ikL_rint(ikL_f a) { return (ikL_f)_mm256_round_pd((__m256d)a, 8); }
IKL_INLINE ikL_f ikL_pick_f(ikL_i m, ikL_f a, ikL_f b)
{
    return (ikL_f)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)m);
}
IKL_INLINE ikL_f ikL_min_f(ikL_f a, ikL_f b) { return (ikL_f)_mm256_min_pd((__m256d)b, (__m256d)a); }
IKL_INLINE ikL_f ikL_max_f(ikL_f a, ikL_f b) { return (ikL_f)_mm256_max_pd((__m256d)b, (__m256d)a); }
#else
IKL_INLINE ikL_f ikL_fma(ikL_f a, ikL_f b, ikL_f c) { return (ikL_f)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
IKL_INLINE bool ikL_any(ikL_i m) { return _mm512_test_epi64_mask((__m512i)m, (__m512i)m) != 0; }
IKL_INLINE ikL_f ikL_sqrt(ikL_f a) { return (ikL_f)_mm512_sqrt_pd((__m512d)a); }
IKL_INLINE ikL_f ikL_floor(ikL_f a) { return (ikL_f)_mm512_roundscale_pd((__m512d)a, 9); }
IKL_INLINE ikL_f ikL_ceil(ikL_f a) { return (ikL_f)_mm512_roundscale_pd((__m512d)a, 10); }
IKL_INLINE ikL_f ikL_rint(ikL_f a) { return (ikL_f)_mm512_roundscale_pd((__m512d)a, 8); }
IKL_INLINE ikL_f ikL_pick_f(ikL_i m, ikL_f a, ikL_f b)
{
    return (ikL_f)_mm512_mask_blend_pd(_mm512_test_epi64_mask((__m512i)m, (__m512i)m), (__m512d)b, (__m512d)a);
}
IKL_INLINE ikL_f ikL_min_f(ikL_f a, ikL_f b) { return (ikL_f)_mm512_min_pd((__m512d)b, (__m512d)a); }
IKL_INLINE ikL_f ikL_max_f(ikL_f a, ikL_f b) { return (ikL_f)_mm512_max_pd((__m512d)b, (__m512d)a); }
#endif
IKL_INLINE ikL_i ikL_pick_i(ikL_i m, ikL_i a, ikL_i b) { return (a & m) | (b & ~m); }
IKL_INLINE ikL_i ikL_min_i(ikL_i a, ikL_i b) { return ikL_pick_i((ikL_i)(b < a), b, a); }
IKL_INLINE ikL_i ikL_max_i(ikL_i a, ikL_i b) { return ikL_pick_i((ikL_i)(b > a), b, a); }
IKL_INLINE ikL_f ikL_abs(ikL_f a) { return (ikL_f)((ikL_i)a & INT64_MAX); }
IKL_INLINE ikL_i ikL_isnan(ikL_f a) { return (ikL_i)(a != a); }
IKL_INLINE ikL_f ikL_real(ikL_i a) { return __builtin_convertvector(a, ikL_f); }
IKL_INLINE ikL_i ikL_whole(ikL_f a) { return __builtin_convertvector(a, ikL_i); }

/* Entries at another index for each lane; those of lanes that take no part are neither read nor written. */
#if LANES == 4
#define IKL_EACH(DO) DO(0) DO(1) DO(2) DO(3)
#else
#define IKL_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#endif
IKL_INLINE ikL_f ikL_get_f(const double *p, ikL_i at, ikL_i m)
{
    at &= m;
#define DO(L) p[at[L]],
    return (ikL_f){IKL_EACH(DO)};
#undef DO
}
IKL_INLINE ikL_f ikL_get_F(const ikL_f *p, ikL_i at, ikL_i m)
{
    at &= m;
#define DO(L) p[at[L]][L],
    return (ikL_f){IKL_EACH(DO)};
#undef DO
}
IKL_INLINE void ikL_put_F(ikL_f *p, ikL_i at, ikL_f a, ikL_i m)
{
    a = ikL_pick_f(m, a, ikL_get_F(p, at, m));
    at &= m;
#define DO(L) p[at[L]][L] = a[L];
    IKL_EACH(DO)
#undef DO
}
/* Into a small array, by vectors: what is read soon after has not to wait for numbers in it. */
IKL_INLINE void ikL_put_few(ikL_f *p, int64_t count, ikL_i at, ikL_f a, ikL_i m)
{
    for (int64_t i = 0; i < count; i++) p[i] = ikL_pick_f(m & (ikL_i)(at == i), a, p[i]);
}
#define DO(L) if (m[L]) p[at[L]] = a[L];
IKL_INLINE void ikL_put_f(double *p, ikL_i at, ikL_f a, ikL_i m) { IKL_EACH(DO) }
#undef DO
#define DO(L) if (m[L]) p[at[L]] = a[L] != 0;
IKL_INLINE void ikL_put_b(bool *p, ikL_i at, ikL_i a, ikL_i m) { IKL_EACH(DO) }
#undef DO
IKL_INLINE void ikL_fill(ikL_f *p, int64_t count, ikL_f a, ikL_i m)
{
    for (int64_t i = 0; i < count; i++) p[i] = ikL_pick_f(m, a, p[i]);
}

/* For arguments that the polynomials below are not for: huge, tiny, infinite, NaN. Rare. */
#define IKL_BY_LIBM(NAME)                                                                       \
    static __attribute__((noinline, cold, target(IK_TARGET)))                                   \
    ikL_f ikL_by_##NAME(ikL_f a, ikL_f b, ikL_i m, ikL_f other)                                 \
    {                                                                                           \
        for (int l = 0; l < LANES; l++) if (m[l]) other[l] = NAME(a[l], b[l]);                                        \
        return other;                                                                           \
    }
IKL_BY_LIBM(atan2)
IKL_BY_LIBM(pow)
#undef IKL_BY_LIBM
static __attribute__((noinline, cold, target(IK_TARGET))) ikL_f ikL_by_sin(ikL_f a, ikL_i m, ikL_f other, bool is_cos)
{
    for (int l = 0; l < LANES; l++) if (m[l]) other[l] = is_cos ? cos(a[l]) : sin(a[l]);
    return other;
}
IKL_INLINE ikL_f ikL_pow(ikL_f a, ikL_f b, ikL_i m) { return ikL_by_pow(a, b, m, a); }

/* Sine, or the cosine as the sine of a quarter turn more. a = n pi/2 + r with |r| <= pi/4: pi/2 is the sum of
   three numbers, the first two of 33 bits, so that their products with n < 2^20 are exact. Polynomials for r are
   those of Cephes (Moshier 1989). */
IKL_INLINE ikL_f ikL_wave(ikL_f a, int64_t quarter, ikL_i m)
{
    const ikL_f magic = ikL_all_f(6755399441055744.0); /* 1.5 * 2^52: adding it rounds, and leaves n in the last bits */
    const ikL_f moved = a * 0.63661977236758134308 + magic, n = moved - magic;
    const ikL_f r = ((a - n * 1.57079632673412561417) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
    const ikL_f z = r * r;
#define POLYNOMIAL(C0, C1, C2, C3, C4, C5)                                                      \
    ikL_fma(ikL_fma(ikL_fma(ikL_fma(ikL_fma(ikL_all_f(C5), z, ikL_all_f(C4)), z, ikL_all_f(C3)), z, \
                            ikL_all_f(C2)), z, ikL_all_f(C1)), z, ikL_all_f(C0))
    const ikL_f odd = ikL_fma(r * z, POLYNOMIAL(-1.66666666666666307295e-1, 8.33333333332211858878e-3,
        -1.98412698295895385996e-4, 2.75573136213857245213e-6, -2.50507477628578072866e-8, 1.58962301576546568060e-10), r);
    const ikL_f even = ikL_fma(z * z, POLYNOMIAL(4.16666666666665929218e-2, -1.38888888888730564116e-3,
        2.48015872888517045348e-5, -2.75573141792967388112e-7, 2.08757008419747316778e-9, -1.13585365213876817300e-11),
        1.0 - 0.5 * z);
#undef POLYNOMIAL
    const ikL_i k = (ikL_i)moved + quarter;
    const ikL_f wave = ikL_pick_f((ikL_i)((k & 1) != 0), even, odd);
    const ikL_f result = (ikL_f)((ikL_i)wave ^ ((k & 2) << 62));
    const ikL_i rare = m & ~(ikL_i)(ikL_abs(a) < 1e6);
    if (__builtin_expect(ikL_any(rare), 0)) return ikL_by_sin(a, rare, result, quarter != 0);
    return result;
}
IKL_INLINE ikL_f ikL_sin(ikL_f a, ikL_i m) { return ikL_wave(a, 0, m); }
IKL_INLINE ikL_f ikL_cos(ikL_f a, ikL_i m) { return ikL_wave(a, 1, m); }

/* The arctangent of the lesser by the greater; above tan(pi/8) that of (t - 1) / (t + 1), an eighth of a turn less.
   Rational function of Cephes. */
IKL_INLINE ikL_f ikL_atan2(ikL_f y, ikL_f x, ikL_i m)
{
    const ikL_f ax = ikL_abs(x), ay = ikL_abs(y), high = ikL_max_f(ax, ay), low = ikL_min_f(ax, ay);
    const ikL_i far = (ikL_i)(low > 0.41421356237309504880 * high);
    const ikL_f u = ikL_pick_f(far, low - high, low) / ikL_pick_f(far, low + high, high), z = u * u;
#define NEXT(POLYNOMIAL, C) ikL_fma(POLYNOMIAL, z, ikL_all_f(C))
    const ikL_f p = NEXT(NEXT(NEXT(NEXT(ikL_all_f(-8.750608600031904122785e-1), -1.615753718733365076637e1),
        -7.500855792314704667340e1), -1.228866684490136173410e2), -6.485021904942025371773e1) * z;
    const ikL_f q = NEXT(NEXT(NEXT(NEXT(z + 2.485846490142306297962e1, 1.650270098316988542046e2),
        4.328810604912902668951e2), 4.853903996359136964868e2), 1.945506571482613964425e2);
#undef NEXT
    ikL_f angle = ikL_fma(u, p / q, u);
    angle = ikL_pick_f(far, 0.78539816339744830962 + angle, angle);
    angle = ikL_pick_f((ikL_i)(ay > ax), 1.57079632679489661923 - angle, angle);
    angle = ikL_pick_f((ikL_i)(x < 0.0), 3.14159265358979323846 - angle, angle);
    angle = (ikL_f)((ikL_i)angle | ((ikL_i)y & INT64_MIN));
    const ikL_i rare = m & ~(ikL_i)((high > 1e-290) & (ax + ay < 1e290)); /* NaN too */
    if (__builtin_expect(ikL_any(rare), 0)) return ikL_by_atan2(y, x, rare, angle);
    return angle;
}

/* Whether processor and system have such vectors. __builtin_cpu_supports would make zig link all of its runtime, with a
   sin, cos, tan, exp and log that differ in last bits from those of the system, which Python calls. */
static bool ikL_supported(void)
{
    static int known; /* 1 no, 2 yes: cpuid takes long in a virtual machine */
    const unsigned state = LANES == 4 ? 0x6 : 0xe6; /* registers that the system keeps: XMM and YMM, all of ZMM too */
    unsigned a, b, c, d, kept, high;
    if (known) return known == 2;
    bool has = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE) && (c & bit_FMA);
    if (has) {
        __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
        has = (kept & state) == state && __get_cpuid_count(7, 0, &a, &b, &c, &d);
    }
    has = has && (b & (LANES == 4 ? bit_AVX2 : bit_AVX512F));
    known = 1 + has;
    return has;
}
