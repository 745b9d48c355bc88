# SPDX-License-Identifier: Apache-2.0
"""What a run draws: faults of the bus, where the joints stand, what an earlier program has left."""

from __future__ import annotations

import random

from virtual_time import VirtualBus

from ik_node.servos.calibration.profile import ArmProfile, JointProfile

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
# Registers that an earlier program has changed, and to what. (address, size, values)
STALE = {
    'feetech': (
        (41, 1, (0, 50, 254)),  # acceleration
        (42, 2, range(4096)),  # goal
        (44, 2, (0, 3000)),  # time
        (46, 2, (0, 1000)),  # speed
        (48, 2, (0, 500, 1000)),  # torque limit
    ),
    'dynamixel': (
        (98, 1, (0, 50, 255)),  # watchdog; 255: it has stopped the servo
        (100, 2, (0, 300, 885)),  # torque limit
        (108, 4, (0, 25)),  # acceleration
        (112, 4, (0, 50, 200)),  # speed
        (116, 4, range(4096)),  # goal
    ),
}


def random_faults(chance: random.Random, profile: ArmProfile, share: float) -> list[dict[str, object]]:
    """Return a few faults, each of which hits up to a share of the packets."""
    return [
        {
            'kind': chance.choice(KINDS),
            'id': chance.choice([None, *profile.ids]),
            'share': chance.uniform(0.0, share),
            'delay': chance.choice([0.002, 0.01, 0.03, 0.1]),
            'bits': chance.choice([0x01, 0x04, 0x20]),
        }
        for _ in range(chance.randint(0, 3))
    ]


def random_place(chance: random.Random, joint: JointProfile) -> float:
    """Return where a joint stands [ticks]: within its range, seldom beyond it or at the step of its servo."""
    low, high = (2048 + stop / joint.unit for stop in joint.stops or (-1600 * joint.unit, 1600 * joint.unit))
    if chance.random() < 0.03:
        beyond = chance.uniform(0.0, 60.0)
        if joint.stops is None:
            return chance.choice([beyond, 4095.0 - beyond])
        return chance.choice([low - beyond, high + beyond])
    return chance.uniform(low, high)


def scatter(bus: VirtualBus, chance: random.Random, profile: ArmProfile) -> None:
    """Carry the joints somewhere, and leave stale registers in the servos."""
    for joint in profile.joints:
        place = random_place(chance, joint)
        for id in (joint.id, *joint.shadows):  # which turn together
            bus.call('motor', id=id, actual=place, velocity=0.0)
            for address, size, values in STALE[profile.protocol]:
                bus.call('put', id=id, address=address, size=size, value=chance.choice(values))
