# SPDX-License-Identifier: Apache-2.0
"""The local methods: selection, and display of their descents step by step."""
