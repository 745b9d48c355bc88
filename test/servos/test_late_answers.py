# SPDX-License-Identifier: Apache-2.0
"""Servos in a process of their own that answer late: no answer is taken for that to another request."""

import pytest

from benchmarks.late import campaign


@pytest.mark.parametrize('protocol', ['feetech', 'dynamixel'])
def test_no_late_answer_is_taken_for_another(protocol):
    found = campaign(protocol, answers=500, buses=4, share=0.4)
    assert found['wrong'] == 0
    assert found['beyond'] > 100
    assert found['answers'] > 100
