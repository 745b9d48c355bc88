# SPDX-License-Identifier: Apache-2.0
"""Faults in what is asked of the node: too much, at the wrong time, or by two at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState

from faults.actions import Action, Draw, Plan
from faults.activities import send
from faults.arena import Arena
from faults.messages import MAKE
from faults.robots import ROBOTS, robot

GOAL_TOPICS = tuple(topic for topic in MAKE if topic != 'ik_node/enable')
BACK = 0.05  # [s] before the end of a run


def flood(draw: Draw) -> Plan:
    """Send goals of one kind or all at 1 kHz."""
    rng, begin = draw.rng, float(draw.rng.uniform(0.0, 0.4))
    topics = [str(rng.choice(GOAL_TOPICS))] if rng.random() < 0.7 else list(GOAL_TOPICS)
    some = [(topic, MAKE[topic](draw.arena.robot, rng)) for topic in topics for _ in range(20)]
    picks = rng.integers(0, len(some), 2000)
    times = draw.times(1000.0, begin, begin + float(rng.uniform(0.1, 0.8)))
    return [send(*some[pick], at) for at, pick in zip(times, picks, strict=False)]


def two_publishers(draw: Draw) -> Plan:
    """Send contradictory goals, on two topics or one, at rates of their own."""
    rng, plan = draw.rng, []
    for topic in rng.choice(GOAL_TOPICS, 2):
        message = MAKE[str(topic)](draw.arena.robot, rng)
        plan += [send(str(topic), message, at) for at in draw.times(float(rng.uniform(5.0, 100.0)))]
    return plan


def stop(draw: Draw) -> Plan:
    """Stop, and resume later, now and then at once; perhaps several times."""
    plan = []
    for _ in range(int(draw.rng.integers(1, 4))):
        begin, end = draw.span(0.0, 0.6)
        plan.append(Action(begin, lambda arena: arena.ask('stop')))
        plan.append(Action(end, lambda arena: arena.ask('resume')))
    return plan


def lifecycle(draw: Draw) -> Plan:
    """Change the state of the node as a manager does, in any order."""
    transitions = (
        Transition.TRANSITION_DEACTIVATE,
        Transition.TRANSITION_ACTIVATE,
        Transition.TRANSITION_CLEANUP,
        Transition.TRANSITION_CONFIGURE,
    )
    plan = []
    for _ in range(int(draw.rng.integers(1, 4))):
        number = transitions[int(draw.rng.integers(len(transitions)))]
        plan.append(Action(draw.time(), lambda arena, n=number: change_state(arena, n)))
    return plan


def change_state(arena: Arena, number: int) -> Any:
    """Ask for a transition; return the future."""
    return arena.ask('change_state', ChangeState.Request(transition=Transition(id=number)))


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
    'schedule': ['metropolis'],
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


def parameters(draw: Draw) -> Plan:
    """Change parameters, one or many, in motion."""
    plan, names = [], list(VALUES)
    for _ in range(int(draw.rng.integers(1, 8))):
        name = names[int(draw.rng.integers(len(names)))]
        value = VALUES[name][int(draw.rng.integers(len(VALUES[name])))]
        plan.append(Action(draw.time(), lambda arena, n=name, v=value: arena.change(n, v)))
    return plan


def another_description(draw: Draw) -> Plan:
    """Describe the robot anew: with other limits, or quite another robot where the output has names."""
    rng, mine = draw.rng, draw.arena.robot
    text = mine.text
    limits = [
        ('velocity="2"', 'velocity="0.7"'),
        ('lower="-2.5"', 'lower="-0.6"'),
        ('upper="2.5"', 'upper="1.1"'),
    ]
    others = [text.replace(*change) for change in limits if change[0] in text]
    others.append(text.replace('</robot>', '<link name="another"/></robot>'))
    if not draw.arena.setup.output.startswith('position'):
        others += [robot(name).text for name in ROBOTS if name != mine.name]
    plan = []
    for _ in range(int(rng.integers(1, 3))):
        other = others[int(rng.integers(len(others)))]
        plan.append(Action(draw.time(), lambda arena, t=other: arena.describe(t)))
    return [*plan, Action(draw.length - BACK, lambda arena: arena.describe(text))]


def drawn(generator: np.random.Generator, values: list[Any]) -> Any:
    """Return one of values."""
    return values[int(generator.integers(len(values)))]
