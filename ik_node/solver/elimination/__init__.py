# SPDX-License-Identifier: Apache-2.0
"""All solutions of arms of any geometry, by elimination of joints."""
