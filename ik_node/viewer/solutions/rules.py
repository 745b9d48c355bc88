# SPDX-License-Identifier: Apache-2.0
"""Rules: what ik_node allows an arm besides the limits of its description."""

from __future__ import annotations

from typing import NamedTuple

from rclpy.node import Node

from ik_node.ros.remote_parameters import RemoteParameters

COLLISION, SRDF, WORKSPACE = 'self_collision', 'srdf_file', 'workspace'  # parameters of ik_node


class Rules(NamedTuple):
    """collisions: links must keep apart, except pairs in srdf_file. workspace: as for Workspace.of."""

    collisions: bool = True
    srdf_file: str = ''
    workspace: tuple[float, ...] = (0.0,) * 6


class RemoteRules:
    """The rules of each tool, read from ik_node; call refresh regularly."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: dict[str, RemoteParameters] = {}  # by the prefix of a tool

    def refresh(self) -> None:
        """Request the values."""
        for known in self._known.values():
            known.refresh()

    def of(self, tool: str) -> Rules:
        """Return the rules of a tool, the defaults until ik_node has answered."""
        workspace = f'{tool}.{WORKSPACE}' if tool else WORKSPACE
        if tool not in self._known:
            names = (COLLISION, SRDF, workspace)
            self._known[tool] = RemoteParameters(self._node, 'ik_node', names, lambda _: None)
            self._known[tool].refresh()
        values = self._known[tool].values
        return Rules(
            values.get(COLLISION) != 'false',
            values.get(SRDF, ''),
            tuple(values.get(workspace, Rules().workspace)),
        )
