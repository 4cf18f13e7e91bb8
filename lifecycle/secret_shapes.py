"""What keys and tokens look like where nothing names them: by the beginning that their maker gives them.

Each is looked for only in a text that holds one of its marks, so that many shapes cost little more than few.
"""

from __future__ import annotations

import re
from typing import NamedTuple

ALONE = r"(?<![A-Za-z0-9_-])"
"""Not in the middle of a longer word: base64 holds every short beginning somewhere."""


class Shape(NamedTuple):
    """*kind* stands in the place of what *pattern* finds; any of *marks* is in every text where it finds anything."""

    kind: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(kind: str, marks: str, pattern: str, *, alone: str = ALONE) -> Shape:
    return Shape(kind, tuple(marks.split()), re.compile(f"{alone}(?:{pattern})"))


_W = "[A-Za-z0-9_-]"
_A = "[A-Za-z0-9]"

SHAPES = (
    _shape("jwt", "eyJ", rf"eyJ{_W}{{8,}}\.{_W}{{8,}}(?:\.{_W}*)?"),
    # Keys of models' providers
    _shape("api-key", "sk-", rf"sk-(?=[A-Za-z_-]{{0,200}}[0-9]){_W}{{16,}}"),
    _shape("api-key", "sk_ rk_ pk_", rf"(?:[rs]k_(?:live|test)_{_A}{{10,}}|sk_{_A}{{30,}})"),
    _shape(
        "api-key",
        "gsk_ xai- pplx- nvapi- csk- tvly- pcsk_ lsv2_ r8_",
        rf"(?:gsk_|xai-|pplx-|nvapi-|csk-|tvly-|pcsk_|lsv2_[a-z]{{2}}_|r8_)(?={_W}{{0,200}}[0-9]){_W}{{20,}}",
    ),
    _shape("huggingface-token", "hf_", rf"hf_{_A}{{20,}}"),
    _shape("google-key", "AIza GOCSPX-", rf"AIza{_W}{{30,}}|GOCSPX-{_W}{{20,}}"),
    _shape("google-token", "ya29. 1//0", r"ya29\.[A-Za-z0-9_.-]{20,}|1//0[A-Za-z0-9_-]{30,}"),
    # Code, packages, deployment
    _shape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"gh[pousr]_{_A}{{20,}}"),
    _shape("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    _shape("gitlab-token", "gl", rf"gl(?:pat|rt|ptt|dt|oas|cbt|ft|imt|agent|soat|ffct)-{_W}{{16,}}"),
    _shape("npm-token", "npm_", rf"npm_{_A}{{30,}}"),
    _shape("pypi-token", "pypi-", rf"pypi-{_W}{{40,}}"),
    _shape("docker-token", "dckr_", rf"dckr_(?:pat|oat)_{_W}{{20,}}"),
    _shape("atlassian-token", "ATATT3 ATCTT3", r"AT[AC]TT3[A-Za-z0-9_=-]{40,}"),
    _shape("terraform-token", ".atlasv1.", rf"{_A}{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{40,}}"),
    _shape("vault-token", "hvs. hvb. hvr.", rf"hv[sbr]\.{_W}{{20,}}"),
    _shape("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,}"),
    _shape("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{30,}"),
    # Clouds, databases, what watches them
    _shape("aws-key", "AKIA ASIA", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("digitalocean-token", "_v1_", r"do[opr]_v1_[0-9a-f]{40,}"),
    _shape("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?(?![0-9a-z])"),
    _shape("supabase-key", "sbp_ sb_secret_", rf"(?:sbp_[0-9a-f]{{40}}|sb_secret_{_W}{{20,}})"),
    _shape("grafana-token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9_+/=]{20,}"),
    _shape("newrelic-key", "NRAK-", r"NRAK-[A-Z0-9]{20,}"),
    _shape("sentry-token", "sntry", r"sntry[su]_[A-Za-z0-9_+/=.-]{20,}"),
    # Messages, payment, shops, desks
    _shape("slack-token", "xox xapp-", r"xox[abeoprs]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{10,}"),
    _shape("telegram-token", ":", r"[0-9]{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _shape("discord-token", ".", rf"[MNO]{_W}{{23,27}}\.{_W}{{6,7}}\.{_W}{{27,45}}(?![A-Za-z0-9_-])"),
    _shape("sendgrid-key", "SG.", rf"SG\.{_W}{{16,}}\.{_W}{{16,}}"),
    _shape("twilio-key", "SK", r"SK[0-9a-f]{32}(?![0-9A-Za-z])"),
    _shape("stripe-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{20,}"),
    _shape("shopify-token", "shp", r"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}"),
    _shape("square-token", "EAAA", rf"EAAA{_W}{{56,62}}(?![A-Za-z0-9_/+=-])", alone="(?<![A-Za-z0-9_/+=-])"),
    _shape("linear-key", "lin_", rf"lin_(?:api|oauth)_{_A}{{30,}}"),
    _shape("notion-token", "ntn_", rf"ntn_{_A}{{30,}}"),
    _shape("figma-token", "figd_", rf"figd_{_W}{{30,}}"),
)


def without_shapes(text: str) -> str:
    """*text* with `[redacted:<kind>]` where a key or token of a known shape stood."""
    for kind, marks, pattern in SHAPES:
        if any(mark in text for mark in marks):
            text = pattern.sub(f"[redacted:{kind}]", text)
    return text
