# SPDX-License-Identifier: Apache-2.0
"""One arm as a header of C99: its constants, and the kernels that solve it, without malloc."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError, escaped, join_names, path_text, quoted
from ik_node.kernels import header as kernels
from ik_node.kernels.chain import forward
from ik_node.kernels.closed_form import MOST_CANDIDATES
from ik_node.kernels.emit.expressions import real_literal
from ik_node.kernels.emit.program import Program
from ik_node.kernels.emit.types import VOID, Constant, Type, c_type, static
from ik_node.model.arm import Arm
from ik_node.solver.closed_form import recognise
from ik_node.solver.elimination import MAX_SOLUTIONS, elimination_of
from ik_node.solver.restarts import search_options

TEMPLATE, EXAMPLE = (Path(__file__).with_name(name) for name in ('header.h', 'example.c'))
TOLERANCES = {'double': (1e-6, 1e-4), 'float': (1e-5, 1e-4)}  # m, rad: what counts as solved
# Constants of kernels that float cannot reach: each step of it is off by 1e-7 of the reach. Where rounding is
# that large, no solution proves nothing.
OF_FLOAT = {'EXACT': 2e-6, 'AIM': 2e-6, 'ROOT_SLACK': 1e-5, 'UNIT': 1e-5, 'PROVES': False}
PER_LINE = 5  # numbers of a table
SUFFIXES = '.h', '.hh', '.hpp'


@dataclass(frozen=True, eq=False)
class Model:
    """What the solutions of an arm are computed from.

    by_formula: or by elimination. constants: of that. proves: whether there is none where it finds none. most:
    solutions that it finds. geometry: what it uses, in words.
    """

    arm: Arm
    by_formula: bool
    constants: Array
    proves: bool
    most: int
    geometry: str


def model_of(arm: Arm, options: Array) -> Model:
    """Return what the solutions of an arm are computed from; options: of the search.

    Raises InputError for an arm that has neither a formula nor an elimination.
    """
    if arm.has_cones:
        names = join_names(dict.fromkeys(name for ball in arm.balls for name in ball.joints))
        raise InputError(f'no header for an arm with a ball joint, of {names}: its cone of directions has no formula')
    # With four effective joints most goals next to a solvable one have no solution, so none is proven to have none.
    independent = arm.effective_dof == 5
    form = recognise(arm)
    if form is not None:
        return Model(arm, True, form.constants, form.exact and independent, MOST_CANDIDATES, form.family.value)
    elimination = elimination_of(arm, options)
    counting = int(np.count_nonzero(~arm.idle))
    if elimination is None:
        raise InputError(
            f'no header for an arm of which {counting} joints move tool point or tool axis: position and direction '
            'determine five, and what is left free has no formula; choose links with fewer joints between, or the '
            '--tool-axis about which the last joint turns'
        )
    forms = elimination.forms(np.zeros(9))
    if not forms:
        raise InputError(
            f'no header for this arm: the geometry of its {counting} joints, with {arm.effective_dof} effective '
            'degrees of freedom, has no formula (ik_inspect describes it)'
        )
    best = next((each for each in forms if each.exact), forms[0])
    return Model(arm, False, best.constants, best.exact and not best.rough and independent, MAX_SOLUTIONS, best.name)


def identifier(name: str) -> str:
    """Return a name as C allows it, in small letters."""
    plain = re.sub(r'\W+', '_', name, flags=re.ASCII).strip('_').lower()
    return f'arm_{plain}' if plain[:1].isdigit() else plain or 'arm'


def arm_header(arm: Arm, name: str, real: str = 'double') -> str:
    """Return the header of an arm. What it declares begins with name, which identifier returns; real: double or float.

    Raises InputError for an arm that is not supported.
    """
    options = search_options('lm', arm.reach, *TOLERANCES[real], 'greedy', None)
    model, n, m = model_of(arm, options), arm.n, len(arm.joints)
    opened = np.array([[-np.inf], [np.inf]]) * np.ones(n)
    opened[:, arm.idle] = np.nan
    tables = {'joints': arm.joints, 'tool': arm.tool, 'limits': arm.limits, 'opened': opened}
    tables |= {'period': arm.period, 'form': model.constants, 'options': options}
    shapes = {'goal': (9,), 'seed': (n,), 'q': (n,), 'found': (model.most, n), 'frames': (2 * m + 3, 3)}
    kinds: dict[str, Type] = {key: static('f', shape) for key, shape in shapes.items()}
    # The family of the form decides what is needed; to know the others, too, would double the code.
    kinds |= {key: static('f', values.shape) for key, values in tables.items()}
    kinds['form'] = static('f', model.constants.shape, Constant('form', model.constants))
    replaced = {'PROVES': model.proves} | (OF_FLOAT if real == 'float' else {})
    program = Program(single=real == 'float', keeps_sizes=True, constants=replaced)
    answer, every = kernels.functions(model.by_formula)
    arguments: dict[str, tuple[Any, str]] = {
        'prepare': (kernels.prepare, 'goal seed'),
        'forward': (forward, 'joints tool q frames'),
        'answer': (answer, f'{" ".join(tables)} goal seed found q'),
        'all': (every, f'{" ".join(tables)} goal seed found'),
    }
    entries = {
        key: program.function(kernel, [kinds[word] for word in words.split()])
        for key, (kernel, words) in arguments.items()
    }
    constants = '\n'.join(
        f'static const real ik_{key}[{values.size}] = {{{_numbers(values.ravel(), real)}}};'
        for key, values in tables.items()
    )
    position, direction = TOLERANCES[real]
    doubt = 'the goal may be next to one with a solution' if replaced['PROVES'] else 'this form may miss some'
    values = {
        'title': _comment(f'{arm.name}, {n} joints from {quoted(arm.base_link)} to {quoted(arm.tip_link)}'),
        'base': _comment(arm.base_link),
        'geometry': _comment(model.geometry),
        'position': f'{position:g}',
        'direction': f'{direction:g}',
        'doubt': doubt,
        'more': '' if replaced['PROVES'] else f', or one of {kernels.DESCENTS - 1} from joint positions by chance,',
        'joints': str(n),
        'most': str(model.most),
        'units': 'rad, m if it slides' if arm.prismatic.any() else 'rad',
        'names': ', '.join(map(_string, arm.joint_names)),
        'lower': _numbers(arm.lower, real),
        'upper': _numbers(arm.upper, real),
        'rows': str(2 * m + 3),
        'lateral': f'({", ".join(f"{value:g}" for value in arm.tool_lateral)})',
        'point': str(2 * m),
        'kernels': _prefixed(program.source(list(entries.values()), constants), name),
        **{f'{key}_type': _prefixed(c_type(entry.returns or VOID), name) for key, entry in entries.items()},
        'model': ', '.join(f'({real} *){name}_ik_{key}' for key in tables),
        'model_forward': f'({real} *){name}_ik_joints, ({real} *){name}_ik_tool',
        **{key: _prefixed(entry.name, name) for key, entry in entries.items()},
    }
    return filled(TEMPLATE, name, real, values)


def _prefixed(text: str, name: str) -> str:
    """Return C with all names of kernels and of their types beginning with name, but for comments."""
    new = {'ik_': f'{name}_ik_', 'IK_': f'{name.upper()}_IK_', 'real': f'{name}_real'}
    return re.sub(r'/\*.*?\*/|\b(ik_|IK_|real\b)', lambda found: new.get(found[0], found[0]), text, flags=re.DOTALL)


def _numbers(values: Iterable[float], real: str) -> str:
    """Return numbers as a list of C."""
    texts = [real_literal(float(value), real == 'float') for value in values]
    lines = [', '.join(texts[k : k + PER_LINE]) for k in range(0, len(texts), PER_LINE)]
    return ',\n    '.join(lines)


def _comment(text: str) -> str:
    """Return text that can stand in a comment."""
    return escaped(text, 500).replace('*/', '* /').replace('/*', '/ *').rstrip('\\')


def _string(text: str) -> str:
    """Return text as a string of C."""
    return '"' + re.sub(r'["\\?]', r'\\\g<0>', escaped(text, 500)) + '"'


def example_source(arm: Arm, name: str, real: str, header: str, main: str) -> str:
    """Return a program that shows the use of a header; header, main: names of the files."""
    rng = np.random.default_rng(0)
    known = arm.sample(rng, 1)[0]
    values = {
        'known': _numbers(known, real),
        'seed': _numbers(arm.middle, real),
        'far': _numbers([3.0 * max(arm.reach, 0.1)], real),
        'file': header,
        'main': shlex.quote(main),
    }
    return filled(EXAMPLE, name, real, values)


def filled(template: Path, name: str, real: str, values: Mapping[str, str]) -> str:
    """Return a template with values in place of @names@."""
    every = {'arm': name, 'ARM': name.upper(), 'real': real, **values}
    return re.sub(r'@(\w+)@', lambda found: every[found[1]], template.read_text(encoding='utf-8'))


def add_header(group: argparse._ArgumentGroup) -> None:
    """Add the options of a header."""
    group.add_argument(
        '--header', metavar='FILE.h', help='write a header of C99, and beside it FILE_main.c, which uses it'
    )
    group.add_argument(
        '--float',
        action='store_true',
        help='the header computes in float: less accurate, for processors without double',
    )


def header_files(arm: Arm, name: str, arguments: argparse.Namespace) -> dict[Path, str]:
    """Return the header that the arguments ask for and the program that uses it. Raises InputError."""
    header = Path(arguments.header)
    if header.suffix not in SUFFIXES:
        raise InputError(f'--header: "{path_text(header)}" must end with {", ".join(SUFFIXES[:-1])} or {SUFFIXES[-1]}')
    if not header.name.isprintable() or set(header.name) & set('"\\'):
        raise InputError(f'--header: "{path_text(header)}" has a character that #include does not allow')
    real, main = 'float' if arguments.float else 'double', header.with_name(f'{header.stem}_main.c')
    return {
        header: arm_header(arm, name, real),
        main: example_source(arm, name, real, header.name, main.name),
    }
