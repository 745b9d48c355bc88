# SPDX-License-Identifier: Apache-2.0
"""The translation of kernels to C: the same bits as Python, or a refusal that names the line."""

from __future__ import annotations

import faulthandler
import importlib.util
import itertools
import math
import os
import signal
import sys
from types import FunctionType, ModuleType

import numpy as np
import pytest

from ik_node.kernels.build import BuildError, compile_module, compiler
from ik_node.kernels.emit.expressions import UnsupportedError
from ik_node.kernels.emit.module import module_source
from ik_node.kernels.emit.program import Program
from ik_node.kernels.emit.types import Constant, static
from ik_node.kernels.native import load_module

SUPPORTED = '''
from math import asin, atan2, ceil, cos, exp, floor, frexp, isfinite, isinf, isnan, ldexp, log, nan, sin
from math import sqrt, tan

import numpy as np

from ik_node.kernels.language import B0, B1, F0, F1, F2, F3, I0, I1, I2, R1, R2, U1, V1, specialised

SCALE, COUNT, NAMES, ROWS = 2.5, 3, (1, 4, 9), ((1.0, 2.0), (3.0, 4.0))


def arithmetic(a: F0, b: F0, n: I0, k: I0):
    """Operators of numbers, with the precedence of Python."""
    m = n // k if k != 0 else 0
    r = n % k if k != 0 else 0
    x, y = a - (b - a), (a + b) * (a - b)
    return x, y, -(-a), a / (b * b), m, r, n - (k - n), -n, n / 7, (n << 2) ^ k, n & 6


def rounding(a: F0, b: F0):
    """Integers from real numbers, of any size."""
    return floor(a), ceil(a), round(a), a - floor(a), a - round(a), int(b), float(int(b)), abs(floor(b))


def functions(a: F0, b: F0):
    x = sin(a), cos(a), atan2(a, b), sqrt(abs(a)), exp(min(a, 5.0))
    return x[0], x[1], x[2], x[3], x[4], abs(b) ** 0.5, asin(sin(a)), tan(b), log(1.0 + abs(a))


def extremes(a: F0, b: F0, c: F0, n: I0):
    """The first argument wins where the other is not beyond it, and against NaN."""
    low, high = min(a, b, c), max(c, b, a)
    return min(a, b), max(a, b), low, high, min(n, 3), max(n, COUNT), min(a, nan), max(nan, a)


def tests(a: F0, b: F0, n: I0):
    inside = -1.0 < a <= 1.0 and not b > a
    return inside, isnan(a) or isinf(b), isfinite(a), n in (1, 4), n in NAMES, a == b, a != b, bool(n)


def choices(a: F0, n: I0):
    """A variable has the widest type of all its values."""
    x = 0
    if a > 1.0:
        x = a
    elif a > 0.0:
        x = 2
    y = 1 if n > 0 else 0.5
    low, high = (a, 0.0) if a < 0.0 else (0.0, a)
    return x, y, low, high


def loops(n: I0, values: F1):
    total, last = 0.0, -1
    for i in range(n):
        if values[i] < 0.0:
            continue
        if values[i] > 10.0:
            break
        total += values[i]
        last = i
    for i in range(n - 1, -1, -2):
        total = 0.5 * total + values[i]
    for low in range(0, n, 1 + n // 2):
        total -= low
    for _ in range(3):
        total *= 1.5
    k = n
    while k > 0 and total < 100.0:
        k -= 1
        total += 1
    return total, last, k, i


def ends(n: I0):
    """The end of a range is worked out once, and counters survive their loops."""
    m, steps = n, 0
    for i in range(m):
        m -= 1
        steps += 1
    for i in range(2):
        for i in range(3):
            steps += 10
    return m, steps, i


def counters(n: I0):
    """Names of loops that change in the loop, in one within, and that are read in another loop."""
    total = 0
    for i in range(n):
        i = i + 2
        total += i
    for j in range(n):
        for j in range(2):
            total += j
        total += 10 * j
    for k in range(n):
        total += k
    for m in range(n):
        total += 100 * k + m
    return total


def same_name(n: I0, pairs: I2):
    """A loop over a name that is its end, an index that is a target, and a rounded number from a choice."""
    steps = 0
    for n in range(n):
        steps += 1
    i = 1
    i, j = pairs[i]
    return steps, n, i, j


def chosen(a: F0):
    return 2.0 * (ceil(a) if a < 0.0 else floor(a)), a - (floor(a) if a > 0.0 else ceil(a))


def bounds(a: F0):
    """Whole numbers beyond int64 are larger, or less, than all others."""
    n = int(a)
    return n > 5, n < -5, 3 < floor(a), ceil(a) < 3


def over_tuples(a: F1, b: F1):
    total = 0.0
    for row, sign in ((a, 1.0), (b, -1.0)):
        for k in range(row.shape[0]):
            total = total * 0.5 + sign * row[k]
    for x, y in ROWS:
        total += x * y
    for p in (1, 2, 3):
        total += p
    return total


def swaps(a: F0, b: F0, values: F1):
    """All values are worked out before the first one is stored."""
    a, b = b, a
    values[0], values[1] = values[1], values[0] + a
    x = y = values[0]
    x += 1.0
    return a, b, x, y


def views(table: F2, row: I0, out: F2):
    """Slices are views, which end where the array ends."""
    m, n = table.shape[0], table.shape[1]
    part = table[1:, :2]
    line = table[row]
    for i in range(part.shape[0]):
        out[i, 0] = part[i, 0] + line[1]
    out[m - 1, :] = SCALE
    tail = line[n - 2 : n + 5]
    tail[0] += 1.0
    last = line[-1]
    some = line[2:1]
    return part.shape[0], tail.shape[0], some.shape[0], last


def scratch(n: I0, out: F2):
    """New arrays, also of other types, given back at the end."""
    zeros, ones = np.zeros(n), np.full(n, 1.0)
    table = np.empty((n, 2))
    table[:, :] = 3.0
    marks = np.empty(n, dtype=np.bool_)
    numbers = np.zeros(n, np.int64)
    for i in range(n):
        marks[i] = i % 2 == 0
        numbers[i] += i * i
        if marks[i]:
            zeros[i] = numbers[i] + ones[i] * table[i, 1]
    copy = zeros.copy()
    zeros[0] = -1.0
    for i in range(n):
        out[0, i], out[1, i] = zeros[i], copy[i]
    return zeros[0] if n > 2 else copy[0]


def three(cube: F3, out: F2):
    layer = cube[1]
    for i in range(cube.shape[1]):
        for j in range(cube.shape[2]):
            out[i, j] = layer[i, j] - cube[0, i, j]
    return layer[:, 1].argmin(), cube[0, 1].argmax()


def integers(state: U1, counts: I1, marks: B1, pairs: I2):
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    counts[0] += 2
    marks[1] = not marks[0]
    pairs[1, 0] = counts[0]
    return float(x >> np.uint64(11)) / 9007199254740992.0


def complex_numbers(a: F0, b: F0):
    z = complex(a, b) * complex(b, 1.0) - complex(1.0, 2.0)
    w = z.conjugate() + z * z
    return z.real, z.imag, abs(w), (-w).real


def parts(a: F0):
    mantissa, exponent = frexp(a)
    return mantissa, exponent, ldexp(mantissa, exponent + 1)


def names(double: F0, int64: F0, A: F0):
    """Words of C, and a name that holds a number, then an array."""
    register = double + int64 + A
    x = register
    y = x * 2.0
    x = np.full(2, y)
    return register, x[0] + x[1]


def helped(a: F0, n: I0):
    return helper(a, 1.0) + helper(n, 2), helper(a, n)


def helper(x, y):
    pair = x, y
    if x > y:
        return pair[0] - pair[1]
    return x + y


def template(a: F0):
    return PART(a) + FACTOR


def PART(a):
    return a


FACTOR = 1.0


def twice(a):
    return 2.0 * a


doubled = specialised(template, 'doubled', PART=twice, FACTOR=10.0)


def arrays_out(n: I0):
    found = np.zeros((n, 2))
    for i in range(n):
        found[i, 0] = i
    return found, n


def numbers(values: V1, a: F0):
    total = 0.0
    for i in range(values.shape[0]):
        total += a * values[i]
    return values.shape[0], total


def nothing(values: F1):
    for i in range(values.shape[0]):
        values[i] = -values[i]


def read_only(values: R1, table: R2):
    return values[0] + table[1, 1]
'''
HEAD = 'import numpy as np\nfrom ik_node.kernels.language import F0, F1\n\n\n'
FOLDED = """
import numpy as np


def kernel(q, out):
    n = q.shape[0]
    work = np.empty(n)
    if n > 7:
        return q[7]
    total = 0.0
    for i in range(n):
        work[i] = q[i]
        total += work[i]
    out[0] = total
    return total
"""
REALS = (0.0, -0.0, 1.0, -1.5, 0.3, 2.5, 1e-320, 1e300, -7.25, math.nan, math.inf, -math.inf)
FINITE = [x for x in REALS if math.isfinite(x)]
INTEGERS = (-7, -1, 0, 1, 4, 9)


def made(folder, text: str, name: str = 'kernels_of_a_test') -> ModuleType:
    path = folder / f'{name}.py'
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def kernels_in(module: ModuleType) -> dict[str, FunctionType]:
    """Those with types of all arguments."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, FunctionType)}
    own = {name: value for name, value in found.items() if value.__globals__['__name__'] == module.__name__}
    inner = 'helper', 'PART', 'twice'
    return {name: value for name, value in own.items() if value.__code__.co_name not in inner}


@pytest.fixture(scope='module')
def pair(tmp_path_factory):
    """The kernels above in Python and in C."""
    try:
        compiler()
    except BuildError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp('language')
    python = made(folder, SUPPORTED)
    kernels = kernels_in(python)
    kernels.pop('template')
    file = folder / 'language.so'
    compile_module(module_source('language', kernels), file, options=('-O0', '-Wall', '-Werror'))
    return kernels, load_module('language', file)


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, tuple) else [value]


def outcome(kernel, given):
    """Results, and arrays after a call."""
    arguments = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
    results = flat(kernel(*arguments))
    return [np.asarray(x) for x in (*results, *(x for x in arguments if isinstance(x, np.ndarray)))]


def same(pair, name, *rows):
    """Compare bits; where a variable may be an integer in Python it is a real number in C."""
    python, c = pair
    for given in rows:
        with np.errstate(all='ignore'):
            expected = outcome(python[name], given)
        found = outcome(getattr(c, name), given)
        assert len(expected) == len(found)
        for x, y in zip(expected, found, strict=True):
            assert x.astype(y.dtype).tobytes() == y.tobytes(), (name, given, x, y)


@pytest.mark.parametrize(
    ('name', 'rows'),
    [
        ('arithmetic', list(itertools.product(FINITE, (0.3, -2.0), INTEGERS, INTEGERS))),
        ('rounding', [(a, b) for a in FINITE[:-2] for b in (2.7, -2.7, 1e15, 0.5)]),
        ('functions', [(a, b) for a in FINITE[:6] for b in FINITE[:6] if b != 0.0]),
        ('extremes', [(*row, n) for row in itertools.product(REALS[:5], REALS, REALS[3:6]) for n in (0, 5)]),
        ('tests', [(a, b, n) for a in REALS for b in REALS for n in INTEGERS]),
        ('choices', [(a, n) for a in FINITE for n in INTEGERS]),
        ('ends', [(n,) for n in (1, 4, 9)]),
        ('bounds', [(a,) for a in (0.5, -0.5, 7.9, -7.9, 1e18, 1e300, -1e300, 2.0**63, -(2.0**63))]),
        ('counters', [(n,) for n in (1, 4)]),
        ('chosen', [(a,) for a in (0.5, -0.5, -1e300, 1e300, -0.0)]),
        ('complex_numbers', [(a, b) for a in FINITE[1:6] for b in FINITE[1:6]]),
        ('parts', [(a,) for a in FINITE]),
        ('names', [(0.25, 3.5, -1.0)]),
        ('helped', [(a, n) for a in FINITE[:6] for n in INTEGERS]),
        ('doubled', [(1.25,)]),
        ('arrays_out', [(0,), (4,)]),
    ],
)
def test_numbers_are_the_same_in_all_bits(pair, name, rows):
    same(pair, name, *rows)


def test_arrays_are_the_same_in_all_bits(pair):
    rng = np.random.default_rng(1)
    table = rng.normal(size=(4, 6))
    wide = rng.normal(size=(9, 8))[1:5, :6]  # rows apart
    for n in (2, 3, 6):
        same(pair, 'loops', (n, np.array([1.0, -1.0, 2.0, 11.0, 3.0, 4.0])), (n, rng.normal(size=6)))
    same(pair, 'over_tuples', (table[0], table[1, :3]))
    same(pair, 'swaps', (1.0, 2.0, table[0]))
    for given in (table, wide):
        same(pair, 'views', (given, 1, np.zeros((4, 6))), (given, 0, np.zeros((4, 6))))
    same(pair, 'scratch', (5, np.zeros((2, 5))), (2, np.zeros((2, 2))))
    same(pair, 'three', (rng.normal(size=(2, 3, 4)), np.zeros((3, 4))))
    same(pair, 'three', (np.full((2, 3, 4), np.nan), np.zeros((3, 4))))
    same(pair, 'same_name', (5, np.array([[1, 2], [0, 3]])))
    same(pair, 'nothing', (table[2],), (np.empty(0),))
    same(pair, 'read_only', (table[0], table))
    state, counts = np.array([88172645463325252], np.uint64), np.array([1, 2])
    same(pair, 'integers', (state, counts, np.array([True, True]), np.zeros((2, 2), np.int64)))


def test_wrong_arguments_are_errors_in_one_sentence(pair):
    _, c = pair
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for given, part in (
        ((np.zeros(3, np.float32),), 'array of d with 1 dimensions, got one of f with 1'),
        ((np.zeros((2, 2)),), 'with 2'),
        (([1.0],), 'values must be an array'),
        ((np.zeros(6)[::2],), 'contiguous'),
        ((frozen,), 'writable'),
        ((np.zeros(3, '>f8'),), 'values must be'),
        ((), 'takes 1 arguments, got 0'),
    ):
        with pytest.raises(TypeError, match=f'^nothing.*{part}'):
            c.nothing(*given)
    with pytest.raises(TypeError):
        c.parts('x')
    assert c.read_only(frozen, np.eye(2)) == 1.0


def test_numbers_of_a_list_tuple_or_array_are_read(pair):
    for row in ((0.5, -0.0, math.nan), (1, 2.5, 10**300), (), (7.0,) * 16):
        array = np.array(row, float)
        array.flags.writeable = False
        same(pair, 'numbers', (array, 2.0))
        for given in (row, list(row), list(array)):
            assert repr(pair[1].numbers(given, 2.0)) == repr(pair[1].numbers(array, 2.0))


@pytest.mark.parametrize(
    'given',
    [
        'abc',
        None,
        1.0,
        [True, 1.0],
        [1.0, '2'],
        [1.0, None],
        [10**400],
        [1j],
        [[1.0]],
        [1.0] * 17,
        (np.float32(1.0),),
        np.zeros(3, np.float32),
        np.zeros(3, int),
        np.zeros(3, '>f8'),
        np.zeros((1, 3)),
        np.zeros(6)[::2],
        np.ma.zeros(3),
        np.frombuffer(bytes(25), offset=1),
        {1.0: 2.0},
    ],
    ids=repr,
)
def test_other_numbers_are_left_to_the_caller(pair, given):
    """None, and no error that would appear at the next call."""
    _, c = pair
    assert c.numbers(given, 2.0) is None
    assert c.numbers([1.0], 2.0) == (1, 2.0)


def test_what_is_not_translated_is_refused_with_its_line(tmp_path):
    for number, (body, part) in enumerate(
        (
            ('return a ** 2', 'x ** 2: write the product'),
            ('return a // 2.0', '// and %'),
            ('x = [a]\n    return x[0]', 'List'),
            ('return sum((a, a))', 'a call of sum'),
            ('return np.dot(a, a)', 'np.dot'),
            ('for x in values:\n        a += x\n    return a', 'a loop over other than range'),
            ('return values[::2]', 'a slice with a step'),
            ('return values[:-1].shape[0]', 'a slice from the end'),
            ('return values + values', 'an operator between arrays'),
            ('return a and a', 'and, or of other than bool'),
            ('return kernel(a, values)', 'kernel, which calls itself'),
            ('with a:\n        return a', 'With'),
            ('try:\n        return a\n    except ValueError:\n        return a', 'Try'),
            ('x = a\n    x = values, a\n    x = a, a, a\n    return 0.0', 'one variable holds'),
            ('return later', 'the name later'),
            ('return values', 'an array as the only result'),
            ('return f"{a}"', 'JoinedStr'),
        )
    ):
        text = f'{HEAD}def kernel(a: F0, values: F1):\n    {body}\n'
        module = made(tmp_path, text, f'refused_{number}')
        with pytest.raises(UnsupportedError, match=rf'refused_{number}\.py:\d+: .*no C for ') as error:
            module_source('refused', {'kernel': module.kernel})
        assert part in str(error.value)


def test_a_kernel_that_python_calls_needs_types(tmp_path):
    module = made(tmp_path, 'def kernel(a):\n    return a\n', 'untyped')
    with pytest.raises(TypeError, match='kernel: argument a needs a type'):
        module_source('untyped', {'kernel': module.kernel})


def test_known_sizes_are_folded_into_the_c_code(tmp_path):
    module = made(tmp_path, FOLDED, 'folded')
    program = Program(keeps_sizes=True)
    function = program.function(module.kernel, [static('f', (5,)), static('f', (1,))])
    assert '\n    for (int64_t i = 0; i < 5; i++) {\n        ' in function.text
    assert 'q[7]' not in function.text
    assert 'real space_1[5];' in function.text
    assert not function.needs_arena


def test_entries_of_constant_arrays_are_folded_where_all_indices_are_known(tmp_path):
    module = made(tmp_path, 'def kernel(table, i):\n    return table[1, 0] + table[i, 1]\n', 'constant')
    table = static('f', (2, 2), Constant('table', np.array([[1.5, 2.5], [3.5, 4.5]])))
    text = Program(keeps_sizes=True).function(module.kernel, [table, 'i']).text
    assert 'return 3.5 + table[i * 2 + 1];' in text


CHECKED = """
import numpy as np
from ik_node.kernels.language import F2, I0


def entry(rows: F2, i: I0, j: I0):
    return rows[1:][i, j]


def unset(n: I0):
    new = np.empty(n)
    return new[n - 1]
"""


def test_a_checked_module_ends_at_an_index_outside_and_has_nan_for_what_is_not_set(tmp_path, capfd):
    """As make sanitize builds the kernels."""
    python = made(tmp_path, CHECKED, 'checked_kernels')
    file = tmp_path / 'checked.so'
    compile_module(module_source('checked', kernels_in(python), checked=True), file, options=('-O0',))
    module = load_module('checked', file)
    rows = np.arange(6.0).reshape(3, 2)
    assert module.entry(rows, 1, 1) == 5.0
    assert math.isnan(module.unset(3))
    for i, j, part in ((2, 0, 'index 2 of 2 in'), (-1, 0, 'index -1 of 2 in'), (0, 2, 'index 2 of 2 in')):
        child = os.fork()
        if child == 0:
            faulthandler.disable()
            module.entry(rows, i, j)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGABRT
        assert part in capfd.readouterr().err


IN_A_LOOP = """
import numpy as np


def kernel(n):
    kept = np.zeros(2)
    for i in range(n):
        new = np.empty(2)
        new[0] = i
        if i == 0:
            kept = new
    return kept[0]
"""
RETURNED = """
import numpy as np


def kernel(n):
    new = np.zeros(2)
    return new, n
"""


@pytest.mark.parametrize(('text', 'part'), [(IN_A_LOOP, 'made in a loop'), (RETURNED, 'arrays as results')])
def test_memory_on_the_stack_that_would_not_last_is_refused(text, part, tmp_path):
    module = made(tmp_path, text, 'lasting')
    with pytest.raises(UnsupportedError, match=part):
        Program(keeps_sizes=True).function(module.kernel, ['i'])
    assert Program().function(module.kernel, ['i']).needs_arena


def test_what_only_dead_branches_need_is_left_out(tmp_path):
    text = 'def kernel(q, a):\n    first = q[1:]\n    if q.shape[0] > 5:\n        a += first[0]\n    return q[0]\n'
    module = made(tmp_path, text, 'unread')
    text = Program(keeps_sizes=True).function(module.kernel, [static('f', (5,)), 'f']).text
    assert 'first' not in text
    assert '(void)a;' in text
