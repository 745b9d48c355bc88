# SPDX-License-Identifier: Apache-2.0
"""Displays in RViz: markers, and the interactive marker of the goal."""
