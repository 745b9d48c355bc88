# SPDX-License-Identifier: Apache-2.0
"""The topics and services of one tool."""
