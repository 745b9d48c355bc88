# SPDX-License-Identifier: Apache-2.0
"""A Python module in C around the kernels that Python calls.

Arguments are read where NumPy keeps them, so a call costs as little as one of a function in C; module.h says
why that is safe. Kernels that may take long run without the GIL.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType

from .function import Function
from .lanes import is_for_lanes, lane_source
from .program import Program, definition
from .types import ArrayType, TupleType, Type, c_type, dynamic

HEADER = Path(__file__).with_name('module.h')
CODES = {'f': 'd', 'i': 'l', 'u': 'L', 'b': '?'}  # of the entries of arrays, as NumPy writes them
READ = {'f': 'PyFloat_AsDouble', 'i': 'PyLong_AsLongLong', 'u': 'PyLong_AsLongLong', 'b': 'PyObject_IsTrue'}
BOXED = {'f': 'PyFloat_FromDouble', 'i': 'PyLong_FromLongLong', 'b': 'PyBool_FromLong'}
# These take less time than it takes to give up the GIL and get it back.
QUICK = (
    'forward jacobian goal_errors out_of_reach nearest_by_formula best_row least_possible largest_move drift '
    'note_demand fit_parabola serve_lateral start_within blend_limits chase read_finite pack_position pack_direction'
)


def signature(kernel: FunctionType) -> dict[str, str]:
    """Return the annotations of a kernel that Python calls, such as 'f2', in lower case. See language.py."""
    found = {}
    for argument in definition(kernel).args.args:
        if not isinstance(argument.annotation, ast.Name):
            raise TypeError(f'{kernel.__name__}: argument {argument.arg} needs a type of kernels/language.py')
        found[argument.arg] = argument.annotation.id.lower()
    return found


def type_of(kind: str) -> Type:
    """Return the type of an argument from its annotation."""
    element, rank = 'f' if kind[0] in 'rv' else kind[0], int(kind[1])
    return dynamic(element, rank) if rank else element


def module_source(name: str, kernels: Mapping[str, FunctionType], checked: bool = False) -> str:
    """Return the C source of a module with these kernels. Raises UnsupportedError."""
    program = Program(checked=checked)
    signatures = {kernel: signature(source) for kernel, source in kernels.items()}
    entries = {
        kernel: program.function(source, [type_of(kind) for kind in signatures[kernel].values()])
        for kernel, source in kernels.items()
    }
    in_lanes = {name: source for name, source in kernels.items() if is_for_lanes(source)}
    lanes = lane_source(in_lanes, entries, program) if in_lanes else ''
    rows = '\n'.join(f'    {{"{kernel}", py_{kernel}, METH_FASTCALL, 0}},' for kernel in entries)
    parts = [
        '#define IK_CHECKED' if checked else '',
        program.source(list(entries.values())),
        HEADER.read_text(encoding='utf-8'),
        lanes,
        *(_wrapper(kernel, function, signatures[kernel], kernel in in_lanes) for kernel, function in entries.items()),
        f'static PyMethodDef methods[] = {{\n{rows}\n    {{0, 0, 0, 0}},\n}};',
        f'IK_MODULE({name})',
    ]
    return '\n\n'.join(filter(None, parts)) + '\n'


def _wrapper(kernel: str, function: Function, kinds: Mapping[str, str], in_lanes: bool) -> str:
    """Return the function of C that Python calls. in_lanes: it chooses how many lanes there are."""
    assert function.returns is not None
    lines = [
        f'static PyObject *py_{kernel}(PyObject *self, PyObject *const *given_, Py_ssize_t count_)',
        '{',
        '    (void)self;',
        f'    if (count_ != {len(kinds)}) return ik_wrong_count("{kernel}", {len(kinds)}, count_);',
    ]
    for index, (argument, kind) in enumerate(kinds.items()):
        lines += _argument(kernel, argument, function.c_name(argument), index, kind)
    returns = function.returns
    is_void = c_type(returns) == 'void'
    if not is_void:
        lines.append(f'    {c_type(returns)} result_;')
    if function.needs_arena:
        lines += ['    ik_arena *A = ik_own_arena();', '    const ik_mark start_ = {0, 0};']
    releases = kernel not in QUICK.split()
    if releases:
        lines.append('    void *thread_ = PyEval_SaveThread();')
    if function.needs_arena:
        again = 'PyEval_RestoreThread(thread_); ' if releases else ''
        lines.append(f'    if (setjmp(ik_no_memory)) {{ {again}ik_release(A, start_); return PyErr_NoMemory(); }}')
    names = [*(['A'] if function.needs_arena else []), *map(function.c_name, function.parameters)]
    lines.append(
        f'    {"" if is_void else "result_ = "}{function.name}{"_wide" if in_lanes else ""}({", ".join(names)});'
    )
    if releases:
        lines.append('    PyEval_RestoreThread(thread_);')
    lines += _result(returns)
    if function.needs_arena:
        lines.append('    ik_release(A, start_);')
    return '\n'.join([*lines, '    return object_;', '}'])


def _argument(kernel: str, argument: str, name: str, index: int, kind: str) -> list[str]:
    element, rank = 'f' if kind[0] == 'r' else kind[0], int(kind[1])
    if element == 'v':
        return [
            f'    real {name}_room[IK_MAX_NUMBERS];',
            f'    ik_f1 {name};',
            f'    if (!ik_read_numbers(given_[{index}], {name}_room, &{name})) return ik_none();',
        ]
    if rank == 0:
        failed = f'{name} == -1' if element != 'b' else f'{name} < 0'
        number = 'int' if element == 'b' else c_type(element)
        return [
            f'    const {number} {name} = {READ[element]}(given_[{index}]);',
            f'    if ({failed} && PyErr_Occurred()) return 0;' if element != 'b' else f'    if ({failed}) return 0;',
        ]
    array, size = f'{name}_array', 1 if element == 'b' else 8
    members = [
        f'({c_type(element)} *){array}->data',
        *(f'{array}->sizes[{axis}]' for axis in range(rank)),
        *(f'{array}->strides[{axis}] / {size}' for axis in range(rank - 1)),
    ]
    is_written = int(kind[0] != 'r')
    return [
        f'    const ik_ndarray *{array} = '
        f'ik_array(given_[{index}], "{kernel}", "{argument}", \'{CODES[element]}\', {rank}, {is_written});',
        f'    if (!{array}) return 0;',
        f'    const {c_type(type_of(kind))} {name} = {{{", ".join(members)}}};',
    ]


def _result(returns: Type) -> list[str]:
    """Return the statements that make the object for Python from result_."""
    if not isinstance(returns, TupleType):
        return [f'    PyObject *object_ = {_boxed(returns, "result_")};']
    if not returns.parts:
        return ['    PyObject *object_ = ik_none();']
    stored = [
        f'    if (object_) ik_set(&object_, {index}, {_boxed(part, f"result_.e{index}")});'
        for index, part in enumerate(returns.parts)
    ]
    return [f'    PyObject *object_ = PyTuple_New({len(returns.parts)});', *stored]


def _boxed(kind: Type, text: str) -> str:
    if isinstance(kind, ArrayType):
        return f'ik_new_ndarray{kind.rank}({text})'
    assert isinstance(kind, str)
    return f'{BOXED[kind]}({text})'
