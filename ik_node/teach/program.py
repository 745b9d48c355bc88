# SPDX-License-Identifier: Apache-2.0
"""Program: named points and how to move to each, as one readable YAML file."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from dataclasses import fields as fields_of
from typing import Any

import yaml

from ik_node.checks import unit_floats, vector3, yaml_number
from ik_node.errors import InputError, quoted
from ik_node.files import (
    LARGEST_FILE,
    anything,
    fields,
    list_of,
    located,
    number,
    one_of,
    parse_yaml,
    read_file,
    text,
    write_file,
)

VERSION = 1
MOTIONS = JOINT, LINE = 'joint', 'line'
MAX_POINTS = 1000
LONGEST_WAIT = 3600.0  # [s]
MIN_SPEED = 0.01
FINITE = number(-1e9, 1e9)
DIGITS = 6  # after the point in a file: micrometres and microradians
HEADER = '# A program of ik_node: metres, radians, seconds. "ik_play FILE" checks and runs it.\n'

Position = tuple[float, float, float]


@dataclass(frozen=True)
class Point:
    """A named place of the tool, how to move there and what to do there.

    Either joints [rad or m] by name, or position (3,) [m] of the tool point with the unit direction (3,) of
    the tool axis (None: free), both in the base link's frame. near: joints of the arm when a point of the
    tool was taught; of several solutions the one near them is used. motion: JOINT, all joints together, or
    LINE, the tool straight. speed: share of ik_node's speed_scaling. wait [s]: after the arrival.
    gripper: position of the program's gripper joint after the arrival, None: unchanged. turned [rad]: angle of the
    tool axis to the direction that was wanted when the point was taught. Raises InputError.
    """

    name: str
    joints: Mapping[str, float] | None = None
    position: Position | None = None
    direction: Position | None = None
    near: Mapping[str, float] = field(default_factory=dict)
    motion: str = JOINT
    speed: float = 1.0
    wait: float = 0.0
    gripper: float | None = None
    turned: float = 0.0

    def __post_init__(self) -> None:
        try:
            self._check()
        except InputError as error:
            raise InputError(f'point {quoted(str(self.name))}: {error}') from None

    def _check(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise InputError('a name must be text on one line, and not empty')
        if (self.joints is None) == (self.position is None):
            raise InputError('it needs either joints or a position')
        if self.joints is not None:
            if self.direction is not None or self.near:
                raise InputError('a point in joints has neither direction nor near')
            object.__setattr__(self, 'joints', _joints('joints', self.joints, some=True))
        if self.position is not None:
            self._round('position', vector3('position', self.position).tolist())
        if self.direction is not None:
            unit_floats('direction', self.direction)
            self._round('direction', self.direction)
        object.__setattr__(self, 'near', _joints('near', self.near))
        if self.motion not in MOTIONS:
            raise InputError(f'motion must be {" or ".join(MOTIONS)}, got {self.motion!r}')
        if self.motion == LINE and self.position is not None and self.direction is None:
            raise InputError('a line needs a direction of the tool')
        object.__setattr__(self, 'speed', number(MIN_SPEED, 1.0)('speed', self.speed))
        object.__setattr__(self, 'wait', number(0.0, LONGEST_WAIT)('wait', self.wait))
        object.__setattr__(self, 'turned', round(number(0.0, math.pi)('turned', self.turned), DIGITS))
        if self.gripper is not None:
            object.__setattr__(self, 'gripper', round(FINITE('gripper', self.gripper), DIGITS))

    def _round(self, name: str, values: Iterable[float]) -> None:
        object.__setattr__(self, name, tuple(round(float(x), DIGITS) for x in values))


@dataclass(frozen=True)
class Program:
    """Points in the order in which the arm visits them. Names are unique. Raises InputError.

    arm: name of the robot with which it was taught. tool: its name where there are several. gripper: the
    joint that the points' gripper values are for.
    """

    points: tuple[Point, ...] = ()
    arm: str = ''
    tool: str = ''
    gripper: str = ''

    def __post_init__(self) -> None:
        names = self.names
        if len(names) > MAX_POINTS:
            raise InputError(f'a program can have at most {MAX_POINTS} points, got {len(names)}')
        twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
        if twice is not None:
            raise InputError(f'two points are called {quoted(twice)}')
        grips = next((point.name for point in self.points if point.gripper is not None), None)
        if grips is not None and not self.gripper:
            raise InputError(f'point {quoted(grips)} has a gripper value, but the program names no gripper')

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the points."""
        return tuple(point.name for point in self.points)

    def free_name(self) -> str:
        """Return a name that no point has."""
        first = len(self.points) + 1
        return next(f'P{k}' for k in range(first, 2 * first + 1) if f'P{k}' not in self.names)

    def with_point(self, index: int, **values: Any) -> Program:
        """Return the program with other fields of a point. Raises InputError."""
        points = list(self.points)
        points[index] = replace(points[index], **values)
        return replace(self, points=tuple(points))

    def of_tool(self, tool: str) -> Program:
        """Return the program for another tool, whose gripper is another: without gripper values."""
        points = tuple(replace(point, gripper=None) for point in self.points)
        return replace(self, points=points, tool=tool, gripper='')

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Program:
        """Read a file. Raises InputError with the line for anything that is not a program."""
        program: Program = read_file(path, 'program', cls._of, parse_yaml)
        return program

    @classmethod
    def parse(cls, text: str) -> Program:
        """Read the text of a file. Raises InputError with the line."""
        if len(text) > LARGEST_FILE:
            raise InputError(f'a program can have at most {LARGEST_FILE} bytes')
        return cls._of('', parse_yaml(text))

    @classmethod
    def _of(cls, name: str, value: Any) -> Program:
        values = PROGRAM(name, value)
        del values['version']
        return cls(**values)

    def text(self) -> str:
        """Return the text of a file; parse returns an equal program."""
        head = {'version': VERSION, 'arm': self.arm, 'tool': self.tool, 'gripper': self.gripper}
        content = {name: value for name, value in head.items() if value}
        content['points'] = [_plain(point) for point in self.points]
        body = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, allow_unicode=True, width=110)
        return HEADER + str(body)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, whole or not at all. Raises InputError."""
        write_file(path, self.text())


def _point(name: str, value: Any) -> Point:
    values = POINT(name, value)
    for key in ('position', 'direction'):
        if isinstance(values.get(key), list):
            values[key] = [_or_as_given(one) for one in values[key]]
    with located(value):
        return Point(**{'name': '', **values})


POINT = fields({one.name: anything for one in fields_of(Point)})
PROGRAM = fields(
    {'version': one_of(VERSION), 'arm': text, 'tool': text, 'gripper': text, 'points': list_of(_point)},
    required=('version', 'points'),
)


def _or_as_given(value: Any) -> Any:
    number = yaml_number(value)
    return value if number is None else number


def _plain(point: Point) -> dict[str, Any]:
    """Return the fields of a point that are not as usual, in the order in which people read them."""
    usual = {'near': {}, 'speed': 1.0, 'wait': 0.0, 'turned': 0.0}
    found: dict[str, Any] = {}
    for one in fields_of(point):
        value = getattr(point, one.name)
        if value is not None and value != usual.get(one.name):
            found[one.name] = list(value) if isinstance(value, tuple) else value
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}


def _joints(name: str, values: Any, some: bool = False) -> dict[str, float]:
    if not isinstance(values, Mapping) or (some and not values):
        raise InputError(f'{name} must give a position for each joint, got {values!r}')
    return {str(joint): round(FINITE(f'{name} {joint}', value), DIGITS) for joint, value in values.items()}
