# SPDX-License-Identifier: Apache-2.0
"""The browser viewer: a ROS node that uses topics, services and parameters only."""
