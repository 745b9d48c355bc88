# SPDX-License-Identifier: Apache-2.0
"""python -m campaigns.servos: many runs, in several processes."""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import sys
import time

import campaigns.servos
from campaigns.servos.kills import drive
from campaigns.servos.outcome import Outcome

AT_ONCE = {'activations': 25, 'streams': 1, 'kills': 1}  # runs of one task
SHOWN = 5  # violations of a run
TELL = 10.0  # [s] between two lines of progress


def main() -> int:
    """Run a campaign; return 1 if a run has violations."""
    parser = argparse.ArgumentParser(
        prog='campaigns.servos',
        description=campaigns.servos.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('what', choices=(*AT_ONCE, 'drive'))
    parser.add_argument('serial_port', nargs='?')
    parser.add_argument('--profile', default='so101')
    parser.add_argument('--runs', type=int, default=100)
    parser.add_argument('--seed', type=int, default=0, help='of the first run')
    parser.add_argument('--seconds', type=float, default=60.0, help='of a stream')
    parser.add_argument('--jobs', type=int, default=1, help='processes; most of their time streams wait')
    given = parser.parse_args()
    if given.what == 'drive':
        drive(given.profile, given.serial_port)
    size, end = AT_ONCE[given.what], given.seed + given.runs
    tasks = [range(begin, min(begin + size, end)) for begin in range(given.seed, end, size)]
    found = Outcome()
    begun = told = time.monotonic()
    work = functools.partial(getattr(campaigns.servos, given.what), given.profile, seconds=given.seconds)
    with multiprocessing.get_context('spawn').Pool(given.jobs) as pool:
        for outcome in pool.imap_unordered(work, tasks):
            for seed, lines in outcome.wrong.items():
                for line in lines[:SHOWN]:
                    print(f'{given.what} {given.profile} {seed}: {line}', flush=True)
            found.add(outcome)
            now = time.monotonic()
            if now > told + TELL:
                told = now
                print(progress(found, given.runs, now - begun), flush=True)
    print(found.report())
    return int(bool(found.wrong))


def progress(found: Outcome, runs: int, passed: float) -> str:
    """Return how far it is after passed [s], how fast it goes, and how long the rest takes."""
    rate, left = found.runs / passed, (runs - found.runs) / found.runs * passed
    return (
        f'{found.runs} of {runs} runs, {len(found.wrong)} with violations, {60.0 * rate:.0f} runs/min, '
        f'{left / 60.0:.1f} min left'
    )


if __name__ == '__main__':
    sys.exit(main())
