# SPDX-License-Identifier: Apache-2.0
"""Garbage on every topic that the node subscribes to and in every service that it offers.

They are found by introspection, so what is new is covered, and what only some systems have: TF, the feedback
of the action. Topics that a kind of its own spoils, since the judge has to know about it, are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from faults.actions import Action, Draw, Plan
from faults.arena import Arena
from faults.kinds.garbage import class_of, leaves, spoil, spoilt
from faults.messages import MAKE, stamped

KNOWN = {'/clock', '/robot_description'}
REPEATS = 3  # requests of each service that is drawn


def topics(arena: Arena) -> list[tuple[str, Any]]:
    """Return every topic that the node subscribes to, with its type."""
    found = arena.node.get_subscriber_names_and_types_by_node('ik_node', '/')
    # Where nobody measures, the first publisher of measurements would be waited for ever after.
    known = KNOWN if arena.driver.measures else KNOWN | {'/measured_joint_states'}
    return [(topic, class_of(kinds[0])) for topic, kinds in sorted(found) if topic not in known]


def services(arena: Arena) -> list[tuple[str, Any]]:
    """Return every service that the node offers, with its type."""
    found = arena.node.get_service_names_and_types_by_node('ik_node', '/')
    return [(service, class_of(kinds[0])) for service, kinds in sorted(found)]


def inputs(draw: Draw) -> Plan:
    """Send spoilt messages on some of all topics, every field of one of them in turn."""
    seed, many = int(draw.rng.integers(2**32)), int(draw.rng.integers(2, 6))
    rng, plan = np.random.default_rng(seed), []
    begin, end = draw.span(0.2, 1.0)
    found = topics(draw.arena)
    for pick in rng.permutation(len(found))[:many]:
        topic, kind = found[pick]
        for i, at in enumerate(draw.times(float(rng.uniform(20.0, 200.0)), begin, end)):
            message = _spoilt(draw.arena, topic, kind, i, rng)
            plan.append(Action(at, lambda arena, t=topic, m=message: arena.inject(t, m)))
    return plan


def _spoilt(arena: Arena, topic: str, kind: Any, i: int, rng: np.random.Generator) -> Any:
    """Return a good or empty message of a topic with garbage in field i or in one at random."""
    robot, name = arena.robot, topic.removeprefix('/').replace(f'{arena.tool}/', '')
    if name == arena.driver.topic:
        good = arena.driver.measured()
    else:
        good = MAKE[name](robot, rng) if name in MAKE else kind()
    if rng.random() < 0.5:
        good = stamped(arena, good)
    paths = list(leaves(good))
    return spoil(good, paths[i % len(paths)], rng) if rng.random() < 0.8 else spoilt(good, rng)


def requests(draw: Draw) -> Plan:
    """Call some of all services with garbage, and with nothing."""
    rng, plan = np.random.default_rng(int(draw.rng.integers(2**32))), []
    found = services(draw.arena)
    for pick in rng.permutation(len(found))[:8]:
        service, kind = found[pick]
        for _ in range(REPEATS):
            request = spoilt(kind.Request(), rng) if list(leaves(kind.Request())) else kind.Request()
            plan.append(
                Action(
                    float(rng.uniform(0.0, draw.length)),
                    lambda arena, s=service, k=kind, r=request: arena.request(s, k, r),
                )
            )
    return plan
