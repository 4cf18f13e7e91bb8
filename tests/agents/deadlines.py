"""What tests allow a scripted agent."""

from __future__ import annotations

DEADLINES = {
    "delivery": 30,
    "handoff_answer": 60,
    "idle_before_stop": 30,
    "exit": 5,
    "term": 5,
    "ready": 60,
    "resume_answer": 60,
}
"""Seconds. The scripted agent answers in a tenth of one, on a busy machine in many: a test that waits for a deadline
to pass makes that one short, and no other."""
