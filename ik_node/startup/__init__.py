# SPDX-License-Identifier: Apache-2.0
"""Starts the programs, as a launch description or as processes."""
