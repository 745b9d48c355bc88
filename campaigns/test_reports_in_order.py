# SPDX-License-Identifier: Apache-2.0
"""A fault at any step of a report that belongs to no goal: no state is told that is older than the fault."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from interleaved import at_step
from node_harness import running
from small_arm import arm_urdf

from ik_node import kernels
from ik_node.control.requests import Level
from ik_node.control.states import State
from ik_node.errors import InputError
from ik_node.ros.reports import NodeTime

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

    monkeypatch.setattr(node, 'build_models', build)
    return lambda: node._description_handler.prepare('another')


@pytest.mark.parametrize('reporting', [announces_kernels, reminds, rejects_a_description])
def test_a_fault_at_any_step_of_another_report_is_not_followed_by_an_older_state(reporting, monkeypatch):
    with running(arm_urdf()) as client:
        (tool,) = client.served._tools
        for timer in client.served.timers:
            timer.cancel()
        tool._pace = SimpleNamespace(add=lambda report: heard.append(report), publish_due=lambda: None)
        queue = tool.own_controller._reports

        def delivered():  # by whatever thread
            with queue._lock:
                return not (queue._reports or queue._delivering)

        for number in range(1, 2000):
            heard = []
            fault = threading.Thread(target=tool.own_controller.fault, args=['made up'])

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
            tool.own_controller.resume()
            client.wait(delivered, 'the end of all deliveries')
        assert number > 50
        assert [report.state for report in heard] == [State.HOLDING]
