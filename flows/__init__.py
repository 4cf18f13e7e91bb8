"""Prefect flows: one worker's renewal, the sweep over all, and the smaller ones."""

import logging

# Prefect's setting for extra loggers gives them a handler and no level: the root's WARNING would keep from a run's log
# what its steps say of themselves. Whoever has set a level keeps it.
for _package in ("lifecycle", "tasks", "flows"):
    if logging.getLogger(_package).level == logging.NOTSET:
        logging.getLogger(_package).setLevel(logging.INFO)
