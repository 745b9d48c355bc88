# SPDX-License-Identifier: Apache-2.0
"""Every public callable of ik_node with arguments of any kind, found by introspection.

Public are the names of ik_node.__all__ and what documented modules offer, the methods of these classes, and
those of what they return. A call may return or raise an error of ik_node; anything else is a fault.

python -m campaigns.arguments makes all calls; test/solver/test_arguments.py a tenth of them.
"""

from __future__ import annotations

import enum
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import ik_node
from ik_node.errors import IkError
from ik_node.model.urdf.description import load_description

URDF = Path(__file__).resolve().parents[1] / 'urdf'
ELSEWHERE = {'ik_node.lerobot': ['RobotKinematics'], 'ik_node.model.urdf.reader': ['read_file', 'read_urdf']}
RESULTS = ('Solutions',)  # lists that only the solver makes: Python's own constructor decides what they take
N = 5  # joints of the arm


def numbers() -> list[Any]:
    """Return numbers, good and bad ones."""
    huge = [10**400, -(10**400), 1e308, -1e308, 1e10, 1e-320, math.inf, -math.inf, math.nan]
    typed = [np.float16(1), np.float32(math.inf), np.int8(-3), np.uint64(2**63), np.bool_(True)]
    others = [Fraction(1, 3), Decimal('NaN'), Decimal(1), 1j, np.complex128(1j), np.longdouble(1)]
    return [0, -1, 1, 2, 0.5, True, *huge, *typed, *others, np.datetime64('2020-01-01')]


def arrays() -> list[Any]:
    """Return arrays of wrong and right shapes, types and contents."""
    found: list[Any] = [np.array(1.0), np.zeros(0), np.zeros((0, 3)), np.zeros((N, N, N))]
    for shape in ((3,), (N - 1,), (N,), (N + 1,), (4, 4), (1, 3), (2, 3), (1, N), (2, N), (9,)):
        ones = np.ones(shape)
        found += [ones * value for value in (0.1, math.nan, math.inf, 1e308, -1e200)]
        found += [ones.astype(kind) for kind in (complex, object, str, bytes, bool, np.int8, np.float16)]
        found += [ones.astype('datetime64[s]'), ones.astype('>f8'), np.asfortranarray(ones)[::-1]]
        found += [np.ma.array(ones), np.ma.masked_all(shape), np.ma.array(ones, mask=ones > 0)]
        found += [(1j * ones).tolist(), np.full(shape, None), np.full(shape, 10**400, dtype=object).tolist()]
        found += [ones.tolist(), tuple(ones.tolist()), np.full(shape, 'x').tolist(), [ones, None]]
    records = np.zeros(N, dtype=[('x', float)])
    return [*found, records, np.matrix(np.eye(4)), [[1.0], [1.0, 2.0]], [[]], [[[]]]]


class Hostile:
    """An object whose every protocol fails."""

    def _fails(self, *_: Any) -> Any:
        raise RuntimeError('hostile')

    __array__ = __len__ = __iter__ = __getitem__ = __float__ = __index__ = __bool__ = __repr__ = __str__ = _fails


class NoNumber:
    """An object of which numpy makes an entry of an array, and which fails only as a number or as text."""

    def _fails(self, *_: Any) -> Any:
        raise RuntimeError('no number')

    __float__ = __index__ = __repr__ = __str__ = _fails


def objects() -> list[Any]:
    """Return what is neither a number nor an array."""
    text = ['', 'x', 'x' * 10**4, '\0', '\ud800', b'x', bytearray(b'xyz'), ['x'] * N]
    collections = [[], (), {}, set(), {1: 2}, {'x': None}, {None: None}, {'x'}, frozenset(), range(N)]
    nested: list[Any] = []
    nested.append(nested)
    odd = [NoNumber(), *([NoNumber()] * size for size in (3, N)), np.full((4, 4), NoNumber())]
    others = [
        None,
        [None] * N,
        object(),
        Hostile(),
        [Hostile()] * N,
        {'hand': Hostile()},
        *odd,
        len,
        int,
        ...,
        nested,
        (x for x in 'xyz'),
    ]
    return [*text, *collections, *others]


def junk() -> list[Any]:
    """Return one of everything."""
    return [*numbers(), *arrays(), *objects()]


class Samples:
    """Objects of the public types, and good arguments by the name of the parameter."""

    def __init__(self) -> None:
        self.folder = TemporaryDirectory()
        path = URDF / 'seed_arm.urdf.xacro'
        arm = ik_node.Arm.from_file(path)
        position, direction = arm.fk(arm.middle)
        goal = ik_node.Goal(position, direction)
        tool = ik_node.Tool('tool0')
        tree = ik_node.Tree.from_file(path, {'hand': tool})
        solver = ik_node.IkSolver(arm, restarts=20, time_budget=0.05)
        several = ik_node.TreeSolver(tree, restarts=20)
        text = load_description(path)
        folder = Path(self.folder.name)
        (folder / 'arm.urdf').write_text(text)  # quicker to read than xacro
        path = folder / 'arm.urdf'
        self.arguments: dict[str, Any] = {
            'arm': arm,
            'robot': arm.robot,
            'tree': tree,
            'goal': goal,
            'goals': {'hand': goal},
            'tools': {'hand': tool},
            'tip_link': 'tool0',
            'link': 'tool0',
            'base_link': arm.base_link,
            'position': position,
            'direction': direction,
            'lateral': None,
            'q': arm.middle,
            'path': path,
            'seed': arm.middle,
            'start': arm.middle,
            'bounds': ik_node.Bounds(np.ones(N), np.full(N, 5.0), np.full(N, 50.0)),
            'tool_path': ik_node.ToolPath([position + np.array([0.0, 0.0, 0.01])], [direction]),
            'seeds': arm.middle,
            'before': arm.middle,
            'xml_text': text,
            'text': text,
            'positions': [position],
            'directions': [direction],
            'urdf_path': path,
            'time_budget': 0.05,
            'target_frame_name': 'tool0',
            'joint_pos_deg': np.zeros(N),
            'current_joint_pos': np.zeros(N),
            'desired_ee_pose': np.eye(4),
            'rng': np.random.default_rng(0),
            'count': 2,
            'name': 'q',
        }
        kinematics = import_module('ik_node.lerobot').RobotKinematics(path, 'tool0')
        self.known: dict[type, Any] = {
            type(x): x for x in (arm, goal, tool, tree, solver, several, arm.robot, kinematics)
        }
        self.callables: dict[str, Callable[..., Any]] = {}
        for module, names in {'ik_node': ik_node.__all__, **ELSEWHERE}.items():
            for name in names:
                self._add(getattr(import_module(module), name))

    def _add(self, thing: Any) -> None:
        """Add a public function, or a class with its methods and those of what they return."""
        if thing.__qualname__ in RESULTS:
            return
        if not inspect.isclass(thing):
            self.callables[thing.__qualname__] = thing
            return
        if issubclass(thing, (enum.Enum, BaseException)) or thing.__qualname__ in self.callables:
            return
        self.callables[thing.__qualname__] = thing
        one = self.known.get(thing)
        for name, member in vars(thing).items():
            if name.startswith('_') or isinstance(member, (property, type)) or not one:
                continue
            called = getattr(one, name)
            if callable(called) and not inspect.isclass(called):
                self.callables[f'{thing.__qualname__}.{name}'] = called
                self._add_returned(called)

    def _add_returned(self, called: Callable[..., Any]) -> None:
        """Add the class of what a good call returns, if it is one of ik_node."""
        try:
            result = called(**self.good(called))
        except (IkError, KeyError):
            return
        for one in result if isinstance(result, (list, tuple)) else [result]:
            kind = type(one)
            if kind.__module__.startswith('ik_node') and kind not in self.known:
                self.known[kind] = one
                self._add(kind)

    def good(self, called: Callable[..., Any]) -> dict[str, Any]:
        """Return good arguments for those that have no default. Raises KeyError for an unknown name."""
        return {
            name: self.arguments[name]
            for name, parameter in parameters(called).items()
            if parameter.default is parameter.empty
        }

    def calls(self, called: Callable[..., Any], every: int) -> Iterator[dict[str, Any]]:
        """Yield arguments of which one, or all, may be anything; of all these calls one of so many."""
        names = parameters(called)
        rest = {name: self.arguments.get(name) for name, p in names.items() if p.default is p.empty}
        first = sum(map(ord, called.__qualname__))  # other values for each callable and name
        for number, name in enumerate(names):
            for value in junk()[(first + number) % every :: every]:
                yield {**rest, name: value}
        rng = np.random.default_rng(first)
        for _ in range(100 // every if len(names) > 1 else 0):
            values = junk()
            some = [name for name in names if rng.random() < 0.7 or name in rest]
            yield {name: values[rng.integers(len(values))] for name in some}


def parameters(called: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters by name, without those that take the rest."""
    found = inspect.signature(called).parameters
    return {name: p for name, p in found.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def faults(samples: Samples, called: Callable[..., Any], every: int) -> tuple[int, list[str]]:
    """Call with arguments of all kinds; return how many calls, and those that ended in other errors."""
    count, found = 0, []
    for arguments in samples.calls(called, every):
        count += 1
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            try:
                result = called(**arguments)
                if inspect.isgenerator(result):
                    next(result)
            except IkError:
                pass
            except Exception as error:
                shown = {name: _shown(value) for name, value in arguments.items()}
                found.append(f'{type(error).__name__}: {str(error)[:100]!r} for {shown}')
    return count, found


def _shown(value: Any) -> str:
    try:
        return repr(value)[:80]
    except Exception:
        return object.__repr__(value)


if __name__ == '__main__':
    samples, wrong = Samples(), 0
    for name, called in sorted(samples.callables.items()):
        count, found = faults(samples, called, 1)
        wrong += len(found)
        print(f'{name}: {count} calls, {len(found)} faults', *found[:10], sep='\n  ')
    sys.exit(int(wrong > 0))
