# SPDX-License-Identifier: Apache-2.0
"""Random faults against an arm of emulated servos, and a judge: python -m campaign activations --runs 10000

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
import time
from collections import defaultdict

from rig import Rig

from ik_node.errors import IkError
from ik_node.servos.arm.commands import Commands
from ik_node.servos.arm.cycle import ArmCycle, ArmOptions
from ik_node.servos.arm.snapshot import ArmState, Counts
from ik_node.servos.arm.survey import memories, survey
from ik_node.servos.bus.serial_port import SerialTransport
from ik_node.servos.calibration.profile import PROTOCOLS, read_profile
from ik_node.servos.calibration.zeros import calibrate
from ik_node.sim.bus import EmulatedBus

DEGREE = 4096 / 360  # ticks
KINDS = ('missing', 'late', 'corrupt', 'short', 'split', 'junk', 'status', 'lost')
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


def activation(bus: EmulatedBus, seed: int) -> tuple[list[str], bool]:
    """Switch the torque on once; return what was wrong, and whether it is on."""
    chance = random.Random(seed)
    bus.faults()
    bus.call('power', on=False)
    bus.call('power', on=True)
    for joint in PROFILE.joints:
        low, high = joint.stops or (-2.5, 2.5)
        place = 2048 + chance.uniform(low, high) / joint.unit
        bus.call('motor', id=joint.id, actual=place, velocity=0.0)
        bus.call('put', id=joint.id, address=42, size=2, value=chance.randint(0, 4095))
        bus.call('put', id=joint.id, address=46, size=2, value=chance.choice([0, 1000]))
    before, since = bus.state(), time.monotonic()
    bus.faults(*random_faults(chance, 0.5))
    transport = SerialTransport(bus.port, PROFILE.baud, PROTOCOLS[PROFILE.protocol], 0.01)
    failed = ''
    try:
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
        transport.close()
    bus.faults()
    time.sleep(0.05)
    wrong, after = [], bus.state()
    for id, state in after.items():
        moved = abs(state['actual'] - before[id]['actual']) / DEGREE
        if moved > 1.0:
            wrong.append(f'servo {id} moved by {moved:.2f} degrees')
        if failed and 'torque' not in failed and state['torque'] and before[id]['torque'] is False:
            wrong.append(f'servo {id} has torque after: {failed}')
    for _, id, goal in bus.log('goals', since):
        if abs(goal - before[id]['actual']) > DEGREE:
            wrong.append(f'servo {id} was sent to {goal}, it is at {before[id]["actual"]:.0f}')
    if failed and not ('servo' in failed or 'joint' in failed):
        wrong.append(f'no servo is named: {failed}')
    return wrong, not failed


class Stream:
    """One run of streamed commands."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._wrong: list[str] = []
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
                    {name: size * math.sin(rate * now) for name, (size, rate) in self._paths.items()}
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
                    with contextlib.suppress(IkError):
                        rig.arm.clear()
                else:
                    bus.faults(*random_faults(self._chance, 0.3))
            time.sleep(0.01)

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
                if not any(
                    tick == joint.tick and snapshot.time - 0.1 < when <= snapshot.time + 0.2
                    for when, tick in reversed(answered[ids[name]])
                    if when > snapshot.time - 0.1
                ):
                    self._wrong.append(f'{name} was published at {joint.tick}, which was not measured')
        last: dict[int, tuple[float, int]] = {}
        by_id = {joint.profile.id: joint for joint in rig.arm.calibration.joints}
        for when, id, goal in bus.log('goals', begun):
            joint = by_id[id]
            low, high = sorted((joint.tick(joint.lower), joint.tick(joint.upper)))
            if not low - 1 <= goal <= high + 1:
                self._wrong.append(f'servo {id} was sent to {goal}, beyond {low} to {high}')
            if id in last:
                passed, way = when - last[id][0], abs(goal - last[id][1])
                most = joint.profile.fastest / joint.profile.unit * max(passed, 0.01) * 1.5 + 6 * DEGREE
                if way > most and passed < 0.3 and not _nearer(answered[id], when, goal, last[id][1]):
                    self._wrong.append(f'the goal of servo {id} leapt by {way} ticks in {passed:.3f} s')
            last[id] = when, goal
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
        time.sleep(chance.uniform(0.1, 1.5))
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        time.sleep(HELD)
        first = bus.state()
        time.sleep(0.2)
        second = bus.state()
        return [
            f'servo {id} still moves'
            for id in first
            if abs(first[id]['actual'] - second[id]['actual']) > DEGREE
        ] + [f'servo {id} has no torque' for id in second if not second[id]['torque']]


def drive(port: str) -> None:
    """Move the arm at that port back and forth, until killed."""
    rig = Rig(type('Bus', (), {'port': port}), 'so101', None)
    rig.arm.start()
    rig.until(ArmState.PASSIVE)
    rig.arm.set_torque(True)
    print('driving', flush=True)
    while True:
        rig.arm.command(dict.fromkeys(PROFILE.names[:5], 1.2 * math.sin(2.0 * time.monotonic())))
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
