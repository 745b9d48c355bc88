# SPDX-License-Identifier: Apache-2.0
"""Random faults against an arm of emulated servos, and a judge: python -m servo_campaign streams --runs 1000

activations: torque is switched on, from any place, with stale goals, with faults in every step.
streams: commands stream while faults come and go, the adapter is unplugged, the power dips.
kills: the driver is killed while it streams.
Run it in test/servos. It prints each violation with the seed of its run, and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict

from rig import Rig

from ik_node.errors import IkError
from ik_node.servos.arm.commands import Commands
from ik_node.servos.arm.cycle import ArmCycle, ArmOptions
from ik_node.servos.arm.goals import LEAD, LEAD_TIME
from ik_node.servos.arm.snapshot import ArmState, Counts
from ik_node.servos.arm.survey import memories, survey
from ik_node.servos.bus.serial_port import SerialTransport
from ik_node.servos.calibration.profile import PROTOCOLS, JointProfile, read_profile
from ik_node.servos.calibration.zeros import calibrate
from ik_node.sim.bus import EmulatedBus

DEGREE = 4096 / 360  # ticks
KINDS = (
    'missing',
    'late',
    'corrupt',
    'short',
    'split',
    'junk',
    'status',
    'lost',
    'foreign',
    'echo',
    'silence',
)
PROFILE = read_profile('so101')
STREAM = 5.0  # [s] of a run
HELD = 0.5  # [s] after which the arm stands when commands end


def random_faults(random_: random.Random, share: float) -> list[dict[str, object]]:
    """Return a few faults, each of which hits up to a share of the packets."""
    return [
        {
            'kind': random_.choice(KINDS),
            'id': random_.choice([None, *PROFILE.ids]),
            'share': random_.uniform(0.0, share),
            'delay': random_.choice([0.002, 0.01, 0.03, 0.1]),
            'bits': random_.choice([0x01, 0x04, 0x20]),
        }
        for _ in range(random_.randint(0, 3))
    ]


def random_place(chance: random.Random, joint: JointProfile) -> float:
    """Return where a joint stands [ticks]: within its range, seldom beyond it or at the step of its servo."""
    low, high = (2048 + stop / joint.unit for stop in joint.stops or (-2.5, 2.5))
    if chance.random() < 0.03:
        beyond = chance.uniform(0.0, 60.0)
        if joint.stops is None:
            return chance.choice([beyond, 4095.0 - beyond])
        return chance.choice([low - beyond, high + beyond])
    return chance.uniform(low, high)


def activation(bus: EmulatedBus, seed: int) -> tuple[list[str], bool]:
    """Switch the torque on once; return what was wrong, and whether it is on."""
    chance = random.Random(seed)
    bus.faults()
    bus.call('power', on=False)
    bus.call('power', on=True)
    bus.call('plug', on=True)
    for joint in PROFILE.joints:
        bus.call('motor', id=joint.id, actual=random_place(chance, joint), velocity=0.0)
        for address, size, values in (
            (41, 1, (0, 50, 254)),  # acceleration
            (42, 2, range(4096)),  # goal
            (44, 2, (0, 3000)),  # time
            (46, 2, (0, 1000)),  # speed
            (48, 2, (0, 500, 1000)),  # torque limit
        ):
            bus.call('put', id=joint.id, address=address, size=size, value=chance.choice(values))
    before, since = bus.state(), time.monotonic()
    bus.faults(*random_faults(chance, 0.5))
    unplug = threading.Timer(chance.uniform(0.0, 0.4), lambda: bus.call('plug', on=False))
    failed, transport = '', None
    try:
        transport = SerialTransport(bus.port, PROFILE.baud, PROTOCOLS[PROFILE.protocol], 0.01)
        if chance.random() < 0.1:
            unplug.start()
        servos = survey(transport, PROFILE)
        calibration = calibrate(PROFILE, memories(servos))
        cycle = ArmCycle(transport, servos, calibration, ArmOptions(), Commands(PROFILE.names), Counts())
        if chance.random() < 0.2:
            bus.call('power', id=chance.choice(PROFILE.ids), on=False)
        cycle.switch_on()
        for _ in range(5):
            cycle.step()
            time.sleep(0.005)
    except IkError as error:
        failed = str(error)
    finally:
        unplug.cancel()
        if transport is not None:
            transport.close()
    bus.faults()
    time.sleep(0.05)
    wrong, after = [], bus.state()
    for id, state in after.items():
        moved = abs(state['actual'] - before[id]['actual']) / DEGREE
        if moved > 1.0:
            wrong.append(f'servo {id} moved by {moved:.2f} degrees')
        told = f'servo {id} ({PROFILE.names[PROFILE.ids.index(id)]})' in failed.partition(';')[2]
        if failed and bus.port not in failed and not told and state['torque'] and not before[id]['torque']:
            wrong.append(f'servo {id} has torque after: {failed}')
    for _, id, goal in bus.log('goals', since):
        if abs(goal - before[id]['actual']) > DEGREE:
            wrong.append(f'servo {id} was sent to {goal}, it is at {before[id]["actual"]:.0f}')
    if failed and not any(word in failed for word in ('servo', 'joint', bus.port)):
        wrong.append(f'no servo is named: {failed}')
    return wrong, not failed


def wave(phase: float, steps: bool) -> float:
    """Return a value from -1 to 1 that changes smoothly, or in steps."""
    return math.copysign(1.0, math.sin(phase)) if steps else math.sin(phase)


def too_far_ahead(bus: EmulatedBus) -> list[str]:
    """Return which servos would go on further than a joint needs that moves, if nobody commanded them."""
    most = {joint.id: 1.1 * (LEAD + LEAD_TIME * joint.fastest) / joint.unit for joint in PROFILE.joints}
    return [
        f'servo {id} is to go on by {abs(state["goal"] - state["present"])} ticks'
        for id, state in bus.state().items()
        if state['torque'] and abs(state['goal'] - state['present']) > most[id]
    ]


class Stream:
    """One run of streamed commands."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._wrong: list[str] = []
        self._held: list[tuple[float, float]] = []  # from when to when commands were refused
        self._steps = self._chance.random() < 0.4
        self._paths = {
            name: (self._chance.uniform(0.1, 0.8), self._chance.uniform(0.3, 1.5)) for name in PROFILE.names
        }

    def run(self) -> list[str]:
        """Return what was wrong."""
        with EmulatedBus('so101', self._chance.randint(0, 10**6)) as bus:
            rig = Rig(bus, 'so101', None)
            rig.arm.start()
            try:
                rig.until(ArmState.PASSIVE)
                rig.arm.set_torque(True)
                begun = time.monotonic()
                self._stream(rig, bus, begun)
                bus.faults()
                bus.call('power', on=True)
                bus.call('plug', on=True)
                self._judge_end(rig, bus)
                self._judge(rig, bus, begun)
            finally:
                rig.arm.stop()
        return self._wrong

    def _stream(self, rig: Rig, bus: EmulatedBus, begun: float) -> None:
        change, again = 0.5, math.inf
        while (now := time.monotonic() - begun) < STREAM:
            with contextlib.suppress(IkError):
                rig.arm.command(
                    {name: size * wave(rate * now, self._steps) for name, (size, rate) in self._paths.items()}
                )
            if now > again:
                bus.call('plug', on=True)
                bus.call('power', on=True)
                again = math.inf
            elif now > change:
                change = now + self._chance.uniform(0.2, 1.0)
                event = self._chance.random()
                if event < 0.08:
                    bus.call('plug', on=False)
                    again = now + self._chance.uniform(0.01, 1.0)
                elif event < 0.16:
                    bus.call('power', on=False, id=self._chance.choice([None, *PROFILE.ids]))
                    again = now + self._chance.uniform(0.01, 0.6)
                elif event < 0.25:
                    self._clear(rig)
                elif event < 0.33:
                    held = time.monotonic()
                    with contextlib.suppress(IkError):
                        rig.arm.hold()
                    if rig.arm.snapshot.latched:
                        self._held.append((held, math.inf))
                else:
                    bus.faults(*random_faults(self._chance, 0.3))
            if not self._chance.randrange(5):
                self._wrong += too_far_ahead(bus)
            time.sleep(0.01)

    def _clear(self, rig: Rig) -> None:
        before = time.monotonic()
        with contextlib.suppress(IkError):
            rig.arm.clear()
        if not rig.arm.snapshot.latched:
            self._held = [(begin, min(before, end)) for begin, end in self._held]

    def _judge_end(self, rig: Rig, bus: EmulatedBus) -> None:
        """Commands have ended, and the bus is sound again."""
        time.sleep(0.4 + HELD)
        first = bus.state()
        time.sleep(0.2)
        for id, state in bus.state().items():
            if abs(state['actual'] - first[id]['actual']) > DEGREE:
                self._wrong.append(f'servo {id} still moves {HELD} s after the commands ended')
        try:
            snapshot = rig.until(ArmState.HOLDING, ArmState.PASSIVE, ArmState.FAULTED, seconds=8.0)
        except AssertionError as error:
            self._wrong.append(f'no recovery: {error}')
            return
        if snapshot.state is ArmState.FAULTED and not snapshot.reason:
            self._wrong.append('a fault without a reason')

    def _judge(self, rig: Rig, bus: EmulatedBus, begun: float) -> None:
        seen = list(rig.seen)  # before the log: the arm goes on
        answered = defaultdict(list)
        for when, id, tick in bus.log('answered'):
            answered[id].append((when, tick))
        ids = dict(zip(PROFILE.names, PROFILE.ids, strict=True))
        for snapshot in seen:
            for name, joint in snapshot.joints.items():
                aside = min(
                    (
                        max(snapshot.time - when, when - snapshot.time - 0.2, 0.0)
                        for when, tick in answered[ids[name]]
                        if tick == joint.tick
                    ),
                    default=math.inf,
                )
                if aside:
                    others = [
                        id
                        for id, answers in answered.items()
                        if any(
                            tick == joint.tick and 0.0 <= snapshot.time - when < 0.2 for when, tick in answers
                        )
                    ]
                    self._wrong.append(
                        f'{name} was published at {joint.tick}, measured {aside:.3f} s too early or late'
                        + f', then by servos {others}' * bool(others)
                    )
        last: dict[int, tuple[float, int]] = {}
        by_id = {joint.profile.id: joint for joint in rig.arm.calibration.joints}
        for when, id, goal in bus.log('goals', begun):
            joint = by_id[id]
            low, high = sorted((joint.tick(joint.lower), joint.tick(joint.upper)))
            if not low - 1 <= goal <= high + 1:
                self._wrong.append(f'servo {id} was sent to {goal}, beyond {low} to {high}')
            if id in last:
                passed, way = when - last[id][0], abs(goal - last[id][1])
                most = joint.profile.fastest / joint.profile.unit * max(passed, 0.05) * 1.5
                if way > most and passed < 0.3 and not _nearer(answered[id], when, goal, last[id][1]):
                    self._wrong.append(f'the goal of servo {id} leapt by {way} ticks in {passed:.3f} s')
            last[id] = when, goal
        for begin, end in self._held:
            goals = defaultdict(list)
            for when, id, goal in bus.log('goals', begin + HELD):
                if when < end:
                    goals[id].append(goal)
            for id, values in goals.items():
                if max(values) - min(values) > 3 * DEGREE:
                    self._wrong.append(f'servo {id} was sent from {min(values)} to {max(values)} while held')
        self._wrong = list(dict.fromkeys(self._wrong))


def _nearer(answered: list[tuple[float, int]], when: float, goal: int, before: int) -> bool:
    """Whether a goal is nearer to where the joint was measured than the one before: it brakes."""
    measured = next((tick for time_, tick in reversed(answered) if time_ <= when), goal)
    return abs(goal - measured) <= abs(before - measured)


def stream(seed: int) -> list[str]:
    """Do one run of streamed commands; return what was wrong."""
    return Stream(seed).run()


def kill(seed: int) -> list[str]:
    """Kill a driver that moves the arm; return what was wrong."""
    chance = random.Random(seed)
    with EmulatedBus('so101') as bus:
        driver = subprocess.Popen([sys.executable, __file__, 'drive', bus.port], stdout=subprocess.PIPE)
        assert driver.stdout is not None
        driver.stdout.readline()
        time.sleep(chance.uniform(0.1, 3.0))
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        wrong = too_far_ahead(bus)
        time.sleep(HELD)
        first = bus.state()
        time.sleep(0.2)
        second = bus.state()
        wrong += [
            f'servo {id} still moves'
            for id in first
            if abs(first[id]['actual'] - second[id]['actual']) > DEGREE
        ]
        return wrong + [f'servo {id} has no torque' for id in second if not second[id]['torque']]


def drive(port: str) -> None:
    """Move the arm at that port back and forth, as fast as it is, until killed."""
    rig = Rig(type('Bus', (), {'port': port}), 'so101', None)
    rig.arm.start()
    rig.until(ArmState.PASSIVE)
    rig.arm.set_torque(True)
    print('driving', flush=True)
    while True:
        rig.arm.command(dict.fromkeys(PROFILE.names[:5], 1.2 * wave(2.0 * time.monotonic(), steps=True)))
        time.sleep(0.01)


def main() -> int:
    """Run a campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('what', choices=('activations', 'streams', 'kills', 'drive'))
    parser.add_argument('port', nargs='?')
    parser.add_argument('--runs', type=int, default=100)
    parser.add_argument('--seed', type=int, default=0, help='of the first run')
    given = parser.parse_args()
    if given.what == 'drive':
        drive(given.port)
    bad = on = 0
    with contextlib.ExitStack() as stack:
        if given.what == 'activations':
            bus = stack.enter_context(EmulatedBus('so101'))
        for seed in range(given.seed, given.seed + given.runs):
            if given.what == 'activations':
                wrong, well = activation(bus, seed)
                on += well
            else:
                wrong = stream(seed) if given.what == 'streams' else kill(seed)
            bad += bool(wrong)
            for line in wrong[:5]:
                print(f'{given.what} {seed}: {line}', flush=True)
            if (seed + 1) % 100 == 0:
                print(f'{seed + 1} runs, {bad} with violations', flush=True)
    print(f'{given.runs} runs, {bad} with violations' + (f', {on} with torque' if on else ''))
    return bool(bad)


if __name__ == '__main__':
    sys.exit(main())
