# SPDX-License-Identifier: Apache-2.0
"""Straight lines and curves, and their timing."""
