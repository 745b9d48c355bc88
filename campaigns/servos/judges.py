# SPDX-License-Identifier: Apache-2.0
"""Judges of a run: what the emulator has measured and was told, against what the driver published."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from virtual_time import VirtualBus

from ik_node.servos.arm.goals import SAG
from ik_node.servos.arm.states import ArmSnapshot
from ik_node.servos.bus.serial_transport import LATEST
from ik_node.servos.calibration.profile import ArmProfile
from ik_node.servos.calibration.zeros import JointCalibration

AWAY = SAG / math.tau * 4096  # from the goal: the next hold, or a watchdog, is where the joint then is
BRAKING = 1.5  # times the fastest speed that a goal may have
TOGETHER = 0.05  # [s] in which several goals may come
CYCLE = 0.25  # [s] that a cycle takes at most, in which servos are silent: it holds what it measured at first
MISTAKEN = 0.5  # [s] for which goals are not judged of a servo for which another one has answered
BUSY, BUSY_WINDOW = 0.12, 0.5  # [s] between two cycles, and around a time


class Logs:
    """What an emulated bus has logged, in the order of time.

    goals: (time, id, ticks). answered: times and ticks of the measured positions, by id. at: times at which
    a servo was measured at a tick, by (id, tick); posed: at which another one answered that with its id.
    torques: when a servo got or lost its torque, and whether it had it then, by id.
    """

    def __init__(self, bus: VirtualBus, begun: float) -> None:
        self.goals = bus.log('goals', begun)
        self.answered: dict[int, tuple[list[float], list[int]]] = defaultdict(lambda: ([], []))
        self.at: dict[tuple[int, int], list[float]] = defaultdict(list)
        self.posed: dict[tuple[int, int], list[float]] = defaultdict(list)
        self._mistaken: dict[int, list[float]] = defaultdict(list)  # times of posed, by id
        for when, id, tick in bus.log('posed'):
            self.posed[id, tick].append(when)
            self._mistaken[id].append(when)
        self.torques: dict[int, list[tuple[float, bool]]] = defaultdict(list)
        for when, id, tick in bus.log('answered'):
            self.answered[id][0].append(when)
            self.answered[id][1].append(tick)
            self.at[id, tick].append(when)
        for when, id, on in bus.log('torques'):
            self.torques[id].append((when, bool(on)))

    def always_had_torque(self, id: int, begin: float, end: float) -> bool:
        """Whether a servo had torque at a time, and did not lose it until another."""
        before = [on for when, on in self.torques[id] if when < begin]
        return before[-1:] == [True] and all(on for when, on in self.torques[id] if begin <= when <= end)

    def between(self, id: int, begin: float, end: float) -> list[int]:
        """Return the ticks that a servo was measured at between two times."""
        times, ticks = self.answered[id]
        return ticks[bisect_left(times, begin) : bisect_right(times, end)]

    def mistaken(self, id: int, when: float) -> bool:
        """Whether another servo has answered for one within MISTAKEN before a time."""
        return among(self._mistaken[id], when - MISTAKEN, when)

    def measured(self, id: int, when: float) -> int | None:
        """Return the last tick that a servo was measured at until a time."""
        times, ticks = self.answered[id]
        place = bisect_right(times, when)
        return ticks[place - 1] if place else None


def made_up(
    seen: Iterable[tuple[float, ArmSnapshot]], logs: Logs, profile: ArmProfile, counts: Counter[str]
) -> list[str]:
    """Return which positions were not measured in the cycle that published them.

    seen: snapshots, and when they were published. A servo that answers with the id of a silent one cannot be
    told from it by anything in the protocol: such positions are counted.
    """
    ids = dict(zip(profile.names, profile.ids, strict=True))
    wrong = []
    for published, snapshot in seen:
        for name, joint in snapshot.joints.items():
            key = ids[name], joint.tick
            if among(logs.at[key], snapshot.time, published):
                counts['positions published'] += 1
            elif among(logs.posed[key], snapshot.time - LATEST, published):  # late, too
                counts['positions of a servo that answered with the id of a silent one'] += 1
            else:
                aside = min((when - snapshot.time for when in logs.at[key]), key=abs, default=math.inf)
                wrong.append(
                    f'{name} was published at {joint.tick} ({snapshot.state.value}), nearest measured '
                    f'{aside:.3f} s from the begin of its cycle, which took {published - snapshot.time:.3f} s'
                )
    return wrong


def among(times: Sequence[float], begin: float, end: float) -> bool:
    """Whether one of these times, in their order, is from begin to end."""
    place = bisect_left(times, begin)
    return place < len(times) and times[place] <= end


def beyond_or_leaping(
    joints: Sequence[JointCalibration], logs: Logs, published: Sequence[float], counts: Counter[str]
) -> list[str]:
    """Return which goals were beyond the range of their joint, or leapt.

    published: times of the snapshots. Where they show that the computer was too busy, the times of the log
    are not those of the driver, and leaps are only counted. So are goals of a servo without torque, which
    moves nothing, and of one for which another has just answered: nothing in the protocol tells that.
    """
    wrong = []
    last: dict[int, tuple[float, int | None]] = {}
    by_id = {joint.profile.id: joint for joint in joints}
    for when, id, goal in logs.goals:
        if id not in by_id:
            continue  # a shadow: it has the goals of another servo
        if logs.mistaken(id, when):
            counts['goals of a servo for which another one answered'] += 1
            last[id] = when, goal
            continue
        if not logs.always_had_torque(id, when, when):
            counts['goals of a servo without torque'] += 1
            last[id] = when, goal
            continue
        joint = by_id[id]
        low, high = sorted((joint.tick(joint.lower), joint.tick(joint.upper)))
        measured = logs.measured(id, when)
        if measured is not None:  # one that stands outside may be held there
            seen = measured, *logs.between(id, when - CYCLE, when)
            low, high = min(low, *seen), max(high, *seen)
        begin, before = last.get(id, (-math.inf, None))
        if goal != before and not low - 1 <= goal <= high + 1:  # that goal stays when a load pulls inwards
            wrong.append(f'servo {id} was sent to {goal}, beyond {low} to {high}')
        before = goal if before is None else before
        passed, way = when - begin, abs(goal - before)
        most = joint.profile.fastest / joint.profile.unit * max(passed, TOGETHER) * BRAKING
        nearer = measured is None or abs(goal - measured) <= abs(before - measured)  # it brakes
        if way > most and passed < 0.3 and not nearer:
            if is_busy(published, when):
                counts['leaps while the computer was too busy'] += 1
            else:
                wrong.append(
                    f'the goal of servo {id}, which was at {measured}, leapt from {before} to {goal} in {passed:.3f} s'
                )
        last[id] = when, goal
    return wrong


def is_busy(published: Sequence[float], when: float) -> bool:
    """Whether cycles around a time took so long that the computer must have been too busy."""
    around = published[bisect_left(published, when - BUSY_WINDOW) : bisect_right(published, when + BUSY_WINDOW)]
    return any(after - before > BUSY for before, after in itertools.pairwise(around))


def moved_while_held(
    held: Iterable[tuple[float, float]], logs: Logs, settled: float, ids: Collection[int]
) -> list[str]:
    """Return which goals changed while the arm was held, from settled [s] after that on.

    ids: of the servos that are measured; a second one on a joint has the goals of the first. Servos that had
    no torque, or lost it meanwhile, are held where they then are, and so are joints that gave way, or for
    which another servo answered.
    """
    wrong, times = [], [when for when, _, _ in logs.goals]
    for begin, end in held:
        goals = defaultdict(list)
        for when, id, goal in logs.goals[bisect_left(times, begin + settled) : bisect_left(times, end)]:
            if id in ids and logs.always_had_torque(id, begin, when):
                goals[id].append(goal)
        for id, values in goals.items():
            measured = logs.between(id, begin, end)
            gave_way = max((abs(tick - values[0]) for tick in measured), default=0) > AWAY
            gave_way |= any(logs.posed[id, tick] for tick in values)
            if max(values) - min(values) > AWAY and not gave_way:
                wrong.append(f'servo {id} was sent from {min(values)} to {max(values)} while held')
    return wrong
