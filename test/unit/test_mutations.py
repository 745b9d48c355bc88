# SPDX-License-Identifier: Apache-2.0
"""The deliberate faults of mutations.py still apply to the code."""

from __future__ import annotations

import pytest
from mutations import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize('mutation', MUTATIONS, ids=lambda one: one.file)
def test_the_text_that_a_fault_replaces_is_there_once(mutation: Mutation) -> None:
    assert (ROOT / 'ik_node' / mutation.file).read_text(encoding='utf-8').count(mutation.old) == 1
