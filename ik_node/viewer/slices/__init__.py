# SPDX-License-Identifier: Apache-2.0
"""Slices through the workspace, as maps in the scene."""
