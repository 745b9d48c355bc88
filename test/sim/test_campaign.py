# SPDX-License-Identifier: Apache-2.0
"""Random goals on a simulated arm: it comes to rest where it should, within all limits."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip('mujoco')
sys.path.append(str(Path(__file__).resolve().parents[2]))

from oracles.arms import chosen
from oracles.plant import LINKS, Campaign


@pytest.mark.slow
@pytest.mark.parametrize('output', LINKS)
@pytest.mark.parametrize('name', ['seed_arm', 'so101_like'])
def test_simulated_arms_come_to_rest_where_it_was_promised_within_all_limits(name: str, output: str) -> None:
    (task,) = chosen(name)
    count, near, stopped, samples, beyond = Campaign(task, output).run(5)
    assert (count, near, stopped, beyond) == (5, 5, 0, 0)
    assert samples > 500
