# SPDX-License-Identifier: Apache-2.0
"""Reports that belong to no goal: none is older than the one before it, and none is taken for a goal's."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from interleaved import at_step
from node_harness import running
from small_arm import arm_urdf

from ik_node import kernels
from ik_node.control.controller.controller import ArmController
from ik_node.control.state.report import Level
from ik_node.control.state.states import State
from ik_node.errors import InputError
from ik_node.ros.goals.node_time import NodeTime
from ik_node.ros.node import robot_switch

LONG = 60.0  # [s]
SOON = 0.02  # [s] in which a thread ends that no lock holds up


def announces_kernels(node, monkeypatch):
    now = kernels.KernelState(kernels.Stage.READY, 1.0, compiled=True)
    monkeypatch.setattr(kernels, 'state', lambda: now)
    node._diagnostics._kernels = kernels.KernelState(kernels.Stage.PLAIN)
    return node._diagnostics._announce_kernels


def reminds(node, monkeypatch):
    monkeypatch.setattr(NodeTime, 'stands', True)
    health, (tool,) = node._diagnostics, node._tools
    health._started, health._announced = 0.0, {}
    return lambda: health._remind(tool, State.HOLDING, Level.WARN, 'made up')


def rejects_a_description(node, monkeypatch):
    def build(*_):
        raise InputError('made up')

    monkeypatch.setattr(robot_switch, 'build_models', build)
    return lambda: node._switch.prepare('another')


@pytest.mark.parametrize('reporting', [announces_kernels, reminds, rejects_a_description])
def test_a_fault_at_any_step_of_another_report_is_not_followed_by_an_older_state(reporting, monkeypatch):
    with running(arm_urdf()) as client:
        (tool,) = client.served._tools
        for timer in client.served.timers:
            timer.cancel()
        tool._pace = SimpleNamespace(add=lambda report: heard.append(report), publish_due=lambda: None)
        queue = tool.own._reports

        def delivered():  # by whatever thread
            with queue._lock:
                return not (queue._reports or queue._delivering)

        for number in range(1, 2000):
            heard = []
            fault = threading.Thread(target=tool.own.fault, args=['made up'])

            def begin(fault=fault):
                fault.start()
                fault.join(SOON)

            within = at_step(number, begin, reporting(client.served, monkeypatch))
            if within:
                fault.join(LONG)
            client.wait(delivered, 'the end of all deliveries')
            if not within:
                break
            after = heard[[report.state for report in heard].index(State.FAULTED) :]
            assert {report.state for report in after} == {State.FAULTED}, number
            assert {report.phase for report in after} <= {'faulted', 'rejected'}, number
            tool.own.resume()
            client.wait(delivered, 'the end of all deliveries')
        assert number > 50
        assert [report.state for report in heard] == [State.HOLDING]


def test_an_unexpected_error_while_a_robot_is_built_is_reported(monkeypatch):
    def build(*_):
        raise RuntimeError('made up')

    with running(arm_urdf()) as client:
        monkeypatch.setattr(robot_switch, 'build_models', build)
        with pytest.raises(RuntimeError, match='made up'):
            client.served._switch.prepare('another')
        client.wait_said(
            "robot_description rejected: unexpected error, please report it: RuntimeError('made up')"
        )
        assert client.said(-1)['state'] == 'rejected'


def test_a_report_without_a_goal_leaves_the_goal_that_is_pursued_alone():
    with running(arm_urdf(), speed_scaling=0.05) as client:
        (tool,) = client.served._tools
        place, _ = tool.snapshot().model.arm.fk([2.0, 0.5, 0.5, 0.5, 0.5])
        taken = client.answer('goal_point', client.point(place))
        assert taken.message.startswith('solved')
        shown, totals = tool.markers._goal, dict(client.served._statistics._totals)
        assert shown is not None
        assert tool.own.tell(Level.OK, 'made up')
        assert tool.own.tell(Level.ERROR, 'made up, too', 'rejected')
        client.wait_said('made up, too')
        assert client.said(-2)['state'] == 'moving'
        assert tool.markers._goal is shown
        assert client.served._statistics._totals == totals
        assert tool.last_report.goal is shown[0]


def test_a_report_that_holds_in_one_state_is_dropped_in_another():
    heard = []
    controller = ArmController(heard.append)
    assert not controller.tell(Level.WARN, 'made up', 'waiting', State.HOLDING)
    assert not heard
    assert controller.tell(Level.WARN, 'made up', 'waiting', State.UNCONFIGURED)
    assert [(report.phase, report.state) for report in heard] == [('waiting', State.UNCONFIGURED)]
