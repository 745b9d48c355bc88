# SPDX-License-Identifier: Apache-2.0
"""Programs of taught points: to read and write, to check before they run, and to run. Without ROS."""
