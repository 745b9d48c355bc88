# SPDX-License-Identifier: Apache-2.0
"""Torque is switched on, from any place, with stale goals, with faults in every step."""

from __future__ import annotations

import random
from collections.abc import Iterable

from virtual_time import VirtualBus, virtual_time

from campaigns.servos.chance import DEGREE, random_faults, scatter
from campaigns.servos.outcome import Outcome
from campaigns.servos.remedies import not_said
from ik_node.servos.arm.arm import ServoArm
from ik_node.servos.arm.states import POWERED
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.calibration.profile import PROTOCOLS, ArmProfile, read_profile
from ik_node.servos.calibration.zeros import calibrate


def activations(profile: str, seeds: Iterable[int], seconds: float = 0.0) -> Outcome:
    """Switch the torque on once per seed; seconds is for runs of other kinds."""
    del seconds
    found, arm = Outcome(), read_profile(profile)
    for seed in seeds:
        with virtual_time() as clock:
            bus = VirtualBus(clock, profile, seed)
            run = Activation(bus, arm, seed)
            run.run()
            found.runs += 1
            found.counts[run.ended] += 1
            found.counts.update(run.events)
            found.met(bus.call('hits'), arm)
            if run.wrong:
                found.wrong[seed] = run.wrong
    return found


class Activation:
    """One run. wrong: what was wrong. ended: how. events: what was done to the arm besides faults."""

    def __init__(self, bus: VirtualBus, profile: ArmProfile, seed: int) -> None:
        self._bus, self._profile, self._chance = bus, profile, random.Random(seed)
        self.wrong: list[str] = []
        self.ended = ''
        self._over = False
        self.events: list[str] = []

    def run(self) -> None:
        """Switch the torque on once, and judge."""
        bus, chance = self._bus, self._chance
        bus.faults()
        bus.call('power', on=False)
        bus.call('power', on=True)
        scatter(bus, chance, self._profile)
        before, since = bus.state(), bus.clock.now
        bus.faults(*random_faults(chance, self._profile, 0.5))
        self._accident()
        failed = self._activated()
        self._over = True
        bus.faults()
        bus.clock.sleep(0.05)
        self._judge(before, since, failed)

    def _activated(self) -> str:
        """Return why the torque could not be switched on, or why the arm stops; empty if neither."""
        profile = self._profile
        self.ended = 'torque stays off'
        arm = ServoArm(
            lambda: SerialTransport(self._bus.port, profile.baud, PROTOCOLS[profile.protocol], 0.01),
            profile,
            lambda memory: calibrate(profile, memory),
        )
        switched = arm.request_torque(True)
        arm.step()
        error = switched.exception(0.0)
        if error is None:
            self.ended = 'torque on'
            for _ in range(5):
                arm.step()
                self._bus.clock.sleep(0.005)
            if arm.snapshot.state not in POWERED:
                self.ended = 'torque on, then a fault'
                self.wrong += not_said(arm.snapshot.reason, self._bus.port)
        if arm._transport is not None:
            arm._transport.close()
        return '' if error is None else str(error)

    def _accident(self) -> None:
        """Seldom unplug the adapter meanwhile, cut the power of a servo, or let it dip."""
        bus, id, what = self._bus, self._chance.choice(self._profile.ids), self._chance.random()

        def strike() -> None:
            if self._over:
                return
            self.events.append('unplugged' if what < 0.1 else 'power cut' if what < 0.2 else 'power dips')
            if what < 0.1:
                bus.call('plug', on=False)
            else:
                bus.call('power', id=id, on=False)
                if what > 0.2:
                    bus.call('power', id=id, on=True)

        if what < 0.3:
            bus.clock.at(bus.clock.now + self._chance.uniform(0.0, 0.4), strike)

    def _judge(self, before: dict, since: float, failed: str) -> None:
        told = failed.partition(';')[2]
        for id, state in self._bus.state().items():
            moved = abs(state['actual'] - before[id]['actual']) / DEGREE
            if moved > 1.0:
                self.wrong.append(f'servo {id} moved by {moved:.2f} degrees')
            name = next(joint.name for joint in self._profile.joints if id in (joint.id, *joint.shadows))
            unsaid = failed and self._bus.port not in failed and f'({name})' not in told
            if unsaid and state['torque'] and not before[id]['torque']:
                self.wrong.append(f'servo {id} has torque after: {failed}')
        for _, id, goal in self._bus.log('goals', since):
            if abs(goal - before[id]['present']) > DEGREE:
                self.wrong.append(f'servo {id} was sent to {goal}, it is at {before[id]["present"]}')
        if failed:
            self.wrong += not_said(failed, self._bus.port)
