/* A Python module without Python.h, so that one binary serves many versions of Python: the functions declared
   here are of the stable ABI (PEP 384), and the heads of objects, arrays and dtypes have been the same in every
   Python and NumPy since 3.7 and 1.7. Builds of Python with other heads (free-threaded, --with-trace-refs) must
   not load this; the loader tries the module with an array that it knows before it uses it. */
typedef struct ik_object { intptr_t references; struct ik_object *type; } PyObject;
typedef intptr_t Py_ssize_t;
typedef PyObject *(*ik_fast)(PyObject *, PyObject *const *, Py_ssize_t);
typedef struct { const char *name; ik_fast function; int flags; const char *doc; } PyMethodDef;
typedef struct {
    PyObject base; PyObject *(*init)(void); Py_ssize_t index; PyObject *copy;
    const char *name, *doc; Py_ssize_t size; PyMethodDef *methods; void *slots, *traverse, *clear, *free;
} PyModuleDef;
#define METH_FASTCALL 0x80
#define ABI_VERSION 1013
extern PyObject *PyModule_Create2(PyModuleDef *, int), *PyImport_ImportModule(const char *);
extern PyObject *PyObject_GetAttrString(PyObject *, const char *);
extern PyObject *PyObject_CallFunction(PyObject *, const char *, ...);
extern PyObject *PyFloat_FromDouble(double), *PyLong_FromLongLong(long long), *PyBool_FromLong(long);
extern PyObject *PyTuple_New(Py_ssize_t);
extern PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t), *PyList_GetItem(PyObject *, Py_ssize_t);
extern Py_ssize_t PyTuple_Size(PyObject *), PyList_Size(PyObject *);
extern int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *), PyObject_IsTrue(PyObject *);
extern double PyFloat_AsDouble(PyObject *);
extern long long PyLong_AsLongLong(PyObject *);
extern PyObject *PyErr_Format(PyObject *, const char *, ...), *PyErr_Occurred(void), *PyErr_NoMemory(void);
extern void PyErr_Clear(void);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);
extern PyObject *PyExc_TypeError, _Py_NoneStruct, PyTuple_Type, PyList_Type, PyFloat_Type, PyLong_Type;
extern void Py_DecRef(PyObject *), Py_IncRef(PyObject *);

typedef struct {
    PyObject base; char *data; int rank; Py_ssize_t *sizes, *strides; PyObject *owner, *dtype; int flags;
} ik_ndarray;
typedef struct { PyObject base; PyObject *scalar; char kind, type, order; } ik_dtype;
#define WRITEABLE 0x400
static PyObject *ik_ndarray_type, *ik_empty, *ik_float64;

/* Return an argument as an array, or 0 with TypeError where it is not what the kernel takes. */
static const ik_ndarray *ik_array(
    PyObject *given, const char *kernel, const char *name, char type, int rank, int is_written)
{
    const ik_ndarray *array = (const ik_ndarray *)given;
    if (given->type != ik_ndarray_type) {
        PyErr_Format(PyExc_TypeError, "%s: %s must be an array", kernel, name);
        return 0;
    }
    const ik_dtype *dtype = (const ik_dtype *)array->dtype;
    const int same = dtype->type == type || (type == 'l' && dtype->type == 'q') || (type == 'L' && dtype->type == 'Q');
    if (array->rank != rank || !same || dtype->order == '>') {
        PyErr_Format(PyExc_TypeError, "%s: %s must be an array of %c with %d dimensions, got one of %c with %d",
                     kernel, name, (int)type, rank, (int)dtype->type, array->rank);
        return 0;
    }
    if (is_written && !(array->flags & WRITEABLE)) {
        PyErr_Format(PyExc_TypeError, "%s: %s must be writable", kernel, name);
        return 0;
    }
    const Py_ssize_t size = type == '?' ? 1 : 8;
    int is_empty = 0, is_apart = array->sizes[rank - 1] > 1 && array->strides[rank - 1] != size;
    for (int k = 0; k < rank; k++) is_empty |= array->sizes[k] == 0;
    for (int k = 0; k < rank - 1; k++) is_apart |= array->strides[k] % size != 0;
    if (((intptr_t)array->data % size != 0 || is_apart) && !is_empty) {
        PyErr_Format(PyExc_TypeError, "%s: the rows of %s must be contiguous and aligned", kernel, name);
        return 0;
    }
    return array;
}

/* Read an array, list or tuple of numbers: a view of the array, else of copies in room. Whether that worked. */
#define IK_MAX_NUMBERS 16
static int ik_read_numbers(PyObject *given, real *room, ik_f1 *numbers)
{
    if (given->type == ik_ndarray_type) {
        const ik_ndarray *array = (const ik_ndarray *)given;
        const ik_dtype *dtype = (const ik_dtype *)array->dtype;
        if (array->rank != 1 || dtype->type != 'd' || dtype->order == '>' || (intptr_t)array->data % 8 != 0) return 0;
        if (array->sizes[0] > 1 && array->strides[0] != 8) return 0;
        numbers->p = (real *)array->data;
        numbers->n0 = array->sizes[0];
        return 1;
    }
    const int is_list = given->type == &PyList_Type;
    if (!is_list && given->type != &PyTuple_Type) return 0;
    const Py_ssize_t count = is_list ? PyList_Size(given) : PyTuple_Size(given);
    if (count > IK_MAX_NUMBERS) return 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *item = is_list ? PyList_GetItem(given, k) : PyTuple_GetItem(given, k);
        if (item->type != &PyFloat_Type && item->type != ik_float64 && item->type != &PyLong_Type) return 0;
        room[k] = PyFloat_AsDouble(item);
        if (room[k] == -1.0 && PyErr_Occurred()) { /* a whole number beyond 1.8e308 */
            PyErr_Clear();
            return 0;
        }
    }
    numbers->p = room;
    numbers->n0 = count;
    return 1;
}

/* One arena for each thread: a kernel gives back all that it took, so the next one begins anew. The blocks are
   freed when the thread ends. */
#include <pthread.h>
#include <setjmp.h>
static __thread ik_arena ik_thread_arena;
static pthread_key_t ik_at_end;
static void ik_free(void *arena)
{
    ik_block *block = ((ik_arena *)arena)->first;
    while (block) {
        ik_block *next = block->next;
        free(block);
        block = next;
    }
}
static ik_arena *ik_own_arena(void)
{
    if (!ik_thread_arena.first) pthread_setspecific(ik_at_end, &ik_thread_arena);
    return &ik_thread_arena;
}
static __thread jmp_buf ik_no_memory;
static void ik_failed(void) { longjmp(ik_no_memory, 1); }

static PyObject *ik_wrong_count(const char *kernel, int expected, Py_ssize_t given)
{
    return PyErr_Format(PyExc_TypeError, "%s takes %d arguments, got %zd", kernel, expected, given);
}
static PyObject *ik_none(void) { Py_IncRef(&_Py_NoneStruct); return &_Py_NoneStruct; }
/* Put a new object into a new tuple; without one drop the tuple. */
static void ik_set(PyObject **tuple, Py_ssize_t index, PyObject *object)
{
    if (object) {
        PyTuple_SetItem(*tuple, index, object);
    } else {
        Py_DecRef(*tuple);
        *tuple = 0;
    }
}
/* A new array of NumPy with the entries of a view. */
static PyObject *ik_new_ndarray2(ik_f2 a)
{
    PyObject *array = PyObject_CallFunction(ik_empty, "((nn))", (Py_ssize_t)a.n0, (Py_ssize_t)a.n1);
    if (array)
        for (int64_t i = 0; i < a.n0; i++)
            memcpy(((ik_ndarray *)array)->data + i * a.n1 * 8, a.p + i * a.s0, (size_t)a.n1 * 8);
    return array;
}

#define IK_MODULE(NAME)                                                                         \
    static PyModuleDef ik_module = {{1, 0}, 0, 0, 0, #NAME, 0, -1, methods, 0, 0, 0, 0};        \
    __attribute__((visibility("default"))) PyObject *PyInit_##NAME(void);                       \
    PyObject *PyInit_##NAME(void)                                                               \
    {                                                                                           \
        PyObject *numpy = PyImport_ImportModule("numpy");                                       \
        if (!numpy || pthread_key_create(&ik_at_end, ik_free)) return 0;                        \
        ik_ndarray_type = PyObject_GetAttrString(numpy, "ndarray");                             \
        ik_empty = PyObject_GetAttrString(numpy, "empty");                                      \
        ik_float64 = PyObject_GetAttrString(numpy, "float64");                                  \
        Py_DecRef(numpy);                                                                       \
        const int is_known = ik_ndarray_type && ik_empty && ik_float64;                         \
        return is_known ? PyModule_Create2(&ik_module, ABI_VERSION) : 0;                        \
    }
