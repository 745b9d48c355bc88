# SPDX-License-Identifier: Apache-2.0
"""Faults of the feedback: of the messages of a driver, not of their fields."""

from __future__ import annotations

import numpy as np
from sensor_msgs.msg import JointState

from faults.actions import Action, Draw, Plan
from faults.arena import Arena
from faults.driver import PERIOD, Disturbance


def disturbed(
    draw: Draw, name: str, disturbance: Disturbance, span: tuple[float, float] | None = None
) -> Plan:
    """Disturb the feedback for a while."""
    begin, end = draw.span() if span is None else span

    def begins(arena: Arena) -> None:
        arena.driver.disturbances[name] = disturbance

    return [Action(begin, begins), Action(end, lambda arena: arena.driver.disturbances.pop(name, None))]


def lost(draw: Draw) -> Plan:
    """Lose all or many messages."""
    rng, share = draw.rng, float(draw.rng.choice([0.5, 0.9, 1.0, 1.0]))
    noise = np.random.default_rng(int(rng.integers(2**32)))
    span = draw.span(0.1, 2.0)  # longer than measured_timeout, now and then
    return disturbed(draw, 'lost', lambda messages: [m for m in messages if noise.random() > share], span)


def delayed(draw: Draw) -> Plan:
    """Hold messages back, by up to 0.5 s."""
    periods, held = int(draw.rng.uniform(0.01, 0.5) / PERIOD), []

    def later(messages: list[JointState]) -> list[JointState]:
        held.extend(messages)
        out, held[:] = held[: max(0, len(held) - periods)], held[-periods:] if periods else []
        return out

    return disturbed(draw, 'delayed', later)


def reordered(draw: Draw) -> Plan:
    """Send the messages of a while in another order."""
    noise, many = np.random.default_rng(int(draw.rng.integers(2**32))), int(draw.rng.integers(2, 20))
    held: list[JointState] = []

    def mixed(messages: list[JointState]) -> list[JointState]:
        held.extend(messages)
        if len(held) < many:
            return []
        out = [held[i] for i in noise.permutation(len(held))]
        held.clear()
        return out

    return disturbed(draw, 'reordered', mixed)


def doubled(draw: Draw) -> Plan:
    """Send every message several times, at once and later."""
    many = int(draw.rng.integers(2, 6))
    old: list[JointState] = []

    def again(messages: list[JointState]) -> list[JointState]:
        old.extend(messages)
        del old[: -2 * many]
        return [*messages * many, *old]

    return disturbed(draw, 'doubled', again)


def partial(draw: Draw) -> Plan:
    """Split the joints among several messages, and leave some out."""
    noise, leave_out = np.random.default_rng(int(draw.rng.integers(2**32))), bool(draw.rng.random() < 0.5)

    def parts(messages: list[JointState]) -> list[JointState]:
        out = []
        for message in messages:
            order = noise.permutation(min(len(message.name), len(message.position)))  # perhaps spoilt
            pieces = np.array_split(order, int(noise.integers(2, 5)))
            for piece in pieces[1:] if leave_out else pieces:
                names = [message.name[i] for i in piece]
                out.append(JointState(name=names, position=[message.position[i] for i in piece]))
        return out

    return disturbed(draw, 'partial', parts)


def beyond_limits(draw: Draw) -> Plan:
    """Report joints beyond their limits, a little or much."""
    arm, rng = draw.arena.robot.arm, draw.rng
    joint = int(rng.integers(len(arm.joint_names)))
    name = arm.joint_names[joint]
    over = float(rng.choice([0.01, 0.05, 0.2, 1.0, 7.0]))
    place = float(arm.upper[joint] + over if rng.random() < 0.5 else arm.lower[joint] - over)
    if not np.isfinite(place):
        place = over

    def outside(messages: list[JointState]) -> list[JointState]:
        for message in messages:
            for i, found in enumerate(message.name):
                if found == name and i < len(message.position):
                    message.position[i] = place
        return messages

    return disturbed(draw, 'beyond', outside)


def stuck(draw: Draw) -> Plan:
    """Let the joints stand where they are."""
    begin, end = draw.span(0.1, 1.0)

    def hold(on: bool):
        def act(arena: Arena) -> None:
            arena.driver.stuck = on

        return act

    return [Action(begin, hold(True)), Action(end, hold(False))]
