# SPDX-License-Identifier: Apache-2.0
"""The folder of the servos, with a driver that keeps what it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from desk import Page, RobotSide, viewer
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from ik_node.viewer.guard import OLDEST
from ik_node.viewer.servos import CLEAR, HOLD, OFF, ON, PATIENCE, RELEASE, SUPPORTED, ZERO

pytestmark = pytest.mark.slow


class Driver:
    """The services of ik_servos. asked: what it was asked for; good: whether it does that."""

    def __init__(self, robot: RobotSide) -> None:
        self.asked: list[str] = []
        self.good, self.robot = True, robot
        self.node = Node('ik_servos', context=robot.context)
        self.node.declare_parameter('known_pose', '')
        self.node.create_service(SetBool, '~/torque', self._torque)
        for name in ('hold', 'clear', 'set_zero'):
            self.node.create_service(Trigger, f'~/{name}', self._answering(name))
        self.node.create_service(Trigger, '/ik_node/resume', self._answering('resume'))
        self._diagnostics = self.node.create_publisher(DiagnosticArray, '/diagnostics', 10)

    def _torque(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        return self._answering(f'torque {request.data}')(request, response)

    def _answering(self, name: str) -> Any:
        def answer(_: Any, response: Any) -> Any:
            pose = self.node.get_parameter('known_pose').value
            self.asked.append(f'{name} {pose}' if name == 'set_zero' else name)
            response.success, response.message = self.good, f'{name} <done>'
            return response

        return answer

    def report(self, level: bytes, message: str, **values: str) -> None:
        pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
        status = DiagnosticStatus(level=level, name='/ik_servos', message=message, values=pairs)
        self._diagnostics.publish(DiagnosticArray(status=[status]))


@pytest.fixture
def both() -> Iterator[tuple[Page, Driver]]:
    with viewer(page=False) as (table, robot):
        page = Page(table)
        page.run(1.5)
        assert not page.control('Servos')['visible'], 'there is no driver'
        driver = Driver(robot)
        page.wait(lambda: page.control('Servos')['visible'], 'the folder')
        yield page, driver
        page.close()
        driver.node.destroy_node()


@pytest.mark.parametrize(
    ('buttons', 'asked'),
    [
        ([ON], ['torque True']),
        ([OFF], []),  # without torque the arm sinks
        ([OFF, RELEASE], ['torque False']),
        ([HOLD], ['hold']),
        ([CLEAR], ['clear', 'resume']),
        ([ZERO], ['set_zero elbow=1.5']),
    ],
)
def test_a_button_asks_the_driver_for_what_it_says(
    both: tuple[Page, Driver], buttons: list[str], asked: list[str]
) -> None:
    page, driver = both
    page.choose('Known pose', 'elbow=1.5')
    for button in buttons:
        page.wait(lambda b=button: page.control(b)['visible'], button)
        page.choose(button, True)
    page.wait(lambda: driver.asked == asked, 'the requests')
    if asked:
        page.wait(lambda: '&lt;done&gt;' in page.words(), 'the answer')
    page.run(1.0)
    assert driver.asked == asked


def test_a_hold_counts_however_late(both: tuple[Page, Driver]) -> None:
    page, driver = both
    page.age = 2.0 * OLDEST
    for button in (ON, HOLD):
        page.choose(button, True)
    page.wait(lambda: driver.asked, 'a request')
    page.run(1.0)
    assert driver.asked == ['hold']


def test_what_the_driver_rejects_or_does_not_answer_is_told(both: tuple[Page, Driver]) -> None:
    page, driver = both
    driver.good = False
    page.choose(CLEAR, True)
    page.wait(lambda: 'Not possible' in page.words(), 'the rejection')
    assert driver.asked == ['clear'], 'the arm is resumed although it was not cleared'
    page.desk.world.busy.add(driver.node)
    page.choose(HOLD, True)
    page.run(PATIENCE + 2.0)
    assert f'no response within {PATIENCE:g} s' in page.words()


def test_nobody_is_asked_for_long_to_support_the_arm(both: tuple[Page, Driver]) -> None:
    page, _ = both
    page.choose(OFF, True)
    page.wait(lambda: page.control(RELEASE)['visible'], 'the question')
    page.run(SUPPORTED + 0.5)
    assert not page.control(RELEASE)['visible']


def test_reports_are_shown_as_text(both: tuple[Page, Driver]) -> None:
    page, driver = both
    made_up = '<img src=x onerror=alert(1)>'
    driver.report(b'\x02', f'{made_up} broke', state=made_up, torque=f'{made_up} 5 of 6')
    page.wait(lambda: page.words().count('&lt;img') >= 3, 'the report')
    assert '<img' not in page.words()
    driver.report(b'\x00', 'passive', state='passive', torque='0 of 6')
    page.wait(lambda: 'the torque is off' in page.words().lower(), 'what is wrong')


@pytest.mark.parametrize(('state', 'asked'), [('faulted', ['torque True', 'resume']), ('stopped', ['torque True'])])
def test_without_torque_the_button_at_the_top_switches_it_on_and_ends_a_fault(
    both: tuple[Page, Driver], state: str, asked: list[str]
) -> None:
    page, driver = both
    driver.robot.diagnose(f'{state}: the elbow is away; press Resume', state=state)
    page.wait(lambda: 'the elbow is away' in page.text(), 'the fault')
    driver.report(b'\x00', 'passive', state='passive', torque='0 of 6')
    top = next(uuid for uuid, one in page.controls.items() if one.get('label') == 'Resume')
    page.wait(lambda: page.controls[top]['label'] == ON, 'one button to press')
    assert not page.controls[top]['disabled']
    page.wait(lambda: 'press Torque on, then give a goal' in page.text(), 'what to do')
    assert 'the elbow is away' not in page.text(), 'nothing else can be done before'
    page.choose(ON, True)  # the first of that name
    page.wait(lambda: driver.asked == ['torque True'], 'the torque')
    driver.report(b'\x00', 'holding', state='holding', torque='6 of 6')
    page.wait(lambda: driver.asked == asked and page.controls[top]['label'] == 'Resume', 'the end of the fault')
    page.run(1.0)
    assert driver.asked == asked, 'a stop stays'
