# SPDX-License-Identifier: Apache-2.0
"""A short version of make soak. It judges no times, and memory only by what it would say of some figures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from domains import new_domain

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.soak import Figures, report, soak

pytestmark = pytest.mark.slow


def test_goals_at_100_hz_are_answered_and_the_last_one_is_reached(monkeypatch):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(new_domain()))
    figures = soak(6.0)
    assert figures.goals == pytest.approx(600, abs=1)
    assert figures.answered > 0
    assert figures.rejected == 0
    assert figures.off < 1e-5
    assert len(figures.waits) > 0
    assert len(figures.jitter) > 0
    assert len(figures.memory) > 0
    assert [set(count) for count in figures.counts] == [{'blocks', 'objects'}] * 2
    assert figures.code == 0


def test_memory_that_grows_is_a_failure(capsys):
    counts = [{'blocks': 1, 'objects': 1}] * 2
    figures = Figures(memory=[100.0] * 60, waits=[1.0], jitter=[1.0], counts=counts, code=0)
    assert report(figures)
    figures.memory = [100.0 + i / 30.0 for i in range(60)]
    assert not report(figures)
    assert 'grown by more than 1 MB' in capsys.readouterr().err
