# SPDX-License-Identifier: Apache-2.0
"""The campaign as a program."""

from __future__ import annotations

import argparse
import sys

from faults.campaign import campaign


def main() -> int:
    """Run the campaign; return 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog='make faults', description='Randomised faults, and a judge.')
    parser.add_argument('--runs', type=int, default=1000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--first', type=int, default=0, help='number of the first run')
    parser.add_argument('--workers', type=int, default=2, help='nodes at once')
    parser.add_argument('--more', action='store_true', help='the action and tf2 too, where installed')
    options = parser.parse_args()
    return campaign(options.seed, options.first, options.runs, options.workers, options.more)


if __name__ == '__main__':
    sys.exit(main())
