# SPDX-License-Identifier: Apache-2.0
"""A few runs of each campaign of random faults; __main__ does thousands."""

from __future__ import annotations

import pytest

from campaigns.servos import activations, streams

pytestmark = pytest.mark.slow


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
