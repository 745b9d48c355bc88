"""The topics and services of one tool."""
