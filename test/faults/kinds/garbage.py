# SPDX-License-Identifier: Apache-2.0
"""Garbage: every field of every input, one or several at a time, with what no sender should send."""

from __future__ import annotations

import array
import copy
import importlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from faults.actions import Action, Draw, Plan
from faults.arena import Arena
from faults.kinds.requests import VALUES
from faults.messages import MAKE, stamped

FLOATS = (math.nan, math.inf, -math.inf, 1e300, -1e300, 1e9, 1e4, 5e-324, -0.0, 1e-200, 7.0)
LONG = 'x' * 20000
TEXTS = ('', 'base_lnk', '/base_link', 'world', LONG, 'a\nb\x1b[31m', 'ünïcode ☃', 'base_link ', '0', '..')
LARGE = {8: 127, 16: 2**15 - 1, 32: 2**31 - 1, 64: 2**63 - 1}

Path = tuple[str, ...]


def class_of(text: str) -> Any:
    """Return the class of a type, such as std_msgs/msg/String or std_msgs/String, or part of an action."""
    package, *folder, name = text.split('/')
    kind, _, part = name.partition('_')
    found = getattr(importlib.import_module('.'.join([package, *(folder or ['msg'])])), kind)
    return getattr(found.Impl, part) if part else found  # package/action/Kind_FeedbackMessage


def leaves(message: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every field that is not a message itself; sequences are fields."""
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if hasattr(value, 'get_fields_and_field_types'):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


def spoil(message: Any, path: Path, rng: np.random.Generator) -> Any:
    """Return a copy of a message with garbage in one field."""
    message = copy.deepcopy(message)
    part = message
    for name in path[:-1]:
        part = getattr(part, name)
    kind, value = part.get_fields_and_field_types()[path[-1]], getattr(part, path[-1])
    try:
        setattr(part, path[-1], _garbage(kind, value, rng))
    except (
        AssertionError,
        ValueError,
        OverflowError,
        KeyError,
        TypeError,
    ):  # of the message class: DDS cannot carry it
        return message
    return message


def _garbage(kind: str, value: Any, rng: np.random.Generator) -> Any:
    if kind.startswith('sequence'):
        return _sequence(kind, list(value), rng)
    if kind.endswith(']'):  # of a fixed length: no message of another can be made
        return rng.integers(0, 256, len(value)).astype(value.dtype)
    if kind in ('double', 'float'):
        return float(rng.choice(FLOATS))
    if kind == 'string':
        return TEXTS[int(rng.integers(len(TEXTS)))]
    if kind == 'boolean':
        return not value
    bits = int(''.join(c for c in kind if c.isdigit()))
    if kind.startswith('uint'):
        return int(rng.choice([0, 1, 2 * LARGE[bits] + 1, 2**29], shuffle=False)) if bits < 64 else 0
    return int([0, -1, LARGE[bits], -LARGE[bits] - 1][int(rng.integers(4))])


def _sequence(kind: str, values: list[Any], rng: np.random.Generator) -> list[Any]:
    if '/' in kind:
        element = class_of(kind.removeprefix('sequence<').rstrip('>').partition(',')[0])
        values = values or [element()]
        choice = int(rng.integers(4))
        if choice == 0:
            return []
        if choice == 1:
            return values * 3000
        spoilt = copy.deepcopy(values)
        i = int(rng.integers(len(spoilt)))
        paths = list(leaves(spoilt[i]))
        spoilt[i] = spoil(spoilt[i], paths[int(rng.integers(len(paths)))], rng)
        return spoilt
    choice, text = int(rng.integers(6)), 'string' in kind
    new = TEXTS[int(rng.integers(len(TEXTS)))] if text else float(rng.choice(FLOATS))
    if choice == 0:
        return []
    if choice == 1:
        return values[:-1]
    if choice == 2:
        return [*values, new]
    if choice == 3:  # 2 MB: with 200 MB DDS itself is late by seconds, see docs/how_to/security.md
        return [new] * (100 if new == LONG else 10000)
    if choice == 4 and values:
        return [values[0]] * len(values)  # one name twice
    out = list(values) or [new]
    out[int(rng.integers(len(out)))] = new
    return out


def spoilt(message: Any, rng: np.random.Generator) -> Any:
    """Return a copy with garbage in one field, and now and then in a second."""
    paths = list(leaves(message))
    for _ in range(1 + int(rng.random() < 0.2)):
        message = spoil(message, paths[int(rng.integers(len(paths)))], rng)
    return message


def _bursts(draw: Draw, topics: list[str]) -> Plan:
    """Send spoilt messages on topics at up to 200 Hz, every field of one of them in turn."""
    rng, plan = draw.rng, []
    begin, end = draw.span(0.2, 1.0)
    for topic in topics:
        good = MAKE[topic](draw.arena.robot, rng)
        paths = list(leaves(good))
        stamps = bool(rng.random() < 0.5)
        for i, at in enumerate(draw.times(float(rng.uniform(20.0, 200.0)), begin, end)):
            bad = spoil(good, paths[i % len(paths)], rng) if rng.random() < 0.8 else spoilt(good, rng)
            plan.append(Action(at, lambda arena, t=topic, m=bad, s=stamps: _send(arena, t, m, s)))
    return plan


def _send(arena: Arena, topic: str, message: Any, stamp: bool) -> None:
    garbage_stamp = hasattr(message, 'header') and message.header.stamp.sec != 0
    arena.send(topic, stamped(arena, message) if stamp and not garbage_stamp else message)


def goals(draw: Draw) -> Plan:
    """Spoil goals."""
    topics = [topic for topic in MAKE if not topic.startswith('ik_node/')]
    return _bursts(draw, [str(topic) for topic in draw.rng.choice(topics, 2, replace=False)])


def teleoperation(draw: Draw) -> Plan:
    """Spoil the commands of a hand."""
    topics = [topic for topic in MAKE if topic.startswith('ik_node/')]
    return _bursts(draw, [str(topic) for topic in draw.rng.choice(topics, 2, replace=False)])


def measurements(draw: Draw) -> Plan:
    """Spoil some of the messages of the feedback, or send spoilt ones besides."""
    seed, besides = int(draw.rng.integers(2**32)), bool(draw.rng.random() < 0.5)
    share = float(draw.rng.choice([0.05, 0.5, 1.0]))
    noise = np.random.default_rng(seed)

    def spoil_some(messages: list[JointState]) -> list[JointState]:
        bad = [spoilt(message, noise) for message in messages if noise.random() < share]
        return [*messages, *bad] if besides else bad or messages

    begin, end = draw.span()

    def begins(arena: Arena) -> None:
        arena.driver.disturbances['garbage'] = spoil_some

    return [Action(begin, begins), Action(end, lambda arena: arena.driver.disturbances.pop('garbage', None))]


def descriptions(draw: Draw) -> Plan:
    """Send descriptions that are none, or that no arm can have."""
    text, rng = draw.arena.robot.text, draw.rng
    cut = int(rng.integers(len(text)))
    bad = (
        '',
        ' ',
        '<robot/>',
        LONG,
        text[:cut],
        text[:cut] + text[cut + 1 :],
        text.replace('"0 0 1"', '"0 0 nan"', 1),
        text.replace('"0 0 1"', '"0 0 0"'),
        text.replace('upper="', 'upper="-9', 1),
        text.replace('velocity="', 'velocity="-', 1),
        text.replace('revolute', 'floating', 1),
        text.replace('<link ', '<lnk ', 1),
        '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><robot name="&b;"/>',
        text + text,
    )
    plan = []
    for _ in range(int(rng.integers(1, 5))):
        other = bad[int(rng.integers(len(bad)))]
        plan.append(
            Action(draw.time(), lambda arena, t=other: arena.send('robot_description', String(data=t)))
        )
    return [*plan, Action(draw.length - 0.05, lambda arena: arena.describe(text))]


def parameters(draw: Draw) -> Plan:
    """Set parameters to values that are not allowed, among them of other types."""
    rng, names = (
        draw.rng,
        [*VALUES, 'robot_description', 'output', 'tip_link', 'base_link', 'no_such_parameter'],
    )
    values: tuple[Any, ...] = (
        *FLOATS[:7], -1.0, 0, -1, 2**62, True, '', 'nonsense', LONG,
        *(array.array('d', row) for row in ([math.nan] * 6, [1.0] * 5, [1e300] * 3)), [''], ['a', 'a'],
    )  # fmt: skip
    plan = []
    for _ in range(int(rng.integers(3, 20))):
        name, value = names[int(rng.integers(len(names)))], values[int(rng.integers(len(values)))]
        plan.append(Action(draw.time(), lambda arena, n=name, v=value: arena.change(n, v)))
    return plan


def clock(draw: Draw) -> Plan:
    """Send impossible times on /clock, among the good ones."""
    rng, plan = draw.rng, []
    for at in draw.times(float(rng.uniform(3.0, 50.0)), *draw.span()):
        bad = spoil(Clock(), ('clock', 'sec' if rng.random() < 0.7 else 'nanosec'), rng)
        plan.append(Action(at, lambda arena, m=bad: arena.driver.send_clock(m)))
    return plan
