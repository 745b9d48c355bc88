# SPDX-License-Identifier: Apache-2.0
"""Lines on the progress of a long command, for logs."""

from __future__ import annotations

import pytest

pytest.importorskip('tqdm')

from ik_node.cli import progress_bar
from ik_node.cli.progress_bar import ProgressBar


@pytest.fixture
def clock(monkeypatch):
    """The time [s], to be set."""
    now = [100.0]
    monkeypatch.setattr(progress_bar.time, 'monotonic', lambda: now[0])
    return now


def lines(capsys) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if 'passed' in line]


def test_a_line_has_the_rate_since_the_last_one_and_what_is_left_at_it(clock, capsys):
    with ProgressBar(1000, 'goals') as bar:
        clock[0] += 1.0
        bar.add(500)  # found from a run before
        clock[0] += 10.0
        bar.add(100)
        clock[0] += 5.0
        bar.add(10)
        clock[0] += 20.0
        bar.add(390)
    assert lines(capsys) == [
        '50 % of 1000 goals, 1 s passed, 500 goals/s, 1 s left',
        '60 % of 1000 goals, 11 s passed, 10 goals/s, 40 s left',
        '100 % of 1000 goals, 36 s passed, 16 goals/s, 0 s left',
    ]


def test_an_estimated_total_is_called_so_and_may_be_exceeded(clock, capsys):
    with ProgressBar(10, 'goals', about=True) as bar:
        clock[0] += 4.0
        bar.add(5)
        clock[0] += 10.0
        bar.add(6)
    with ProgressBar(None, 'episodes') as bar:
        clock[0] += 4.0
        bar.add(5)
    assert lines(capsys) == [
        '50 % of about 10 goals, 4 s passed, 1.25 goals/s, 4 s left',
        '11 goals, 14 s passed, 0.60 goals/s',
        '5 episodes, 4 s passed, 1.25 episodes/s',
    ]
