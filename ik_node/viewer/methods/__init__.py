"""The local methods: which one solves, and how it finds its solution, step by step."""
