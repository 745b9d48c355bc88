# SPDX-License-Identifier: Apache-2.0
"""Searches over many goals or many starts."""
