# SPDX-License-Identifier: Apache-2.0
"""One cycle of a servo bus: time and processor time of our port and of rustypot's, in turns.

    python -m benchmarks.servo_port [--rounds 20]

Six servos behind a pseudo-terminal, in a process of their own; there is no wire, on which six answers take
another 1 to 2 ms at 1 Mbaud. Processor time is that of the thread that asks.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import rustypot

from benchmarks.late import IDS
from benchmarks.tables import Table
from ik_node.servos.bus.models import model_named
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.bus.transport import Answer

ROUNDS, CALLS = 20, 50
TIMEOUT = 0.5  # [s]: a busy machine is no fault
BAUD = 1_000_000
MODELS = {'feetech': 'sts3215', 'dynamixel': 'xl330-m288'}


def cycles(protocol: str, ports: tuple[str, str]) -> dict[str, Callable[[], object]]:
    """Return what is measured, by name: sync reads and sync writes of six servos at two ports."""
    model = model_named(MODELS[protocol])
    address, size = model.measured
    goal = model['goal_position']
    data = model['goal_position'].encode(2048)
    ours = SerialTransport(ports[0], BAUD, model.codec, TIMEOUT)
    kind = rustypot.Sts3215PyController if protocol == 'feetech' else rustypot.Xl330PyController
    theirs = kind(ports[1], BAUD, TIMEOUT)
    ids, rows = list(IDS), [list(data)] * len(IDS)

    def our_read() -> None:
        assert all(isinstance(reply, Answer) for reply in ours.sync_read(ids, address, size).values())

    return {
        'sync read, ours': our_read,
        'sync read, rustypot': lambda: theirs.sync_read_raw_data_with_error(ids, address, size),
        'sync write, ours': lambda: ours.sync_write(goal.address, dict.fromkeys(ids, data)),
        'sync write, rustypot': lambda: theirs.sync_write_raw_data(ids, goal.address, rows),
    }


def measured(call: Callable[[], object]) -> tuple[float, float]:
    """Return time and processor time of a call [us]."""
    processor, wall = time.thread_time_ns(), time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - wall) / 1e3, (time.thread_time_ns() - processor) / 1e3


def main() -> None:
    """Measure both protocols."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--rounds', type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    shown = Table('protocol  ', 'what                 ', 'median [us]', '99 % [us]', 'processor [us]')
    for protocol in MODELS:
        command = [sys.executable, '-m', 'benchmarks.late', '--servos', protocol, '2', '0', '0', '0']
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as servos:
            assert servos.stdout is not None
            first, second = json.loads(servos.stdout.readline())
            calls = cycles(protocol, (first, second))
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
            for _ in range(rounds):
                for name, call in calls.items():
                    times[name] += [measured(call) for _ in range(CALLS)]
            for name, rows in times.items():
                wall, processor = np.array(rows[CALLS:] or rows).T
                shown.row(
                    protocol,
                    name,
                    *(f'{x:.0f}' for x in (*np.percentile(wall, (50, 99)), np.median(processor))),
                )
            servos.kill()


if __name__ == '__main__':
    main()
