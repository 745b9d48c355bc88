# SPDX-License-Identifier: Apache-2.0
"""A program sets the speed only while nobody else has: without a node."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ik_node.ros.programs.player import SPEED, Player


class Parameters:
    """Those of a node, whose answers come when told."""

    def __init__(self) -> None:
        self.of_node, self.values, self.busy = 1.0, {}, False

    def reset(self) -> None:
        self.values = {}

    def refresh(self) -> None:
        """The answer is on its way."""

    def answer(self) -> None:
        self.values = {SPEED: self.of_node}

    def set(self, **values: float) -> bool:
        self.of_node = values[SPEED]
        return True


@pytest.fixture
def player(monkeypatch):
    made = object.__new__(Player)
    made._parameters, made._looking, made._speed, made._base = Parameters(), False, 0.4, 1.0
    made._seen, made._asked, made._ended, made._reporters = 0.0, 0.0, None, {1}
    made._parameters.of_node = 0.4  # as the program has set it
    monkeypatch.setattr(Player, '_found', lambda _: {1})
    made.runner = SimpleNamespace(active=False)
    monkeypatch.setattr(Player, 'release', lambda _: None)
    return made


@pytest.mark.parametrize('lowered', [None, 0.05])
@pytest.mark.parametrize('moment', ['run', 'end'])
def test_a_speed_that_an_operator_lowers_stays(player, moment, lowered):
    known = player._parameters
    known.answer()  # what was read before the operator came
    for time in range(3):
        player._seen = float(time)
        if time == 1:
            known.of_node = lowered or known.of_node
            known.answer()
        if moment == 'run':
            player._set_speed(0.8)
        elif player.runner is not None:
            player._end(float(time))
    assert known.of_node == (lowered or {'run': 0.8, 'end': 1.0}[moment])
    assert player.runner is None or moment == 'run'
