# SPDX-License-Identifier: Apache-2.0
"""How evenly a thread wakes up that only sleeps to the next time: one line of JSON per line of stdin."""

from __future__ import annotations

import json
import sys
import threading
import time

PERIOD = 0.01  # [s], as long as that of ik_node


def sleep(times: list[float]) -> None:
    """Sleep to one time after the other, and note when (time.perf_counter)."""
    due = time.perf_counter()
    while True:
        due += PERIOD
        time.sleep(max(0.0, due - time.perf_counter()))
        times.append(time.perf_counter())
        if times[-1] > due + PERIOD:  # late after a stall: no burst to catch up, as in ik_node
            due = times[-1]


def main() -> None:
    """Answer each line of stdin with the times since the last one."""
    times: list[float] = []
    threading.Thread(target=sleep, args=(times,), daemon=True).start()
    for _ in sys.stdin:
        count = len(times)
        print(json.dumps(times[:count]), flush=True)
        del times[:count]


if __name__ == '__main__':
    main()
