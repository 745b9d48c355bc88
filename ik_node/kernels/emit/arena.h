/* Scratch memory in blocks that are kept and never moved. A function gives back what it took when it returns. */
#include <stdlib.h>

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
