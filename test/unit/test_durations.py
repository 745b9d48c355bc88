# SPDX-License-Identifier: Apache-2.0
"""Which tests durations.py calls slow and long."""

from __future__ import annotations

from pathlib import Path

import durations

REPORT = """<testsuites><testsuite>
<testcase classname="" name="test.ros.test_skipped" time="0.0" />
<testcase classname="test.unit.test_a" name="test_cheap[1]" time="0.05" />
<testcase classname="test.unit.test_a" name="test_cheap[2]" time="0.05" />
<testcase classname="test.unit.test_a" name="test_one_slow_case[1]" time="0.01" />
<testcase classname="test.unit.test_a" name="test_one_slow_case[2]" time="0.2" />
<testcase classname="test.unit.test_a" name="test_many_cases[1]" time="0.09" />
<testcase classname="test.unit.test_a" name="test_many_cases[2]" time="0.09" />
<testcase classname="test.ros.test_b" name="test_node" time="3.0" />
<testcase classname="test.ros.test_b" name="test_soak" time="200.0" />
</testsuite></testsuites>"""


def test_make_quick_has_the_folders_whose_tests_are_measured_for_it() -> None:
    makefile = (Path(__file__).parents[2] / 'Makefile').read_text(encoding='utf-8')
    assert f"-m 'not slow and not nightly' $(addprefix test/, {' '.join(durations.QUICK)})" in makefile


def test_the_slowest_functions_are_left_out(tmp_path: Path, monkeypatch) -> None:
    report = tmp_path / 'junit.xml'
    report.write_text(REPORT)
    times = durations.measured(report)
    monkeypatch.setattr(durations, 'CASES', 0.2)
    assert durations.slow(times) == {'test/unit/test_a.py::test_one_slow_case'}
    monkeypatch.setattr(durations, 'CASES', 0.15)
    assert durations.slow(times) == {
        f'test/unit/test_a.py::test_{name}' for name in ('one_slow_case', 'many_cases')
    }
    assert durations.long(times) == set()
    monkeypatch.setattr(durations, 'BUDGET', 4.0)
    assert durations.long(times) == {'test/ros/test_b.py::test_soak'}
