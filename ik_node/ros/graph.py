# SPDX-License-Identifier: Apache-2.0
"""graph: what nodes ask ROS about the topics of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rclpy.node import Node
    from rclpy.topic_endpoint_info import TopicEndpointInfo


class Graph:
    """Nodes and topics, as far as a node knows of them; a simulation has another one."""

    def count_publishers(self, node: Node, topic: str) -> int:
        """Return how many publishers a topic has."""
        return int(node.count_publishers(topic))

    def publishers(self, node: Node, topic: str) -> list[TopicEndpointInfo]:
        """Return the publishers of a topic. One that was killed is listed until its lease ends."""
        return list(node.get_publishers_info_by_topic(topic))

    def publishing_nodes(self, node: Node, topic: str) -> list[str]:
        """Return the full names of the nodes that publish a topic, one per publisher, sorted."""
        found = self.publishers(node, topic)
        return sorted(f'{one.node_namespace.rstrip("/")}/{one.node_name}' for one in found)

    def publisher_ids(self, node: Node, topic: str) -> set[tuple[int, ...]]:
        """Return the ids of the publishers of a topic."""
        return {tuple(one.endpoint_gid) for one in self.publishers(node, topic)}

    def topics(self, node: Node) -> list[tuple[str, list[str]]]:
        """Return the topics and their types."""
        return list(node.get_topic_names_and_types())


graph = Graph()
