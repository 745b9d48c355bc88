# SPDX-License-Identifier: Apache-2.0
"""Calls of services that outlast a busy computer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ik_node.steady import steady

AGAIN = 10.0  # s


def answer_of(client: Any, request: Any, wait: Callable[[Callable[[], Any], str], Any], name: str) -> Any:
    """Return the answer of a service, which is asked again after a while.

    A node discards an answer to a client that it has not discovered within 0.1 s, even if the client has
    discovered its service. wait: returns what a condition returns once that is true.
    """
    wait(client.service_is_ready, name)
    futures: list[Any] = []
    due = 0.0

    def answered() -> Any:
        nonlocal due
        if steady() > due:
            futures.append(client.call_async(request))
            due = steady() + AGAIN
        return next((future for future in futures if future.done()), None)

    return wait(answered, f'the answer of {name}').result()
