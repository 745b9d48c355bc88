"""Which tests are too slow for make quick, from a measured run: python test/durations.py JUNIT.xml

JUNIT.xml is what `pytest --junitxml=JUNIT.xml` of all tests has written on an idle machine. A new test is
quick until it is measured, so none is left out unseen.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

FILE = Path(__file__).with_name('durations.json')
FOLDERS = ('test/unit/', 'test/solver/', 'test/control/', 'test/servos/', 'test/sim/')  # of make quick
ITEM, FUNCTION = 0.1, 0.5  # [s] of one case of a quick test, and of all its cases


def measured(report: Path) -> dict[str, list[float]]:
    """Return the times [s] of all cases by test function."""
    times = defaultdict(list)
    for case in ElementTree.parse(report).iter('testcase'):
        name = f'{case.get("classname", "").replace(".", "/")}.py::{case.get("name", "").partition("[")[0]}'
        if name.startswith(FOLDERS):
            times[name].append(float(case.get('time', 0.0)))
    return times


def main(report: Path) -> None:
    """Write FILE."""
    times = measured(report)
    slow = {name: round(sum(t), 1) for name, t in sorted(times.items()) if max(t) > ITEM or sum(t) > FUNCTION}
    quick = sum(sum(t) for name, t in times.items() if name not in slow)
    FILE.write_text(json.dumps({'quick': round(quick, 1), 'slow': slow}, indent=1) + '\n', encoding='utf-8')
    print(f'{len(times) - len(slow)} quick tests take {quick:.1f} s, {len(slow)} are slow')


if __name__ == '__main__':
    main(Path(sys.argv[1]))
