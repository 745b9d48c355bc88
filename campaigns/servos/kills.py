# SPDX-License-Identifier: Apache-2.0
"""The driver is killed while it moves the arm."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

from rig import Rig

from campaigns.servos.chance import DEGREE
from campaigns.servos.emulated_bus import EmulatedBus
from campaigns.servos.outcome import Outcome
from campaigns.servos.streams import HELD, too_far_ahead, wave
from ik_node.errors import IkError
from ik_node.servos.arm.states import ArmState
from ik_node.servos.calibration.profile import read_profile

ROOT = Path(__file__).resolve().parents[2]


def kills(profile: str, seeds: Iterable[int], seconds: float = 0.0) -> Outcome:
    """Kill a driver that moves the arm, once per seed; seconds is for runs of other kinds."""
    del seconds
    found = Outcome()
    for seed in seeds:
        wrong, speed = kill(profile, seed)
        found.runs += 1
        found.counts['killed while a joint moved faster than 0.5 rad/s'] += speed > 0.5
        if wrong:
            found.wrong[seed] = wrong
    return found


def kill(profile: str, seed: int) -> tuple[list[str], float]:
    """Kill a driver that moves the arm; return what was wrong, and the fastest joint then [rad/s]."""
    chance = random.Random(seed)
    with EmulatedBus(profile) as bus:
        driver = subprocess.Popen(
            [sys.executable, '-m', 'campaigns.servos', 'drive', bus.port, '--profile', profile],
            cwd=ROOT,
            env={**os.environ, 'PYTHONPATH': f'{ROOT}/test:{ROOT}/test/servos'},
            stdout=subprocess.PIPE,
        )
        assert driver.stdout is not None
        driver.stdout.readline()
        time.sleep(chance.uniform(0.1, 3.0))
        driver.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        states = bus.state()
        wrong = too_far_ahead(bus, read_profile(profile), states)
        driver.wait()
        driver.stdout.close()
        time.sleep(max(killed + HELD - time.monotonic(), 0.0))
        first = bus.state()
        time.sleep(0.2)
        second = bus.state()
        wrong += [f'servo {id} still moves' for id in first if abs(first[id]['actual'] - second[id]['actual']) > DEGREE]
        wrong += [f'servo {id} has no torque' for id in second if not second[id]['torque']]
        return wrong, max(abs(state['velocity']) for state in states.values()) / 4096 * math.tau


def drive(profile: str, port: str) -> None:
    """Move the arm at that port back and forth, as fast as it is, until killed."""
    rig = Rig(SimpleNamespace(port=port, clock=time), profile, None)
    rig.arm.start()
    rig.until(ArmState.PASSIVE)
    rig.switch_on()
    print('driving', flush=True)
    names = [joint.name for joint in rig.profile.joints if not joint.gripper]
    while True:
        with contextlib.suppress(IkError):  # a busy computer
            rig.arm.command(dict.fromkeys(names, 1.2 * wave(2.0 * time.monotonic(), steps=True)))
        time.sleep(0.01)
