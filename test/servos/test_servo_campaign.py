# SPDX-License-Identifier: Apache-2.0
"""A few runs of each campaign of random faults; __main__ does thousands."""

from __future__ import annotations

import pytest

from campaigns.servos import activations, kills, streams


@pytest.mark.parametrize(('profile', 'runs'), [('so101', 8), ('omx_f', 8)])
def test_no_activation_moves_the_arm(profile, runs):
    found = activations(profile, range(runs))
    assert found.wrong == {}
    assert found.counts['torque on']
    assert found.hits


@pytest.mark.parametrize(('profile', 'seed'), [('so101', 1), ('omx_f', 3)])
def test_nothing_is_made_up_and_no_goal_leaps_while_faults_come_and_go(profile, seed):
    found = streams(profile, [seed], seconds=15.0)
    assert found.wrong == {}
    assert found.counts['positions published']
    assert found.hits


@pytest.mark.parametrize(
    ('profile', 'seed', 'seconds'),
    [
        ('wx200', 1, 30.0),  # two servos lose their torque, so the reason is in the plural
        ('so101', 1024, 60.0),  # a load pulls a joint inside that is held a little outside its range
        ('wx200', 1003, 60.0),  # a joint with two servos is blocked
        ('wx200', 1054, 60.0),  # one servo of a joint has no torque any more, so the goals of both may change
        ('wx200', 30066, 60.0),  # a joint hangs behind its goal when a servo that was silent answers again
        ('wx200', 1012, 60.0),  # a servo shuts down, and its goals no longer count
    ],
)
def test_what_is_right_counts_as_no_violation(profile, seed, seconds):
    assert streams(profile, [seed], seconds).wrong == {}


def test_an_arm_whose_driver_is_killed_stops_and_is_held():
    assert kills('so101', [0]).wrong == {}
