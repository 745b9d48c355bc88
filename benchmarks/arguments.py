# SPDX-License-Identifier: Apache-2.0
"""How many calls with arguments of any kind every public callable gets, and how many end in other errors."""

from __future__ import annotations

import sys

from benchmarks.arms import ROOT, Task
from benchmarks.tables import Table, heading


def run(tasks: list[Task], scale: float) -> None:  # noqa: ARG001 - the same for all arms
    """Print the calls and the faults of each callable."""
    sys.path.insert(0, str(ROOT / 'test' / 'solver'))
    from any_argument import Samples, faults

    samples = Samples()
    heading(
        'Arguments of any kind',
        """Every public callable of ik_node, found by introspection: with each argument in turn, and with all,
        from a list of numbers, arrays and objects of wrong types, shapes and contents. A call may return or
        raise an error of ik_node.errors; anything else is a fault.""",
    )
    table, total = Table('callable'.ljust(40) + '  ', 'calls', 'faults'), [0, 0]
    for name, called in sorted(samples.callables.items()):
        count, found = faults(samples, called)
        table.row(name, count, len(found))
        for fault in found[:3]:
            print(f'  {fault}')
        total = [total[0] + count, total[1] + len(found)]
    table.row(f'all {len(samples.callables)}', *total)
