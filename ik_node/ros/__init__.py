# SPDX-License-Identifier: Apache-2.0
"""The ROS 2 nodes: message conversion, parameters, topics and services."""
