# SPDX-License-Identifier: Apache-2.0
"""A selection of a recording as CSV: one row per message, a column per value."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

from ik_node.console import FORMULA, NUMBER
from ik_node.recording.reading import JOINTS, SECOND, recorded

TIME = 'time [s]'


def csv_text(path: Path, topic: str, begin: float = -math.inf, end: float = math.inf) -> str:
    """Return the messages between two times [s] since the first joints of a topic, as CSV.

    A row has the values of one message, the other columns are empty: columns are topic/joint, with /velocity
    and /effort where there are some, topic/x to topic/qw of poses, topic/0/x and so on of several,
    topic/vx to topic/wz of twists, and topic/message or topic/name/message of reports. Raises RecordingError.
    """
    messages = list(recorded(path))
    start = next((one.received for one in messages if (one.topic, one.kind) == (topic, JOINTS)), 0)
    rows = []
    for one in messages:
        seconds = (one.received - start) / SECOND
        if begin <= seconds <= end:
            rows.append({TIME: f'{seconds:.6f}', **_values(one.topic, one.kind, one.message)})
    columns = dict.fromkeys([TIME, *(name for row in rows for name in row)])
    text = io.StringIO()
    table = csv.DictWriter(text, list(columns), lineterminator='\n')
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Return a value for CSV: text of others that a spreadsheet would execute has an apostrophe in front."""
    live = isinstance(value, str) and FORMULA.match(value) and not NUMBER.match(value)
    return f"'{value}" if live else value


def _values(topic: str, kind: str, message: Any) -> dict[str, Any]:
    before = topic.lstrip('/')
    if kind == JOINTS:
        values = {
            f'{before}/{name}': value for name, value in zip(message.name, message.position, strict=False)
        }
        for what in ('velocity', 'effort'):
            pairs = zip(message.name, getattr(message, what), strict=False)
            values |= {f'{before}/{name}/{what}': value for name, value in pairs}
        return values
    if kind.endswith('/PoseStamped'):
        return _of_pose(before, message.pose)
    if kind.endswith('/PoseArray'):
        poses = enumerate(message.poses)
        return {name: value for k, pose in poses for name, value in _of_pose(f'{before}/{k}', pose).items()}
    if kind.endswith('/TwistStamped'):
        parts = {'v': message.twist.linear, 'w': message.twist.angular}
        return {f'{before}/{sign}{axis}': getattr(parts[sign], axis) for sign in parts for axis in 'xyz'}
    if kind.endswith('/Bool'):
        return {before: message.data}
    if kind.endswith('/PointStamped'):
        return {f'{before}/{axis}': getattr(message.point, axis) for axis in 'xyz'}
    if kind.endswith('/Float64MultiArray'):
        return {f'{before}/{index}': value for index, value in enumerate(message.data)}
    if kind.endswith('/JointTrajectory') and message.points:
        last = message.points[-1].positions
        return {f'{before}/{name}': value for name, value in zip(message.joint_names, last, strict=False)}
    if kind.endswith('/DiagnosticStatus'):
        return {f'{before}/message': message.message}
    if kind.endswith('/DiagnosticArray'):
        return {f'{before}/{status.name.lstrip("/")}/message': status.message for status in message.status}
    return {}


def _of_pose(before: str, pose: Any) -> dict[str, Any]:
    return {
        **{f'{before}/{axis}': getattr(pose.position, axis) for axis in 'xyz'},
        **{f'{before}/q{axis}': getattr(pose.orientation, axis) for axis in 'xyzw'},
    }
