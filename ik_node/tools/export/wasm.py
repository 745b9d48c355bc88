# SPDX-License-Identifier: Apache-2.0
"""The kernels that a page calls, for one arm, as WebAssembly without a library.

Sines and roots come from JavaScript's Math, so any clang that knows wasm32 will do.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ik_node.checks import Array
from ik_node.errors import IkError
from ik_node.kernels import page
from ik_node.kernels.arrays import END_AT_LAST, ITERATIONS
from ik_node.kernels.emit.expressions import real_literal
from ik_node.kernels.emit.program import Program
from ik_node.kernels.emit.types import Constant, static
from ik_node.kernels.methods.ccd import local_ccd
from ik_node.kernels.methods.transpose import local_transpose
from ik_node.model.arm import Arm
from ik_node.solver.closed_form import NO_FORM, recognise
from ik_node.solver.closest import ClosestSearch, UnitSize, without_stops
from ik_node.solver.restarts import RandomRestarts, search_options
from ik_node.solver.workspace_bounds import radial_bounds

OPTIONS = '-std=gnu99 -Os -ffp-contract=off -fno-math-errno -ffreestanding -nostdlib -mbulk-memory -Wl,--no-entry'
OPTIONS += ' -Wl,-s -Wl,-z,stack-size=262144'
COMPILERS = (('clang', '--target=wasm32'), (sys.executable, '-m', 'ziglang', 'cc', '-target', 'wasm32-freestanding'))
NO_COMPILER = 'there is no compiler for WebAssembly: {} -m pip install ziglang, or sudo apt install clang lld'
# What JavaScript's Math has; the others are instructions of WebAssembly.
HEADERS = {
    'math.h': """
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#define isnan __builtin_isnan
#define isinf __builtin_isinf
#define isfinite __builtin_isfinite
#define fabs __builtin_fabs
#define sqrt __builtin_sqrt
#define floor __builtin_floor
#define ceil __builtin_ceil
#define rint __builtin_rint
#define MATH(NAME, ...) __attribute__((import_module("Math"), import_name(#NAME))) double NAME(__VA_ARGS__);
MATH(sin, double) MATH(cos, double) MATH(tan, double) MATH(asin, double) MATH(acos, double)
MATH(atan2, double, double) MATH(exp, double) MATH(log, double) MATH(pow, double, double)
MATH(hypot, double, double)
double frexp(double, int *);
float powf(float, float), hypotf(float, float);
""",
    'string.h': '',
}
TOLERANCES = 1e-6, 1e-4  # m, rad: what counts as solved, as for IkSolver
STARTS = 64  # known poses that a search may start from
SOLUTIONS = 16
METHODS = {'ccd': local_ccd, 'transpose': local_transpose}


class ExportError(IkError):
    """An arm that cannot be exported, and why."""


class PageSource:
    """The kernels of a page as C, with the constants of an arm.

    layout: where in the memory that page() returns the arrays of arguments and results begin, in doubles. exact:
    whether a formula finds all solutions.
    """

    def __init__(self, arm: Arm) -> None:
        form, n, m = recognise(arm), arm.n, len(arm.joints)
        search = RandomRestarts(arm, 'lm', *TOLERANCES, page.RESTARTS, 0)
        closest, unit = ClosestSearch(search, form, None), UnitSize(arm)
        constants = NO_FORM if form is None else form.constants
        self._constants: dict[str, Array] = {
            'joints': arm.joints,
            'tool': arm.tool,
            'limits': arm.limits,
            'opened': closest.opened[:2],
            'unlimited': without_stops(arm.limits, arm.period),
            'period': arm.period,
            'form': constants,
            'unit_joints': unit.joints,
            'unit_tool': unit.tool,
            'unit_form': unit.form(constants),
            'narrow': closest.narrow,
            'shells': radial_bounds(arm),
            'options': search.options,
            'table': search.table[:, :STARTS],
        }
        for name in METHODS:
            self._constants[f'{name}_options'] = search_options(name, arm.reach, *TOLERANCES, 'greedy')
            self._constants[f'{name}_options'][END_AT_LAST] = 1.0
        self._arguments = {
            'goal': (9,),
            'seed': (n,),
            'q': (n,),
            'report': (6,),
            'found': (SOLUTIONS, n),
            'frames': (2 * m + 3, 3),
            'poses': (m + 1, 12),
            'work': (3 * n + 4, max(n, 6)),
        }
        self.layout: dict[str, int] = {}
        self._size = 0
        for name, shape in self._arguments.items():
            self.layout[name] = self._size
            self._size += math.prod(shape)
        self._length = unit.length
        self.exact = form is not None and form.exact

    def text(self) -> str:
        """Return the C."""
        program = Program(keeps_sizes=True)
        kinds: dict[str, Any] = {name: static('f', shape) for name, shape in self._arguments.items()}
        lines = [f'static real memory[{self._size}];']
        for name, values in self._constants.items():
            # The branches of other geometries than the arm's disappear; others would double the code.
            known = Constant(name, values) if name in ('form', 'unit_form') else None
            kinds[name] = static('f', values.shape, known)
            texts = ', '.join(real_literal(value, False) for value in values.ravel().tolist()) or '0'
            lines.append(f'static real {name}[] = {{{texts}}};')
        lines += [f'#define {name} (memory + {at})' for name, at in self.layout.items()]
        kinds['length'] = 'f'
        kernels: dict[str, Any] = {'answer': page.answer, 'solutions': page.all_solutions, 'place': page.place_links}
        calls: dict[str, str] = {}
        entries = []
        for name, kernel in {**kernels, **METHODS}.items():
            own = {**kinds, 'options': kinds[f'{name}_options']} if name in METHODS else kinds
            arguments = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
            entries.append(program.function(kernel, [own[argument] for argument in arguments]))
            # Of arguments that are no arrays there is one, the unit of length.
            given = [real_literal(self._length, False) if one == 'length' else one for one in arguments]
            calls[name] = f'{entries[-1].name}({", ".join(given)})'
        body = program.source(entries)
        steps = '\n'.join(
            f"""
/* Write into q where count steps lead from seed; returns how many there are. */
PAGE(int, steps_{name})(int count, int limited)
{{
    {name}_options[{ITERATIONS}] = count;
    ik_copied_f(q, seed, {self._arguments['q'][0]});
    return (int){call.replace('limits', 'limited ? limits : unlimited').replace('options', f'{name}_options')};
}}"""
            for name, call in calls.items()
            if name in METHODS
        )
        return f"""{body}
{chr(10).join(lines)}
#ifdef __wasm__
#define PAGE(TYPE, NAME) __attribute__((export_name(#NAME))) TYPE NAME
#else
#define PAGE(TYPE, NAME) TYPE NAME
#endif
PAGE(real *, page)(void) {{ return memory; }}
PAGE(void, answer)(void) {{ {calls['answer']}; }}
/* The number of rows in found; negative if there may be more. */
PAGE(int, solutions)(void)
{{
    ik_tib all = {calls['solutions']};
    return (int)(all.e1 ? all.e0 : -1 - all.e0);
}}
PAGE(void, place)(void) {{ {calls['place']}; }}{steps}
"""


def compiler() -> tuple[str, ...]:
    """Return the command of a compiler for wasm32. Raises ExportError if there is none."""
    if shutil.which('clang') and shutil.which('wasm-ld'):
        return COMPILERS[0]
    if find_spec('ziglang'):
        return COMPILERS[1]
    raise ExportError(NO_COMPILER.format(sys.executable))


def compile_wasm(text: str, command: Sequence[str] = ()) -> bytes:
    """Return C as a module of WebAssembly. Raises ExportError."""
    with tempfile.TemporaryDirectory(prefix='ik_export-') as name:
        for header, content in HEADERS.items():
            Path(name, header).write_text(content, encoding='utf-8')
        file, result = Path(name, 'page.c'), Path(name, 'page.wasm')
        file.write_text(text, encoding='utf-8')
        line = [*(command or compiler()), *OPTIONS.split(), f'-I{name}', str(file), '-o', str(result)]
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise ExportError(f'{" ".join(line)} ended with exit code {done.returncode}: {done.stdout.strip()}')
        return result.read_bytes()
