# SPDX-License-Identifier: Apache-2.0
"""The interactive marker of a tool in RViz: six handles, a ball that is dragged freely, and the tool axis."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Pose, Quaternion, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import InteractiveMarker, InteractiveMarkerControl, Marker

from ik_node.model.arm import Arm
from ik_node.ros.conversions import array_point

SCALE = 0.3  # of the handles, in reaches of the arm
BALL, AXIS, SHAFT, HEAD = 0.05, 0.2, 0.012, 0.03  # in reaches of the arm
WISH = ColorRGBA(r=1.0, g=0.62, b=0.11, a=0.9)  # the colours of the browser viewer
ANSWER = ColorRGBA(r=0.15, g=0.7, b=0.67, a=0.6)
HALF = float(np.sqrt(0.5))
# By axis, the rotation that turns x there: handles act along the x axis of their orientation.
AXES = {
    'x': Quaternion(w=1.0),
    'y': Quaternion(w=HALF, z=HALF),
    'z': Quaternion(w=HALF, y=-HALF),
}


def wish(arm: Arm, name: str, pose: Pose) -> InteractiveMarker:
    """Return the marker that is dragged; it stands at the pose of the tip frame in the base link."""
    marker = _marker(arm, name, pose)
    marker.description = f'goal {name}'
    marker.scale = SCALE * arm.reach
    for axis, orientation in AXES.items():
        for kind, mode in (
            ('move', InteractiveMarkerControl.MOVE_AXIS),
            ('turn', InteractiveMarkerControl.ROTATE_AXIS),
        ):
            handle = InteractiveMarkerControl(name=f'{kind} {axis}', interaction_mode=mode)
            handle.orientation = orientation
            marker.controls.append(handle)
    marker.controls.append(_shown('ball', InteractiveMarkerControl.MOVE_3D, _tool(arm, WISH)))
    return marker


def answer(arm: Arm, name: str, pose: Pose) -> InteractiveMarker:
    """Return a marker that cannot be dragged: where the tool can be."""
    marker = _marker(arm, name, pose)
    marker.controls.append(_shown('answer', InteractiveMarkerControl.NONE, _tool(arm, ANSWER)))
    return marker


def _shown(name: str, mode: int, markers: list[Marker]) -> InteractiveMarkerControl:
    """Return a control with shapes of its own."""
    control = InteractiveMarkerControl(name=name, interaction_mode=mode, always_visible=True)
    control.orientation.w = 1.0
    control.markers = markers
    return control


def _marker(arm: Arm, name: str, pose: Pose) -> InteractiveMarker:
    marker = InteractiveMarker(name=name, pose=pose, scale=1.0)
    marker.header.frame_id = arm.base_link  # the stamp stays zero: the marker moves with the frame
    return marker


def _tool(arm: Arm, colour: ColorRGBA) -> list[Marker]:
    """Return a ball at the tool point and an arrow along the tool axis, in the tip frame."""
    ball = Marker(type=Marker.SPHERE, color=colour, scale=_size(arm, BALL, BALL, BALL))
    ball.pose.position = array_point(arm.tool_point)
    ball.pose.orientation.w = 1.0
    arrow = Marker(type=Marker.ARROW, color=colour, scale=_size(arm, SHAFT, HEAD, HEAD))
    arrow.pose.orientation.w = 1.0
    head = arm.tool_point + AXIS * arm.reach * arm.tool_axis
    arrow.points = [array_point(arm.tool_point), array_point(head)]
    return [ball, arrow]


def _size(arm: Arm, x: float, y: float, z: float) -> Vector3:
    return Vector3(x=x * arm.reach, y=y * arm.reach, z=z * arm.reach)
