# SPDX-License-Identifier: Apache-2.0
"""How long a request of MoveIt may be searched after it has waited for those before it, without DDS."""

from __future__ import annotations

from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest
from builtin_interfaces.msg import Duration
from moveit_plain import PositionIKRequest
from small_arm import PARAMETERS, arm_urdf

from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.ros.goals.frames import Frames
from ik_node.ros.moveit.answers import Code, Query
from ik_node.ros.moveit.services import MoveItServices

WAITED = 2.0  # [s] in the queue


@pytest.mark.parametrize(('timeout', 'left'), [(5, 3.0), (0, float('inf'))])
def test_the_wait_in_the_queue_counts_as_part_of_the_timeout(timeout, left):
    model = ArmModel.build(arm_urdf(), ArmSettings(**PARAMETERS, self_collision='false'))
    node: Any = SimpleNamespace(
        context=SimpleNamespace(on_shutdown=lambda _: None),
        create_service=lambda *_, **__: None,
        get_logger=lambda: SimpleNamespace(debug=lambda _: None),
        get_fully_qualified_name=lambda: '/ik_node',
    )
    tool: Any = SimpleNamespace(tool='', snapshot=lambda: SimpleNamespace(model=model))
    services = MoveItServices(node, [tool], lambda: {'': model}, Frames(node))
    given: list[Query] = []

    def answer(*asked: Any) -> str:
        given.append(asked[-1])
        return 'solved'

    request = SimpleNamespace(ik_request=PositionIKRequest(timeout=Duration(sec=timeout)))
    response: Any = SimpleNamespace(error_code=SimpleNamespace(val=0))
    services._work(answer, request, response, perf_counter() - WAITED)
    services.close()
    assert response.error_code.val == Code.SUCCESS
    assert given[0].timeout <= left
    assert (given[0].timeout == left) == (timeout == 0)
