# SPDX-License-Identifier: Apache-2.0
"""A few runs of each campaign of random faults; servo_campaign.py does thousands."""

from __future__ import annotations

import pytest
from servo_campaign import activation, kill, stream

from ik_node.sim.bus import EmulatedBus


def test_no_activation_moves_the_arm():
    with EmulatedBus() as bus:
        found = [activation(bus, seed) for seed in range(25)]
    assert [wrong for wrong, _ in found if wrong] == []
    assert any(on for _, on in found)


@pytest.mark.parametrize('seed', [1, 2])
def test_nothing_is_made_up_and_no_goal_leaps_while_faults_come_and_go(seed):
    assert stream(seed) == []


def test_an_arm_whose_driver_is_killed_stops_and_is_held():
    assert kill(0) == []
