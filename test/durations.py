# SPDX-License-Identifier: Apache-2.0
"""Which tests make quick and make test leave out: python test/durations.py JUNIT.xml

JUNIT.xml is what `pytest --junitxml=JUNIT.xml` of all tests has written on an idle machine. A new test is
quick until it is measured, so none is left out unseen.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from xml.etree import ElementTree

FILE = Path(__file__).with_name('durations.json')
QUICK = ('unit', 'solver', 'control', 'batch', 'placement', 'reach', 'teach', 'servos', 'sim')
FOLDERS = tuple(f'test/{name}/' for name in QUICK)  # of make quick
CASES = 0.1  # [s] of all cases of a test of make quick
BUDGET = 400.0  # [s] of the tests of make test, one after the other: its functions are those that take least


def measured(report: Path) -> dict[str, list[float]]:
    """Return the times [s] of all cases by test function."""
    times = defaultdict(list)
    for case in ElementTree.parse(report).iter('testcase'):
        if not case.get('classname'):
            continue  # a file that was skipped
        name = f'{case.get("classname", "").replace(".", "/")}.py::{case.get("name", "").partition("[")[0]}'
        times[name].append(float(case.get('time', 0.0)))
    return times


def slow(times: Mapping[str, Sequence[float]]) -> set[str]:
    """Return the functions in the folders of make quick that it leaves out."""
    return {name for name, cases in times.items() if name.startswith(FOLDERS) and sum(cases) > CASES}


def long(times: Mapping[str, Sequence[float]]) -> set[str]:
    """Return the functions that make test leaves out."""
    cheapest = sorted(times, key=lambda name: sum(times[name]))
    totals = accumulate(sum(times[name]) for name in cheapest)
    return {name for name, total in zip(cheapest, totals, strict=True) if total > BUDGET}


def main(report: Path) -> None:
    """Write FILE."""
    times = measured(report)
    marked = {'slow': slow(times), 'long': long(times)}
    rows = {
        mark: {name: round(sum(times[name]), 1) for name in sorted(names)} for mark, names in marked.items()
    }
    FILE.write_text(json.dumps(rows, indent=1) + '\n', encoding='utf-8')
    for mark, names in marked.items():
        print(f'{len(names)} of {len(times)} functions are {mark}: {sum(rows[mark].values()):.0f} s')


if __name__ == '__main__':
    main(Path(sys.argv[1]))
