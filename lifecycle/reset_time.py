"""When a limit ends, in the many ways in which providers and agents say so. Pure."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

FARTHEST = timedelta(days=35)
"""A monthly quota; what lies beyond is no reset time of a limit."""

_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_UNIT = r"days?|d|hours?|hrs?|h|minutes?|mins?|milliseconds?|ms|m|seconds?|secs?|s"
_PART = re.compile(rf"(\d+(?:\.\d+)?)\s*({_UNIT})(?![a-z])")
_SPAN = re.compile(
    r"(?:try(?:ing)? (?:it |your request |this )?again|retry(?:ing)?(?:[-_ ]?(?:after|delay))?|(?:please )?wait"
    r"|resets?(?:[-_ ](?:in|after|tokens|requests))?|available(?: again)?)"
    r"[\"':=\s]*(?:in|after|for|within)?[\"':=\s]*(?:about|approximately|another|~)?\s*"
    rf"((?:\d+(?:\.\d+)?\s*(?:{_UNIT})(?![a-z])[\s,]*(?:and\s+)?|(?:\d+(?:\.\d+)?[dhms])+)+)"
)
_COMPACT = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_BARE = re.compile(r"(?:retry[-_ ]?after(?:[-_ ]seconds)?|reset[-_ ]?after)[\"':=\s]+(\d+(?:\.\d+)?)(?![\w:./-])")
_HTTP_DATE = re.compile(r"(?:mon|tue|wed|thu|fri|sat|sun), \d{1,2} [a-z]{3} \d{4} \d\d:\d\d:\d\d gmt")
_EPOCH = re.compile(r"(?:reset\w*|until|limit[^|]{0,30}\|)\W{0,6}(1[6-9]\d{8})(?:\d{3})?\b")
_ISO = re.compile(r"\b(\d{4}-\d\d-\d\d)[t ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*(z\b|utc\b|[+-]\d\d:?\d\d)?")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "|".join(_MONTHS)
_CLOCK = re.compile(
    r"(?:resets?|try again|available|until|retry|back)\b(?: again)?(?: your limit)?[^\d\n(]{0,30}?"
    rf"(?:\b(?P<day>{'|'.join(_DAYS)})[a-z]*,? )?(?:\b(?P<month>{_MONTH})[a-z]*\.? (?P<date>\d{{1,2}})(?:st|nd|rd|th)?"
    r"(?:,? \d{4})?,? (?:at )?)?"
    r"(?P<tomorrow>tomorrow (?:at )?)?"
    r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)?\s*(?P<half>[ap]\.?m\b\.?)?|(?P<midnight>midnight))"
)
_NAMED_ZONE = re.compile(r"\b([A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?)\b")
_SHORT_ZONE = re.compile(r"\b(UTC|GMT|PST|PDT|PT|Pacific|EST|EDT|ET|Eastern|CET|CEST|BST|JST|IST)\b")
_SHORT = {
    **dict.fromkeys(("UTC", "GMT"), "UTC"),
    **dict.fromkeys(("PST", "PDT", "PT", "Pacific"), "America/Los_Angeles"),
    **dict.fromkeys(("EST", "EDT", "ET", "Eastern"), "America/New_York"),
    **dict.fromkeys(("CET", "CEST"), "Europe/Paris"),
    "BST": "Europe/London",
    "JST": "Asia/Tokyo",
    "IST": "Asia/Kolkata",
}


def reset_time(text: str, now: datetime, *, local: tzinfo | None = None) -> datetime | None:
    """When *text* says that the limit ends, in UTC; None where it does not say, or says what is past or absurd.

    A time of day that has passed is tomorrow's. One without a zone is *local* time, the host's own if not given:
    an agent speaks its host's. A zone that nobody knows is no time at all.
    """
    lower = text.lower()
    found = (
        _stated_span(lower, now)
        or _stated_date(text, lower, now, local)
        or _stated_time_of_day(text, lower, now, local)
    )
    return found if found is not None and now < found <= now + FARTHEST else None


def _stated_span(lower: str, now: datetime) -> datetime | None:
    if match := _SPAN.search(lower):
        parts = _COMPACT.findall(match[1]) if _COMPACT.match(match[1]) else _PART.findall(match[1])
        seconds = sum(float(number) * _UNITS[_unit(unit)] for number, unit in parts)
        return now + timedelta(seconds=seconds) if seconds < FARTHEST.total_seconds() else None
    bare = _BARE.search(lower)
    return now + timedelta(seconds=min(float(bare[1]), 1e8)) if bare else None


def _unit(word: str) -> str:
    return "ms" if word.startswith(("ms", "milli")) else word[0]


def _stated_date(text: str, lower: str, now: datetime, local: tzinfo | None) -> datetime | None:
    if match := _HTTP_DATE.search(lower):
        return parsedate_to_datetime(match[0])
    if match := _EPOCH.search(lower):
        return datetime.fromtimestamp(int(match[1]), UTC)
    for match in _ISO.finditer(lower):
        zone = (match[3] or "").upper().replace("UTC", "Z")
        try:
            at = datetime.fromisoformat(f"{match[1]}T{match[2]}{zone}")
        except ValueError:
            continue
        at = at.replace(tzinfo=_zone(text) or local or UTC) if at.tzinfo is None else at
        if at > now:  # the stamp of a log line is not when a limit ends
            return at.astimezone(UTC)
    return None


def _stated_time_of_day(text: str, lower: str, now: datetime, local: tzinfo | None) -> datetime | None:
    match = _CLOCK.search(lower)
    if match is None or not (match["midnight"] or match["minute"] or match["half"]):
        return None
    named = _NAMED_ZONE.search(text)
    zone = _zone(text)
    if named and zone is None:
        return None
    zone = zone or local or now.astimezone().tzinfo or UTC
    hour, minute = int(match["hour"] or 0), int(match["minute"] or 0)
    if match["half"]:
        hour = hour % 12 + (12 if match["half"].startswith("p") else 0)
    try:
        at = time(hour, minute)
        return _coming(match, at, now.astimezone(zone), zone).astimezone(UTC)
    except ValueError:
        return None


def _coming(match: re.Match[str], at: time, here: datetime, zone: tzinfo) -> datetime:
    """The first such moment that is still to come."""
    today = here.date()
    if match["month"]:
        month, day = _MONTHS.index(match["month"]) + 1, int(match["date"])
        this_year = datetime.combine(date(today.year, month, day), at, zone)
        return this_year if this_year > here else datetime.combine(date(today.year + 1, month, day), at, zone)
    if match["tomorrow"]:
        return datetime.combine(today + timedelta(days=1), at, zone)
    ahead = (_DAYS.index(match["day"]) - today.weekday()) % 7 if match["day"] else 0
    then = datetime.combine(today + timedelta(days=ahead), at, zone)
    return then if then > here else datetime.combine(then.date() + timedelta(days=7 if match["day"] else 1), at, zone)


def _zone(text: str) -> tzinfo | None:
    named, short = _NAMED_ZONE.search(text), _SHORT_ZONE.search(text)
    name = named[1] if named else _SHORT[short[1]] if short else None
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        return None
