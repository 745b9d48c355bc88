# SPDX-License-Identifier: Apache-2.0
"""Kinds of faults: one row each. A kind draws a plan; what it disturbs is lifted by the end of the run."""

from __future__ import annotations

import array
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from lifecycle_msgs.msg import Transition
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from campaigns.faults.activities import Action, Draw, Plan, call, send
from campaigns.faults.arena import PERIOD, Arena, Disturbance, Setup
from campaigns.faults.messages import FLOATS, LONG, MAKE, leaves, spoil, spoilt
from campaigns.faults.robots import TIPS, text_of

GOALS = tuple(topic for topic in MAKE if topic != 'ik_node/enable')
BACK = 0.05  # [s] before the end of a run
TRANSITIONS = [getattr(Transition, f'TRANSITION_{name}') for name in ('DEACTIVATE', 'ACTIVATE', 'CLEANUP', 'CONFIGURE')]
# Values of parameters that may be changed in motion, beside their defaults.
VALUES: dict[str, list[Any]] = {
    'speed_scaling': [0.05, 0.3, 1.0],
    'max_acceleration': [0.5, 2.0, 20.0],
    'max_jerk': [5.0, 20.0, 500.0],
    'max_linear_acceleration': [0.1, 5.0],
    'max_linear_jerk': [1.0, 100.0],
    'publish_rate': [25.0, 50.0, 250.0],
    'follow_goals': [False],
    'smoothing': [0.01, 0.3],
    'solver': ['dls', 'ccd'],
    'restarts': [0, 10],
    'time_budget': [0.001, 0.2],
    'on_unreachable': ['hold'],
    'position_tolerance': [1e-6, 1e-2],
    'tool_point': [(0.02, 0.0, 0.05)],
    'tool_axis': [(1.0, 0.0, 0.0)],
    'joint_limit_margins': [(0.05,), (0.3,)],
    'max_tool_speed': [0.02, 0.2],
    'max_tool_turn_rate': [0.2],
    'workspace': [(-0.3, -0.3, 0.0, 0.3, 0.3, 0.5)],
    'home': [(0.3,)],
    'self_collision': ['false', 'true'],
    'measured_timeout': [0.1, 0.0],
    'max_following_error': [0.02, 1.0],
    'following_delay': [0.0, 0.5],
    'goal_timeout': [0.01],
    'incoming_command_timeout': [0.02, 1.0],
    'clutch': ['none'],
    'clutch_timeout': [0.05],
    'position_scale': [0.1, 3.0],
    'scale_linear': [5.0],
    'scale_joint': [5.0],
    'path_corners': ['blend'],
    'path_direction': ['free'],
    'path_partial': [True],
    'path_speed': [0.02],
    'wait_for_measured': ['true'],
    'hand_guiding_timeout': [1.0],
}


def one_of(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def own_rng(draw: Draw) -> np.random.Generator:
    """Return what a disturbance draws from while the run goes on."""
    return np.random.default_rng(int(draw.rng.integers(2**32)))


# What is asked


def flood(draw: Draw) -> Plan:
    """Goals of one kind or all at 1 kHz."""
    rng, begin = draw.rng, float(draw.rng.uniform(0.0, 0.4))
    topics = [one_of(rng, GOALS)] if rng.random() < 0.7 else GOALS
    some = [(topic, MAKE[topic](draw.arena.robot, rng)) for topic in topics for _ in range(20)]
    for at in draw.times(1000.0, begin, begin + float(rng.uniform(0.1, 0.8))):
        yield send(*one_of(rng, some), at)


def two_publishers(draw: Draw) -> Plan:
    """Contradictory goals, on two topics or one, at rates of their own."""
    for topic in draw.rng.choice(GOALS, 2):
        message = MAKE[str(topic)](draw.arena.robot, draw.rng)
        for at in draw.times(float(draw.rng.uniform(5.0, 100.0))):
            yield send(str(topic), message, at)


def stop(draw: Draw) -> Plan:
    for _ in range(int(draw.rng.integers(1, 4))):
        begin, end = draw.span(0.0, 0.6)
        yield call(begin, 'stop')
        yield call(end, 'resume')


def lifecycle(draw: Draw) -> Plan:
    for _ in range(int(draw.rng.integers(1, 4))):
        yield call(draw.time(), 'change_state', transition=Transition(id=one_of(draw.rng, TRANSITIONS)))


def parameters(draw: Draw) -> Plan:
    """Parameters changed in motion."""
    for _ in range(int(draw.rng.integers(1, 8))):
        name = one_of(draw.rng, list(VALUES))
        value = one_of(draw.rng, VALUES[name])
        yield Action(draw.time(), lambda arena, n=name, v=value: arena.change(**{n: v}))


def another_description(draw: Draw) -> Plan:
    """Other limits, or quite another robot where the output has names."""
    mine = draw.arena.robot
    changes = (
        ('velocity="2"', 'velocity="0.7"'),
        ('lower="-2.5"', 'lower="-0.6"'),
        ('upper="2.5"', 'upper="1.1"'),
    )
    others = [mine.text.replace(*change) for change in changes if change[0] in mine.text]
    others.append(mine.text.replace('</robot>', '<link name="another"/></robot>'))
    if not draw.arena.setup.output.startswith('position'):
        others += [text_of(name) for name in TIPS if name != mine.name]
    for _ in range(int(draw.rng.integers(1, 3))):
        other = one_of(draw.rng, others)
        yield Action(draw.time(), lambda arena, t=other: arena.describe(t))
    yield Action(draw.length - BACK, lambda arena: arena.describe(mine.text))


# Garbage


def garbage_in_goals(draw: Draw) -> Plan:
    yield from _bursts(draw, [topic for topic in MAKE if '/' not in topic])


def garbage_in_teleoperation(draw: Draw) -> Plan:
    yield from _bursts(draw, [topic for topic in MAKE if '/' in topic])


def _bursts(draw: Draw, topics: list[str]) -> Plan:
    """Send spoilt messages on two topics at up to 200 Hz, every field of one of them in turn."""
    rng, (begin, end) = draw.rng, draw.span(0.2, 1.0)
    for topic in map(str, rng.choice(topics, 2, replace=False)):
        good, stamps = MAKE[topic](draw.arena.robot, rng), bool(rng.random() < 0.5)
        paths = list(leaves(good))
        for i, at in enumerate(draw.times(float(rng.uniform(10.0, 100.0)), begin, end)):
            bad = spoil(good, paths[i % len(paths)], rng) if rng.random() < 0.8 else spoilt(good, rng)
            stamp = stamps and not (hasattr(bad, 'header') and bad.header.stamp.sec)
            yield (send(topic, bad, at) if stamp else Action(at, lambda arena, t=topic, m=bad: arena.send(t, m)))


def garbage_everywhere(draw: Draw) -> Plan:
    """Spoilt messages on some of all topics that the node subscribes to, but those of other kinds."""
    arena, rng, (begin, end) = draw.arena, draw.rng, draw.span(0.2, 1.0)
    left_out = {'/clock', '/robot_description'}
    if not arena.setup.feedback:  # the first publisher of measurements would be waited for ever after
        left_out.add('/measured_joint_states')
    found = [one for one in sorted(arena.inputs().items()) if one[0] not in left_out]
    for _ in range(int(rng.integers(2, 6))):
        topic, kind = one_of(rng, found)
        name = topic.strip('/').replace(f'{arena.tool}/', '') if arena.tool else topic.strip('/')
        good = MAKE[name](arena.robot, rng) if name in MAKE else kind()
        paths = list(leaves(good))
        for i, at in enumerate(draw.times(float(rng.uniform(10.0, 100.0)), begin, end)):
            bad = spoil(good, paths[i % len(paths)], rng) if rng.random() < 0.8 else spoilt(good, rng)
            yield Action(at, lambda arena, t=topic, m=bad: arena.send(t, m))


def garbage_in_services(draw: Draw) -> Plan:
    """Garbage and nothing to some of all services."""
    found = sorted(draw.arena.services().items())
    for _ in range(20):
        service, kind = one_of(draw.rng, found)
        request = kind.Request()
        request = spoilt(request, draw.rng) if list(leaves(request)) else request
        yield Action(draw.time(), lambda arena, s=service, r=request: arena.ask(s, r))


def garbage_in_descriptions(draw: Draw) -> Plan:
    text, rng = draw.arena.robot.text, draw.rng
    cut = int(rng.integers(len(text)))
    bad = (
        '', ' ', '<robot/>', LONG, text[:cut], text[:cut] + text[cut + 1 :], text + text,
        text.replace('"0 0 1"', '"0 0 nan"', 1),
        text.replace('"0 0 1"', '"0 0 0"'),
        text.replace('upper="', 'upper="-9', 1),
        text.replace('velocity="', 'velocity="-', 1),
        text.replace('revolute', 'floating', 1),
        text.replace('<link ', '<lnk ', 1),
        '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><robot name="&b;"/>',
    )  # fmt: skip
    for _ in range(int(rng.integers(1, 5))):
        other = one_of(rng, bad)
        yield Action(draw.time(), lambda arena, t=other: arena.describe(t))
    yield Action(draw.length - BACK, lambda arena: arena.describe(text))


def garbage_in_parameters(draw: Draw) -> Plan:
    """Values that are not allowed, among them of other types."""
    names = [*VALUES, 'robot_description', 'output', 'tip_link', 'base_link', 'no_such_parameter']
    rows = [array.array('d', row) for row in ([math.nan] * 6, [1.0] * 5, [1e300] * 3)]
    values = [*FLOATS[:7], -1.0, 0, -1, 2**62, True, '', 'nonsense', LONG, *rows, [''], ['a', 'a']]
    for _ in range(int(draw.rng.integers(3, 20))):
        name, value = one_of(draw.rng, names), one_of(draw.rng, values)
        yield Action(draw.time(), lambda arena, n=name, v=value: arena.change(**{n: v}))


# Feedback


def disturbed(draw: Draw, disturbance: Disturbance, least: float = 0.05, most: float = 0.6) -> Plan:
    """Disturb the feedback for a while."""
    begin, end = draw.span(least, most)
    name = f'{begin}'
    yield Action(begin, lambda arena: arena.disturbances.update({name: disturbance}))
    yield Action(end, lambda arena: arena.disturbances.pop(name, None))


def lost(draw: Draw) -> Plan:
    """All or many messages, now and then for longer than measured_timeout."""
    share, rng = float(draw.rng.choice([0.5, 0.9, 1.0, 1.0])), own_rng(draw)
    yield from disturbed(draw, lambda messages: [m for m in messages if rng.random() > share], 0.1, 2.0)


def delayed(draw: Draw) -> Plan:
    """By up to 0.5 s."""
    periods, held = int(draw.rng.uniform(0.01, 0.5) / PERIOD), []

    def later(messages: list[JointState]) -> list[JointState]:
        held.extend(messages)
        out = held[: max(0, len(held) - periods)]
        del held[: len(out)]
        return out

    yield from disturbed(draw, later)


def reordered(draw: Draw) -> Plan:
    rng, many, held = own_rng(draw), int(draw.rng.integers(2, 20)), []

    def mixed(messages: list[JointState]) -> list[JointState]:
        held.extend(messages)
        if len(held) < many:
            return []
        out = [held[i] for i in rng.permutation(len(held))]
        held.clear()
        return out

    yield from disturbed(draw, mixed)


def doubled(draw: Draw) -> Plan:
    """At once and later."""
    many, old = int(draw.rng.integers(2, 6)), []

    def again(messages: list[JointState]) -> list[JointState]:
        old.extend(messages)
        del old[: -2 * many]
        return [*messages * many, *old]

    yield from disturbed(draw, again)


def partial(draw: Draw) -> Plan:
    """The joints split among several messages, and some left out."""
    rng, leave_out = own_rng(draw), bool(draw.rng.random() < 0.5)

    def parts(messages: list[JointState]) -> list[JointState]:
        out = []
        for message in messages:
            order = rng.permutation(min(len(message.name), len(message.position)))  # perhaps spoilt
            for piece in np.array_split(order, int(rng.integers(2, 5)))[int(leave_out) :]:
                rows = ([getattr(message, field)[i] for i in piece] for field in ('name', 'position'))
                out.append(JointState(**dict(zip(('name', 'position'), rows, strict=True))))
        return out

    yield from disturbed(draw, parts)


def beyond_limits(draw: Draw) -> Plan:
    robot, rng = draw.arena.robot, draw.rng
    joint = int(rng.integers(len(robot.names)))
    over = float(rng.choice([0.01, 0.05, 0.2, 1.0, 7.0]))
    place = float(robot.upper[joint] + over if rng.random() < 0.5 else robot.lower[joint] - over)
    place = place if math.isfinite(place) else over

    def outside(messages: list[JointState]) -> list[JointState]:
        for message in messages:
            for i, name in enumerate(message.name[: len(message.position)]):
                if name == robot.names[joint]:
                    message.position[i] = place
        return messages

    yield from disturbed(draw, outside)


def garbage_in_feedback(draw: Draw) -> Plan:
    """Some of the messages, or spoilt ones besides."""
    rng, besides, share = (
        own_rng(draw),
        bool(draw.rng.random() < 0.5),
        float(draw.rng.choice([0.05, 0.5, 1.0])),
    )

    def spoil_some(messages: list[JointState]) -> list[JointState]:
        bad = [spoilt(message, rng) for message in messages if rng.random() < share]
        return [*messages, *bad] if besides else bad or messages

    yield from disturbed(draw, spoil_some)


def stuck(draw: Draw) -> Plan:
    for at, on in zip(draw.span(0.1, 1.0), (True, False), strict=True):
        yield Action(at, lambda arena, on=on: setattr(arena, 'stuck', on))


# Time


def jumps(draw: Draw) -> Plan:
    """Forwards and backwards, by little and by much."""
    for _ in range(int(draw.rng.integers(1, 6))):
        step = float(draw.rng.choice([-1.0, 1.0]) * 10.0 ** draw.rng.uniform(-3.0, 3.0))
        yield Action(draw.time(), lambda arena, s=step: arena.clock.set(s))


def runs_off(draw: Draw) -> Plan:
    """Stands, or runs slower or faster than real time."""
    rate = float(draw.rng.choice([0.0, 0.3, 3.0]))
    for at, value in zip(draw.span(), (rate, 1.0), strict=True):
        yield Action(at, lambda arena, v=value: arena.clock.set(rate=v))


def garbage_in_clock(draw: Draw) -> Plan:
    """Impossible times among the good ones."""
    for at in draw.times(float(draw.rng.uniform(3.0, 50.0)), *draw.span()):
        bad = spoil(Clock(), ('clock', 'sec' if draw.rng.random() < 0.7 else 'nanosec'), draw.rng)
        yield Action(at, lambda arena, m=bad: arena.send('/clock', m))


def setpoints_stall(draw: Draw) -> Plan:
    """The thread of the setpoints gets no processor for a while."""
    begin, end = draw.span(0.02, 0.5)
    yield Action(begin, lambda arena: arena.stall(end - begin))


def callbacks_stall(draw: Draw) -> Plan:
    """The executor gets none, while setpoints go on."""
    begin, end = draw.span(0.02, 0.5)
    yield Action(begin, lambda arena: arena.world.busy.add(arena.node))
    yield Action(end, lambda arena: arena.world.busy.discard(arena.node))


def feeds(setup: Setup) -> bool:
    return bool(setup.feedback)


def simulates(setup: Setup) -> bool:
    return setup.simulated


@dataclass(frozen=True)
class Kind:
    """A kind of fault. share: how often it is chosen, beside the others."""

    plan: Callable[[Draw], Plan]
    applies: Callable[[Setup], bool] = lambda _: True
    share: float = 1.0


KINDS: dict[str, Kind] = {
    'setpoints stall': Kind(setpoints_stall),
    'callbacks stall': Kind(callbacks_stall),
    'goals at 1 kHz': Kind(flood),
    'two publishers': Kind(two_publishers),
    'garbage in goals': Kind(garbage_in_goals, share=1.5),
    'garbage in teleoperation': Kind(garbage_in_teleoperation, share=1.5),
    'garbage in descriptions': Kind(garbage_in_descriptions),
    'garbage in parameters': Kind(garbage_in_parameters),
    'garbage in feedback': Kind(garbage_in_feedback, feeds, 1.5),
    'garbage in /clock': Kind(garbage_in_clock, simulates, 1.5),
    'garbage on every topic': Kind(garbage_everywhere, share=1.5),
    'garbage in every service': Kind(garbage_in_services, share=1.5),
    'feedback lost': Kind(lost, feeds),
    'feedback delayed': Kind(delayed, feeds),
    'feedback reordered': Kind(reordered, feeds),
    'feedback doubled': Kind(doubled, feeds),
    'feedback partial': Kind(partial, feeds),
    'feedback beyond limits': Kind(beyond_limits, feeds),
    'joints stuck': Kind(stuck, feeds),
    'clock jumps': Kind(jumps, simulates, 2.0),
    'clock stands or races': Kind(runs_off, simulates),
    'parameters changed': Kind(parameters, share=1.5),
    'another description': Kind(another_description),
    'stop': Kind(stop, share=2.5),
    'lifecycle': Kind(lifecycle),
}


def lift(arena: Arena, defaults: dict[str, Any]) -> None:
    """End all faults."""
    arena.disturbances.clear()
    arena.world.busy.discard(arena.node)
    arena.stuck, arena.offset = False, 0.0 * arena.offset
    if arena.clock is not None:
        arena.clock.set(rate=1.0)
    for name, value in defaults.items():
        if arena.node.get_parameter(name).value != value:
            arena.change(**{name: value})
    arena.describe(arena.robot.text)
    for transition in ('CONFIGURE', 'ACTIVATE'):
        arena.ask('change_state', transition=Transition(id=getattr(Transition, f'TRANSITION_{transition}')))
    for tool in arena.tools:
        arena.using(tool, lambda arena: arena.ask('pause_servo', data=False))
        arena.using(tool, lambda arena: arena.ask('hand_guide', data=False))
    arena.run(0.1)
