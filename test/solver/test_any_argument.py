# SPDX-License-Identifier: Apache-2.0
"""Whatever the arguments are, public callables return or raise an error of ik_node."""

from __future__ import annotations

import pytest
from any_argument import Samples, faults

SAMPLES = Samples()


@pytest.mark.parametrize('name', sorted(SAMPLES.callables))
def test_any_argument_is_taken_or_rejected_with_a_documented_error(name):
    count, found = faults(SAMPLES, SAMPLES.callables[name])
    assert not found, f'{len(found)} of {count} calls, such as\n' + '\n'.join(found[:10])
