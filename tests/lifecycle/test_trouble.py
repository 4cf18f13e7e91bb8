"""What an agent says when its provider does not answer, and what follows from it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lifecycle.parking import JITTER, rests_until
from lifecycle.trouble import Kind, Trouble, trouble_in

NOW = datetime(2026, 11, 30, 15, 0, tzinfo=UTC)
"""A Monday; 10:00 in Toronto, 16:00 in Zurich."""


def at(day: int, hour: int, minute: int = 0, second: int = 0, *, month: int = 11) -> datetime:
    return datetime(2026, month, day, hour, minute, second, tzinfo=UTC)


def after(**span: float) -> datetime:
    return NOW + timedelta(**span)


LINES: list[tuple[str, Kind, datetime | None]] = [
    # U1: a time of day, with and without a zone
    ("limit resets 10:30pm (America/Toronto)", "rate_limit", at(1, 3, 30, month=12)),
    ("Usage limit reached, resets 9am (America/Toronto)", "quota", at(1, 14, month=12)),
    ("5-hour limit reached ∙ resets 3am (Europe/Zurich)", "quota", at(1, 2, month=12)),
    ("You've hit your usage limit. Try again at 3:05 PM.", "quota", at(30, 15, 5)),
    ("You've hit your limit · resets 2:15pm", "quota", at(1, 14, 15, month=12)),
    ("session limit reached, resets at 16:00 UTC", "quota", at(30, 16)),
    ("rate limit: resets at 14:59 GMT", "rate_limit", at(1, 14, 59, month=12)),
    ("rate limit; resets midnight Pacific", "rate_limit", at(1, 8, month=12)),
    ("Rate limit exceeded. Available again at 11:30 JST", "rate_limit", at(1, 2, 30, month=12)),
    ("limit resets 9pm (Mars/Olympus)", "rate_limit", None),
    # days and dates
    ("weekly limit reached · resets Dec 3, 9am (UTC)", "quota", at(3, 9, month=12)),
    ("Weekly limit reached; resets Thursday 9:00 AM UTC", "quota", at(3, 9, month=12)),
    ("monthly limit: resets Mon 9:00 AM UTC", "quota", at(7, 9, month=12)),
    ("usage limit reached, try again tomorrow at 7am UTC", "quota", at(1, 7, month=12)),
    ("Rate limited until 2026-11-30T16:00:00Z", "rate_limit", at(30, 16)),
    ("rate limit resets at 2026-11-30 12:30:00-05:00", "rate_limit", at(30, 17, 30)),
    ("2026-11-30 14:59:58 ERROR 429 too many requests", "rate_limit", None),
    ("Claude AI usage limit reached|1796054400", "quota", at(30, 16)),
    ('429 {"x-ratelimit-reset": 1796054400}', "rate_limit", at(30, 16)),
    ("Retry-After: Mon, 30 Nov 2026 16:28:00 GMT", "rate_limit", at(30, 16, 28)),
    # spans
    ("try again in 2h 42m", "rate_limit", after(hours=2, minutes=42)),  # U4
    ("Retry-After: 37", "rate_limit", after(seconds=37)),
    ("HTTP 429: retry_after=2.5", "rate_limit", after(seconds=2.5)),
    ("Rate limit reached for gpt in organization org on tokens per min. Please try again in 6m0s.", "rate_limit",
     after(minutes=6)),
    ("Rate limit reached on requests per min (RPM). Please try again in 20ms.", "rate_limit", after(milliseconds=20)),
    ('429 RESOURCE_EXHAUSTED "retryDelay": "37s"', "rate_limit", after(seconds=37)),
    ("Too many requests, please wait 12 seconds", "rate_limit", after(seconds=12)),
    ("rate limited, try again in about 2 hours and 5 minutes", "rate_limit", after(hours=2, minutes=5)),
    ("⏳ Nous Portal rate limit active — resets in 12m 30s.", "rate_limit", after(minutes=12, seconds=30)),
    ("x-ratelimit-reset-requests: 1m12s HTTP 429", "rate_limit", after(seconds=72)),
    ("❌ Rate limited after 3 retries — HTTP 429: retry in 1 day", "rate_limit", after(days=1)),
    ("rate limit, try again in 400 days", "rate_limit", None),
    # a wall without a time (U2), and a moment's overload
    ("daily quota exceeded", "quota", None),
    ("You exceeded your current quota, please check your plan and billing details.", "quota", None),
    ("❌ Billing or credits exhausted — HTTP 402: insufficient credits", "quota", None),
    ("Your credit balance is too low to access the API", "quota", None),
    ("Rate limit exceeded: free-models-per-day", "quota", None),
    ("❌ Rate limited after 3 retries — HTTP 429: rate limit reached", "rate_limit", None),
    ("overloaded, retry in 2 s", "overloaded", after(seconds=2)),
    ("API call failed after 3 retries: HTTP 529: overloaded_error", "overloaded", None),
    ("API call failed after 3 retries: HTTP 503: Service Unavailable", "overloaded", None),
    ("The model is at capacity, try again later", "overloaded", None),
    # O1: a login
    ("please log in", "login", None),
    ("Not logged in · Please run /login", "login", None),
    ("❌ Non-retryable error (HTTP 401): HTTP 401: invalid API key", "login", None),
    ("❌ Non-retryable client error (HTTP 401). Aborting.", "login", None),
    ("🔐 Anthropic 401 — authentication failed.", "login", None),
    ("OAuth token has expired. Please obtain a new token or refresh it; try again in 5 minutes", "login", None),
    ("authentication_error: invalid x-api-key", "login", None),
    ("HTTP 403: the access token was revoked", "login", None),
    # anything else that failed
    ("API call failed after 3 retries: HTTP 500: stub error", "api_failure", None),
    ("API call failed after 3 retries: Connection error.", "api_failure", None),
    ("API call failed after 3 retries: Request timed out after 600 seconds", "api_failure", None),
    ("❌ Max retries (3) exceeded for invalid responses. Giving up.", "api_failure", None),
    ("HTTP 502: Bad Gateway — Ray 8a1b", "api_failure", None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "resets_at"), LINES, ids=[line[0][:40] for line in LINES])
def test_a_notice_is_told_apart_with_the_time_that_it_states(line: str, kind: Kind, resets_at: datetime | None) -> None:
    found = trouble_in(line, NOW, local=UTC)

    assert found is not None
    assert (found.kind, found.resets_at) == (kind, resets_at)


def test_a_time_without_a_zone_is_the_hosts() -> None:
    found = trouble_in("usage limit, resets 10:30pm", NOW, local=ZoneInfo("America/Toronto"))

    assert found is not None
    assert found.resets_at == at(1, 3, 30, month=12)


@pytest.mark.parametrize("line", ["", "Noted (22 messages so far).", "✓ Compressed: 22 → 12 messages"])
def test_a_line_that_tells_of_no_trouble_is_none(line: str) -> None:
    assert trouble_in(line, NOW) is None


def test_a_stated_time_is_kept_with_a_jitter_that_is_the_workers_own() -> None:
    stated = Trouble(kind="quota", words="", resets_at=after(hours=2))
    times = {name: rests_until(stated, 0, name, NOW) for name in ("swarm1", "swarm2", "swarm3")}

    assert all(at is not None and after(hours=2) <= at <= after(hours=2) + JITTER for at in times.values())
    assert len(set(times.values())) == 3
    assert times["swarm1"] == rests_until(stated, 3, "swarm1", NOW)


@pytest.mark.parametrize(
    ("kind", "minutes"),
    [
        ("rate_limit", [15, 30, 60, 120, 240, 240]),
        ("quota", [15, 30, 60, 120, 240, 240]),
        ("api_failure", [2, 4, 8, 16, 32, 60]),
        ("overloaded", [2, 4, 8, 16, 32, 60]),
    ],
)
def test_without_a_stated_time_each_rest_is_twice_the_last_up_to_a_limit(kind: Kind, minutes: list[int]) -> None:
    rests = [rests_until(Trouble(kind=kind, words=""), parks, "swarm1", NOW) for parks in range(6)]

    assert rests == [after(minutes=span) for span in minutes]


def test_no_time_cures_a_lost_login() -> None:
    assert rests_until(Trouble(kind="login", words=""), 0, "swarm1", NOW) is None
