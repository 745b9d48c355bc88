# SPDX-License-Identifier: Apache-2.0
"""Commands stream while faults come and go, the adapter is unplugged, the power dips.

Judged are the snapshots of ServoArm; ik_servos publishes each of them as one message, as test_servos_node.py
shows.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rig import Rig
from virtual_time import VirtualBus, virtual_time

from campaigns.servos.chance import DEGREE, random_faults
from campaigns.servos.judges import Logs, beyond_or_leaping, is_busy, made_up, moved_while_held
from campaigns.servos.outcome import Outcome
from campaigns.servos.remedies import not_said
from ik_node.errors import IkError
from ik_node.servos.arm.goals import LEAD, LEAD_TIME, YIELD_TIME
from ik_node.servos.arm.states import POWERED, ArmState
from ik_node.servos.calibration.profile import ArmProfile, JointProfile, read_profile

HELD = 0.5  # [s] after the last command at which the arm stands
RECOVERY = 8.0  # [s] for the driver to find the servos once the bus is sound
WEAK = 3.0  # [s] after the torque came, in which a joint may give way
CALM = 5.0  # [s] at the end, in which nothing happens any more
PATIENCE = 1.0  # [s] without a command that is taken, until the owner helps
SETTLED = 0.5  # [s] in which it looks at the torque of each servo


def streams(profile: str, seeds: Iterable[int], seconds: float) -> Outcome:
    """Do one run of streamed commands for that long [s] per seed."""
    found, arm = Outcome(), read_profile(profile)
    for seed in seeds:
        run = Stream(arm, seed, seconds)
        try:
            run.run()
        except Exception as error:  # the other runs go on
            run.wrong.append(f'the run broke off: {error!r}')
        found.runs += 1
        found.counts += run.counts
        found.met(run.hits, arm)
        if run.wrong:
            found.wrong[seed] = list(dict.fromkeys(run.wrong))
    return found


def wave(phase: float, steps: bool) -> float:
    """Return a value from -1 to 1 that changes smoothly, or in steps."""
    return math.copysign(1.0, math.sin(phase)) if steps else math.sin(phase)


def too_far_ahead(
    bus: VirtualBus, profile: ArmProfile, states: Mapping[int, Any] | None = None, time: float = 0.0
) -> list[str]:
    """Return which servos would go on further than a joint needs that moves, if nobody commanded them.

    time [s]: for which a joint that falls may be ahead of its goal.
    """
    most = {joint.id: 1.1 * (LEAD + (LEAD_TIME + time) * joint.fastest) / joint.unit for joint in profile.joints}
    return [
        f'servo {id} is to go on by {abs(state["goal"] - state["present"])} ticks'
        for id, state in (bus.state() if states is None else states).items()
        if id in most and state['torque'] and abs(state['goal'] - state['present']) > most[id]
    ]


def _motors(bus: VirtualBus, joint: JointProfile, **values: Any) -> None:
    """Set attributes of all motors of a joint."""
    for id in (joint.id, *joint.shadows):
        bus.call('motor', id=id, **values)


class Stream:
    """One run. wrong: what was wrong. counts: what has happened. hits: packets that faults have hit."""

    def __init__(self, profile: ArmProfile, seed: int, seconds: float) -> None:
        self._profile, self._seconds, self._chance = profile, seconds, random.Random(seed)
        self.wrong: list[str] = []
        self.counts: Counter[str] = Counter()
        self.hits: list[list[Any]] = []
        self._held: list[tuple[float, float]] = []  # from when to when commands were rejected
        self._last = 0.0  # [s] when the last command was taken
        self._helped = 0.0  # [s] when its owner last looked after it
        self._steps = self._chance.random() < 0.4
        self._paths = {
            joint.name: (
                self._chance.uniform(0.1, 0.8) * (0.02 if joint.unit < 1e-4 else 1.0),  # slides: metres
                self._chance.uniform(0.3, 1.5),
            )
            for joint in profile.joints
        }

    def run(self) -> None:
        """Stream, and judge."""
        with virtual_time() as clock:
            bus = VirtualBus(clock, self._profile.name, self._chance.randint(0, 10**6))
            bus.busy = self._chance.choice([0.0, 0.0, 0.001, 0.01])
            rig = Rig(bus, self._profile.name, None)
            rig.arm.start()
            try:
                rig.until(ArmState.PASSIVE)
                rig.switch_on()
                self._weigh(bus)
                begun = bus.clock.now
                self._stream(rig, bus, begun)
                bus.faults()
                bus.call('power', on=True)
                bus.call('plug', on=True)
                self._judge_end(rig, bus)
                self._judge(rig, bus, begun)
                self.hits = bus.call('hits')
            finally:
                rig.arm.stop()

    def _stream(self, rig: Rig, bus: VirtualBus, begun: float) -> None:
        change, again = 0.5, math.inf
        while (now := bus.clock.now - begun) < self._seconds:
            with contextlib.suppress(IkError):
                rig.arm.command(
                    {name: size * wave(rate * now, self._steps) for name, (size, rate) in self._paths.items()}
                )
                self._last = bus.clock.now
                self.counts['commands taken'] += 1
            if now > again or (now > self._seconds - CALM and change < math.inf):
                bus.call('plug', on=True)
                bus.call('power', on=True)
                again = math.inf
                if now > self._seconds - CALM:
                    change = math.inf
                    bus.faults()
            elif now > change:
                change = now + self._chance.uniform(0.2, 1.5)
                again = self._event(rig, bus, now)
            elif bus.clock.now - max(self._last, self._helped) > PATIENCE and again == math.inf:
                self._help(rig, bus)
            if not self._chance.randrange(5) and rig.arm.snapshot.state in POWERED:
                self.wrong += too_far_ahead(bus, self._profile, time=YIELD_TIME)
            bus.clock.sleep(0.01)

    def _event(self, rig: Rig, bus: VirtualBus, now: float) -> float:
        """Let something happen; return when it is to end [s]."""
        event = self._chance.random()
        if event < 0.08:
            self.counts['unplugged'] += 1
            self._soon(bus, 'plug', on=False)
            return now + self._chance.uniform(0.02, 1.0)
        if event < 0.16:
            self.counts['power cut'] += 1
            self._soon(bus, 'power', on=False, id=self._chance.choice([None, *self._profile.ids]))
            return now + self._chance.uniform(0.02, 0.6)
        if event < 0.25:
            self.counts['clear'] += 1
            self._clear(rig)
        elif event < 0.33:
            self.counts['hold'] += 1
            held = bus.clock.now
            with contextlib.suppress(IkError):
                rig.arm.hold()
            if rig.arm.snapshot.latched:
                self._held.append((held, math.inf))
        elif event < 0.5:
            self.counts['torque on'] += 1
            with contextlib.suppress(IkError):
                rig.arm.set_torque(True)
            if not rig.arm.snapshot.latched:
                self._end_hold(bus.clock.now)
        elif event < 0.6:
            self.counts['blocked, or free again'] += 1
            self._load(bus)
        else:
            bus.faults(*random_faults(self._chance, self._profile, 0.3))
        return math.inf

    def _load(self, bus: VirtualBus) -> None:
        """Block a joint where it is, free all others, and change what some carry."""
        for joint in self._profile.joints:
            _motors(bus, joint, blocked=None)
        joint = self._chance.choice(self._profile.joints)
        place = bus.state()[joint.id]['actual']
        _motors(bus, joint, blocked=[place - 60.0, place + 60.0])
        self._weigh(bus)

    def _weigh(self, bus: VirtualBus) -> None:
        for joint in self._profile.joints[1:3]:
            _motors(bus, joint, weight=self._chance.uniform(-0.7, 0.7))

    def _help(self, rig: Rig, bus: VirtualBus) -> None:
        """Do what an owner does whose arm takes no commands: mend the bus, then switch on or clear."""
        self.counts['helped by its owner'] += 1
        self._helped = bus.clock.now
        bus.faults()
        if rig.arm.snapshot.state is ArmState.PASSIVE:
            with contextlib.suppress(IkError):
                rig.arm.set_torque(True)
        else:
            self._clear(rig)
        if not rig.arm.snapshot.latched:
            self._end_hold(bus.clock.now)

    def _soon(self, bus: VirtualBus, do: str, **arguments: Any) -> None:
        """Call a method of the bus at any moment of a cycle."""
        bus.clock.at(bus.clock.now + self._chance.uniform(0.0, 0.01), lambda: bus.call(do, **arguments))

    def _clear(self, rig: Rig) -> None:
        before = rig.clock.now
        with contextlib.suppress(IkError):
            rig.arm.clear()
        if not rig.arm.snapshot.latched:
            self._end_hold(before)

    def _end_hold(self, time: float) -> None:
        self._held = [(begin, min(time, end)) for begin, end in self._held]

    def _judge_end(self, rig: Rig, bus: VirtualBus) -> None:
        """Commands have ended, and the bus is sound again."""
        ended = bus.clock.now
        bus.clock.sleep(max(self._last + HELD - ended, 0.0))
        first = bus.state()
        bus.clock.sleep(0.2)
        moved = [
            f'servo {id} still moves {HELD} s after the last command'
            for id, state in bus.state().items()
            if abs(state['actual'] - first[id]['actual']) > DEGREE
        ]
        if bus.log('torques', self._last - WEAK) or self._last < ended - HELD:
            self.counts['end not judged: the arm had no torque, or was weak, before it'] += 1
        elif is_busy(rig.published, self._last + HELD):
            self.counts['end not judged: the computer was too busy'] += 1
        else:
            self.counts['end judged'] += 1
            self.wrong += moved
        try:
            rig.until(ArmState.HOLDING, ArmState.PASSIVE, ArmState.FAULTED, seconds=RECOVERY)
        except AssertionError as error:
            self.wrong.append(f'no recovery: {error}')
            return
        bus.clock.sleep(SETTLED)
        self._judge_state(rig, bus)

    def _judge_state(self, rig: Rig, bus: VirtualBus) -> None:
        """The state of the driver is that of the servos, and a fault can be mended as its reason says."""
        snapshot = rig.arm.snapshot
        self.counts[f'ended {snapshot.state.value}'] += 1
        torques = [bus.state()[id]['torque'] for id in self._profile.ids]
        if snapshot.state is ArmState.HOLDING and not all(torques):
            self.wrong.append(f'holding, while the torque is on in {sum(torques)} servos only')
        elif snapshot.state is ArmState.PASSIVE and any(torques) and not snapshot.reason:
            self.wrong.append(f'passive, while the torque is on in {sum(torques)} servos')
        elif snapshot.state is ArmState.FAULTED:
            lost = 'has lost its torque', 'have lost their torque'
            if all(torques) or not any(words in snapshot.reason for words in lost):
                self.wrong.append(f'a fault of a sound arm: {snapshot.reason}')
            self.wrong += not_said(snapshot.reason, bus.port)
            try:
                rig.arm.clear()
                self.counts['fault cleared at the end'] += 1
            except IkError as error:
                self.counts['fault not cleared at the end'] += 1
                self.wrong += not_said(str(error), bus.port)
        elif snapshot.state not in (ArmState.HOLDING, ArmState.PASSIVE):
            self.wrong.append(f'{snapshot.state.value} on a sound bus: {snapshot.reason}')

    def _judge(self, rig: Rig, bus: VirtualBus, begun: float) -> None:
        seen = list(zip(rig.published, rig.seen, strict=False))  # before the log: the arm goes on
        logs = Logs(bus, begun)
        self.counts['goals sent'] += len(logs.goals)
        self.wrong += made_up(seen, logs, self._profile, self.counts)
        self.wrong += beyond_or_leaping(rig.arm.calibration.joints, logs, rig.published, self.counts)
        self.wrong += moved_while_held(self._held, logs, HELD, self._profile.ids)
