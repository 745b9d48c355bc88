# SPDX-License-Identifier: Apache-2.0
"""Whatever the arguments are, public callables return or raise an error of ik_node."""

from __future__ import annotations

import os

import pytest
from any_argument import Samples, faults

SAMPLES = Samples()
EVERY = 1 if 'IK_NODE_EXPLORE' in os.environ else 10  # a tenth of the calls is made in the gate


@pytest.mark.parametrize('name', sorted(SAMPLES.callables))
def test_any_argument_is_taken_or_rejected_with_a_documented_error(name):
    count, found = faults(SAMPLES, SAMPLES.callables[name], EVERY)
    assert not found, f'{len(found)} of {count} calls, such as\n' + '\n'.join(found[:10])
