# SPDX-License-Identifier: Apache-2.0
"""Recordings of what happened to an arm: MCAP files with messages of ROS 2."""
