# SPDX-License-Identifier: Apache-2.0
"""Servos that answer late: is any answer taken for that to another request?

    python -m benchmarks.late [--answers 100000] [--buses 16] [--share 0.4] [--twice 0.5]

Each bus is a pseudo-terminal behind which a process of its own answers for six servos: a share of the answers
1 to 200 ms late, evenly spread, some twice. What is asked is drawn: reads of any size, pings, writes, sync
reads and sync writes. The error byte of an answer is the number of the request, modulo 256, and the data
repeat it, so that each answer that the transport returns shows which request it belongs to. Exits with 1 if
one belongs to another.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import os
import pty
import random
import select
import subprocess
import sys
import threading
import time
import tty
from collections import Counter
from typing import Any

from benchmarks.tables import Table
from ik_node.servos.bus import dynamixel, feetech
from ik_node.servos.bus.packets import SYNC_READ, SYNC_WRITE, WRITE, Instruction, Status
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.bus.transport import Answer, Fault, Reply

ANSWERS, BUSES, SHARE = 100_000, 16, 0.4
EARLIEST, LATEST = 0.001, 0.2  # [s] how late
LOST = 0.28  # [s] later this process, slowed down by others, answers no more
TWICE = 0.5  # share of the late answers
TOGETHER = 0.001  # [s] after the first in which the second of an answer comes, if it comes
TIMEOUT = 0.005  # [s]
IDS = range(1, 7)
CODECS = {'feetech': feetech, 'dynamixel': dynamixel}


class Servos:
    """The process of some buses: answers until its stdin ends, and tells on each line there what it did."""

    def __init__(self, codec: Any, buses: int, share: float, twice: float, seed: int) -> None:
        self._codec, self._share, self._twice = codec, share, twice
        self._random = random.Random(seed)
        terminals = [pty.openpty() for _ in range(buses)]
        for _, line in terminals:
            tty.setraw(line)
        self._lines = [line for _, line in terminals]
        self._parsers = {terminal: codec.Parser(Instruction) for terminal, _ in terminals}
        self._numbers = dict.fromkeys(self._parsers, -1)
        self._due: list[tuple[float, int, int, float, bytes, bool]] = []
        self._order = itertools.count()
        self._done: dict[str, float] = {'late': 0, 'beyond': 0, 'latest': 0.0}

    def run(self) -> None:
        """Print the ports, and answer."""
        print(json.dumps([os.ttyname(line) for line in self._lines]), flush=True)
        stdin = sys.stdin.fileno()
        while True:
            wait = max(0.0, self._due[0][0] - time.monotonic()) if self._due else None
            ready, _, _ = select.select([stdin, *self._parsers], [], [], wait)
            if stdin in ready and not os.read(stdin, 4096):
                break
            for terminal in ready:
                if terminal != stdin:
                    self._hear(terminal, os.read(terminal, 4096))
            self._send()
            if stdin in ready:
                print(json.dumps(self._done), flush=True)

    def _hear(self, terminal: int, data: bytes) -> None:
        now = time.monotonic()
        for instruction in self._parsers[terminal].feed(data):
            self._numbers[terminal] += 1
            for frame in self._answers(self._numbers[terminal], instruction):
                delay = 0.0
                if self._random.random() < self._share:
                    delay = self._random.uniform(EARLIEST, LATEST)
                twice = delay > 0.0 and self._random.random() < self._twice
                entry = (now + delay, next(self._order), terminal, now, frame, twice)
                heapq.heappush(self._due, entry)

    def _answers(self, number: int, instruction: Instruction) -> list[bytes]:
        """Return the answers to the instruction of that number on its bus."""
        wide = 1 if self._codec is feetech else 2
        parts = instruction.parameters
        address, size = (int.from_bytes(parts[i : i + wide], 'little') for i in (0, wide))
        ids = [instruction.id]
        if instruction.code == SYNC_WRITE:
            return []
        if instruction.code == SYNC_READ:
            ids = list(parts[2 * wide :])
        elif instruction.code == WRITE:
            size = 0
        mark = number.to_bytes(4, 'little') * size
        return [
            self._codec.encode(
                Status(
                    id,
                    number % 256,
                    (bytes([id]) + mark if address == self._codec.ID_ADDRESS else mark)[:size],
                )
            )
            for id in ids
        ]

    def _send(self) -> None:
        while self._due and self._due[0][0] <= time.monotonic():
            due, _, terminal, asked, frame, twice = heapq.heappop(self._due)
            sent = time.monotonic()
            late = sent - asked
            if late > LOST:
                continue
            os.write(terminal, frame)
            if twice and time.monotonic() - sent < TOGETHER:
                os.write(terminal, frame)
            if due > asked:
                self._done['late'] += 1
                self._done['beyond'] += late > TIMEOUT
                self._done['latest'] = max(self._done['latest'], late)


class Client:
    """One bus at its port: asks until it is stopped, and judges each answer."""

    def __init__(self, port: str, codec: Any, seed: int) -> None:
        self._codec, self._random = codec, random.Random(seed)
        self._transport = SerialTransport(port, 1_000_000, codec, TIMEOUT)
        self._sent = -1  # number of the latest request
        send = self._transport._line.send

        def counted(data: bytes) -> None:
            self._sent += 1
            send(data)

        self._transport._line.send = counted  # type: ignore[method-assign]
        self.counts: Counter[str] = Counter()

    def run(self, stop: threading.Event) -> None:
        """Ask until stop is set."""
        while not stop.is_set():
            self._ask()
        self._transport.close()

    def _ask(self) -> None:
        kind = self._random.choices(('sync', 'read', 'ping', 'write', 'sync_write'), (60, 20, 8, 4, 8))[0]
        id, size = self._random.choice(IDS), self._random.choice((1, 2, 4, 15))
        self.counts[kind] += 1
        if kind == 'sync':
            for reply in self._transport.sync_read(IDS, 56, size).values():
                self._judge(reply, size)
        elif kind == 'read':
            self._judge(self._transport.read(id, 56, size), size)
        elif kind == 'ping':
            self._judge(self._transport.ping(id), 0)
        elif kind == 'write':
            for _ in range(2):
                self._judge(self._transport.write(id, 42, bytes(size)), 0)
        else:
            self._transport.sync_write(42, dict.fromkeys(IDS, bytes(size)))

    def _judge(self, reply: Reply, size: int) -> None:
        """Count a reply; size: bytes of data that tell its request."""
        if not isinstance(reply, Answer):
            self.counts[reply.name] += 1
            return
        self.counts['answers'] += 1
        mark = (self._sent.to_bytes(4, 'little') * 4)[:size]
        self.counts['wrong'] += reply.error != self._sent % 256 or (size > 0 and reply.data != mark)


def campaign(
    protocol: str, answers: int, buses: int, share: float, twice: float = 0.0, seed: int = 0
) -> dict[str, float]:
    """Return what happened until so many answers had been late: counts, and the latest [s]."""
    command = [
        sys.executable,
        '-m',
        'benchmarks.late',
        '--servos',
        protocol,
        str(buses),
        str(share),
        str(twice),
        str(seed),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as servos:
        assert servos.stdin is not None
        assert servos.stdout is not None
        ports = json.loads(servos.stdout.readline())
        clients = [Client(port, CODECS[protocol], seed + n) for n, port in enumerate(ports)]
        stop = threading.Event()
        threads = [threading.Thread(target=client.run, args=(stop,)) for client in clients]
        for thread in threads:
            thread.start()
        done: dict[str, float] = {'late': 0}
        while done['late'] < answers and any(thread.is_alive() for thread in threads):
            time.sleep(0.2)
            servos.stdin.write('\n')
            servos.stdin.flush()
            done = json.loads(servos.stdout.readline())
        alive = all(thread.is_alive() for thread in threads)
        stop.set()
        for thread in threads:
            thread.join()
        servos.stdin.close()
    if not alive:
        raise RuntimeError('a client has ended before its time')
    counts: Counter[str] = Counter()
    for client in clients:
        counts.update(client.counts)
    names = ('answers', 'wrong', *(fault.name for fault in Fault))
    return {**done, **{name: counts[name] for name in names}}


def main() -> int:
    """Run the campaign; return 1 if an answer was taken for another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--answers', type=int, default=ANSWERS, help='late answers, of each protocol')
    parser.add_argument('--buses', type=int, default=BUSES, help='at once')
    parser.add_argument('--share', type=float, default=SHARE, help='of the answers that are late')
    parser.add_argument('--twice', type=float, default=TWICE, help='share of these that come twice')
    parser.add_argument('--servos', nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.servos:
        protocol, buses, share, twice, seed = options.servos
        Servos(CODECS[protocol], int(buses), float(share), float(twice), int(seed)).run()
        return 0
    print(f'beyond: later than {TIMEOUT * 1e3:.0f} ms, the time-out; latest [ms], time [s]\n')
    faults = [fault.name for fault in Fault]
    shown = Table('protocol  ', 'late', 'beyond', 'latest', 'answers', *faults, 'taken for another', 'time')
    wrong = 0
    for protocol in CODECS:
        start = time.monotonic()
        found = campaign(protocol, options.answers, options.buses, options.share, options.twice)
        wrong += int(found['wrong'])
        counts = [int(found[name]) for name in ('late', 'beyond', 'answers', *faults, 'wrong')]
        counts.insert(2, round(1e3 * found['latest']))
        shown.row(protocol, *counts, round(time.monotonic() - start))
    return int(wrong > 0)


if __name__ == '__main__':
    sys.exit(main())
