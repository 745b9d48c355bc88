# SPDX-License-Identifier: Apache-2.0
"""Inbox: whether the worker is slow."""

from __future__ import annotations

import time

import pytest

from ik_node.control.controller.inbox import Inbox
from ik_node.control.state.requests import HomeRequest


def test_a_worker_that_takes_long_is_mentioned_until_it_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('ik_node.control.controller.inbox.SLOW', 0.01)
    inbox = Inbox()
    inbox.put_change()
    inbox.take(None)
    time.sleep(0.02)
    assert inbox.slow == ''  # no request waits for it
    inbox.put(HomeRequest())
    inbox.take(None)
    time.sleep(0.02)
    assert inbox.slow.startswith('a goal is still being solved after ')
    inbox.take(0.0)
    assert inbox.slow == ''
