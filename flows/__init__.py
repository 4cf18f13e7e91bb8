"""Prefect flows: one worker's renewal, the sweep over all, and the smaller ones."""
