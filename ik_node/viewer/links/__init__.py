# SPDX-License-Identifier: Apache-2.0
"""Changing the lengths of links."""
