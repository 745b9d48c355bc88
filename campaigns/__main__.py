# SPDX-License-Identifier: Apache-2.0
"""make nightly: all campaigns one after the other, and a summary. NIGHTLY='faults soak' for some."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from campaigns import ROOT

# Tests here may take long, and writing the traceback of one that does can crash Python.
PYTEST = ('-m', 'pytest', '-q', '-o', 'faulthandler_timeout=0')
EXPLORE = {
    'IK_NODE_EXPLORE': '1',
    'IK_NODE_SEQUENCES': '3000',
}  # made-up examples are drawn anew, and more of them
# By name: what Python is given, and variables.
CAMPAIGNS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    'slow': ((*PYTEST, 'campaigns'), {}),
    'methods': ((*PYTEST, '-m', 'nightly', 'test'), {}),
    'kernels': (('-m', 'campaigns.kernels', '--real', '20', '--odd', '10', '--sanitize'), {}),
    'arguments': (('-m', 'campaigns.arguments'), {}),
    'explore': ((*PYTEST, '-n', 'logical', 'test', '-m', 'not process and not browser'), EXPLORE),
    'faults': (('-m', 'campaigns.faults'), {}),
    'activations': (('-m', 'campaigns.servos', 'activations', '--runs', '5000', '--jobs', '2'), {}),
    'streams': (('-m', 'campaigns.servos', 'streams', '--runs', '200', '--jobs', '8'), {}),
    'kills': (('-m', 'campaigns.servos', 'kills', '--runs', '20'), {}),
    'mutants': (('-m', 'campaigns.mutants', '--count', '40', '--seed', time.strftime('%Y%m%d')), {}),
    'soak': (('-m', 'benchmarks.soak'), {}),
}


def main() -> int:
    """Run campaigns; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog='make nightly', description=__doc__)
    parser.add_argument('names', nargs='*', metavar='name', help=f'{", ".join(CAMPAIGNS)}; default all')
    names = parser.parse_args().names
    if unknown := set(names) - CAMPAIGNS.keys():
        parser.error(f'there is no campaign {", ".join(unknown)}, only {", ".join(CAMPAIGNS)}')
    rows, failed = [], False
    for name in names or CAMPAIGNS:
        arguments, variables = CAMPAIGNS[name]
        print(f'== {name}: {" ".join(arguments)}', flush=True)
        begin = time.monotonic()
        done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env={**os.environ, **variables}, check=False)
        failed |= done.returncode != 0
        word = f'failed, exit code {done.returncode}' if done.returncode else 'passed'
        rows.append(f'{name:12} {word:20} {time.monotonic() - begin:6.0f} s')
    print('\n' + '\n'.join(rows))
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())
