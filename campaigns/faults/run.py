# SPDX-License-Identifier: Apache-2.0
"""One run: an activity and one to three faults at once, then the question whether the arm still works."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np
from rclpy.impl import rcutils_logger
from stepped import world

from campaigns.faults.activities import ACTIVITIES, Action, Draw, Plan
from campaigns.faults.arena import Arena, Setup
from campaigns.faults.judge import CRASH, PATIENCE, STANDSTILL, Judge, motions, standstills
from campaigns.faults.kinds import KINDS, lift
from campaigns.faults.messages import joints_message
from campaigns.faults.robots import SHARING, TIPS

# Outputs, the topic of the feedback, and how often they are drawn.
OUTPUTS = (
    ('joint_states', 'measured_joint_states', 0.3),
    ('joint_states', '', 0.1),
    ('position_commands', 'joint_states', 0.1),
    ('position_commands joint_states', 'measured_joint_states', 0.1),
    ('joint_trajectory', 'joint_states', 0.25),
    ('joint_trajectory joint_states', 'measured_joint_states', 0.15),
)
LONGEST = 1.4  # [s] of a run without what follows it
RECOVERY = 8.0  # [s] within which an arm must obey again once all faults are lifted
# False feedback has taken the joints to where they collide, or nearly.
EXPLAINED = ' would overlap by ', ' would come as near as '


@dataclass
class Result:
    """What became of a run; wrong: kind and sentence of each violation."""

    number: int
    setup: Setup
    activity: str
    faults: tuple[str, ...]
    samples: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)


def drawn_setup(rng: np.random.Generator) -> Setup:
    """Return a setup."""
    name = str(rng.choice(list(TIPS)))
    output, feedback, _ = OUTPUTS[int(rng.choice(len(OUTPUTS), p=[share for *_, share in OUTPUTS]))]
    if name in SHARING:  # one controller moves the joints of all tools: a list of them has no known order
        output = output.replace('position_commands', 'joint_trajectory')
    return Setup(name, output, feedback, bool(rng.random() < 0.3), bool(rng.random() < 0.7))


def run(seed: int, number: int) -> Result:
    """Do one run and judge it."""
    rng = np.random.default_rng([seed, number])
    setup = drawn_setup(rng)
    activities = [str(rng.choice(list(ACTIVITIES))) for _ in TIPS[setup.robot]]
    names = [name for name, kind in KINDS.items() if kind.applies(setup)]
    shares = np.array([KINDS[name].share for name in names])
    count = int(rng.choice([1, 2, 3], p=(0.4, 0.4, 0.2)))
    faults = tuple(map(str, rng.choice(names, count, replace=False, p=shares / shares.sum())))
    result = Result(number, setup, ' and '.join(activities), faults)
    with errors_into(result.wrong), world() as here:
        arena = Arena(here, setup)
        try:
            live(arena, rng, activities, faults, result)
        except Exception:
            result.wrong.append((CRASH, traceback.format_exc()))
        try:
            arena.close()
        except Exception:
            result.wrong.append((CRASH, traceback.format_exc()))
    return result


@contextmanager
def errors_into(wrong: list[tuple[str, str]]) -> Iterator[None]:
    """Note what the node calls an unexpected error."""
    log = rcutils_logger._rclpy.rclpy_logging_rcutils_log

    def noted(severity: object, name: str, text: str, *given: object) -> None:
        if 'unexpected error' in text or 'Traceback' in text:
            wrong.append((CRASH, text))
        log(severity, name, text, *given)

    with patch.object(rcutils_logger._rclpy, 'rclpy_logging_rcutils_log', noted):
        yield


def live(
    arena: Arena, rng: np.random.Generator, activities: list[str], faults: tuple[str, ...], result: Result
) -> None:
    """Carry out what was drawn, ask whether the arm still obeys, and judge all that was published."""
    why = recovers(arena, 60.0)
    if why:
        result.wrong.append((STANDSTILL, f'before the run: {why}'))
    defaults, draw = arena.parameters(), Draw(rng, float(rng.uniform(0.7, LONGEST)), arena)
    plan: list[Action] = []
    for tool, name in zip(arena.tools, activities, strict=True):
        plan += of_tool(arena, tool, draw, ACTIVITIES[name])
    for name in faults:
        plan += of_tool(arena, str(rng.choice(arena.tools)), draw, KINDS[name].plan)
    begin = arena.now
    for action in sorted(plan, key=lambda action: action.at):
        if action.at < draw.length:
            arena.run(max(0.0, begin + action.at - arena.now))
            action.do(arena)
    arena.run(max(0.0, begin + draw.length - arena.now))
    lift(arena, defaults)
    why = recovers(arena, RECOVERY)
    if why and not any(words in why for words in EXPLAINED):
        result.wrong.append((STANDSTILL, why))
    result.samples = len(arena.record.samples)
    result.wrong += Judge(arena).judge()
    for tool in arena.tools:
        result.wrong += standstills(arena, tool, joints_of(arena, tool))


def of_tool(arena: Arena, tool: str, draw: Draw, plan: Callable[[Draw], Plan]) -> list[Action]:
    """Draw a plan with a tool, whose actions are for that tool."""
    drawn: list[Action] = []
    arena.using(tool, lambda _: drawn.extend(plan(draw)))
    return [Action(a.at, lambda arena, do=a.do: arena.using(tool, do)) for a in drawn]


def recovers(arena: Arena, patience: float) -> str:
    """Return why an arm does not obey within some time [s]."""
    rng, end, why = random.Random(len(arena.record.samples)), arena.now + patience, 'it never answered'
    arena.run(0.1)
    while arena.now < end:
        answers = [arena.using(tool, lambda arena: arena.answer('resume')) for tool in arena.tools]
        if None in answers:
            return 'no answer of ~/resume'
        why = obeys(arena, rng)
        if not why:
            return ''
        arena.run(0.05)
    return why


def obeys(arena: Arena, rng: random.Random) -> str:
    """Send a goal near the arm; return why it does not go there."""
    places, record = arena.places() if arena.setup.feedback else {}, arena.record
    values = {}
    for name, low, high in zip(
        arena.robot.names, *map(np.ndarray.tolist, (arena.robot.lower, arena.robot.upper)), strict=True
    ):
        room = 0.1 * min(high - low, 2.0)
        values[name] = min(max(places.get(name, 0.0) + rng.uniform(-room, room), low + 0.01), high - 0.01)
    mark, sent, end = len(record.statuses), arena.now, arena.now + PATIENCE
    arena.send('goal_joints', arena.stamped(joints_message(values)))
    while arena.now < end:
        arena.run(0.02)
        about = [s for s in record.statuses[mark:] if s.tool == arena.tool and s.goal.endswith('goal_joints')]
        if about and about[-1].state == 'rejected':
            return about[-1].message
        moved = [a for a, b in motions(record, joints_of(arena, arena.tool)) if b >= sent]
        if about and (moved or any(s.state == 'arrived' for s in about)):
            return ''
    return f'no motion: {[s.message for s in record.statuses[mark:]]}'


def joints_of(arena: Arena, tool: str) -> set[str] | None:
    """Return the joints whose motion counts as that of a tool, None: all.

    Where tools share joints, one that is outside its limits returns first, alone, whosever it is.
    """
    if arena.setup.robot in SHARING:
        return None
    return set(arena.using(tool, lambda arena: arena.robot).names)
