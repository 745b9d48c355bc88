# SPDX-License-Identifier: Apache-2.0
"""test/sentences.txt lists what users may read, so that a change of it is read beside its neighbours."""

from pathlib import Path

import pytest

from tools.sentences import sentences

LISTED = Path(__file__).parents[1] / 'sentences.txt'
REMEDY = 'python tools/sentences.py > test/sentences.txt lists the sentences as they are now: read the difference'


@pytest.mark.slow
def test_every_sentence_is_listed():
    assert sentences() == LISTED.read_text(encoding='utf-8'), REMEDY
