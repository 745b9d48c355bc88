# SPDX-License-Identifier: Apache-2.0
"""What lasts is said once."""

import pytest

from ik_node.ros.remarks import APART, OVER, Remarks

OLD, OTHER = 'command ignored: it is {:.2f} s old', 'joint "{:.0f}" is unknown'


@pytest.mark.parametrize(
    ('came', 'said'),
    [
        ([(0.01 * k, OLD.format(k)) for k in range(10_000)], [0]),
        ([(0.0, OLD.format(1)), (OVER + 1.0, OLD.format(2))], [0, 1]),  # it had ended
        ([(k * APART, (OLD if k % 2 else OTHER).format(1)) for k in range(20)], [0, 1]),
        ([(k * APART, OTHER.format(k)) for k in range(4)], [0, 1, 2, 3]),  # names, not numbers
        ([(0.001 * k, OTHER.format(k)) for k in range(1000)], [0]),  # a flood
    ],
)
def test_what_lasts_is_said_once(came, said):
    times = iter([time for time, _ in came])
    remarks = Remarks(lambda: next(times))
    assert [k for k, (_, sentence) in enumerate(came) if remarks.new(sentence)] == said
