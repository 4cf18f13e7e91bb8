"""What a worker's runtime.json says, as far as Afresh uses it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ConfigDict, JsonValue, ValidationError
from pydantic.alias_generators import to_camel

from lifecycle.value import Value


class Runtime(Value):
    """The known keys of runtime.json. A value of another kind than the reference system writes counts as absent
    and is named in *dropped*: one bad value does not lose the rest. *error* says why nothing could be read.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, strict=True)

    worker_id: str | None = None
    state: str | None = None
    phase: str | None = None
    checkpoint_status: str | None = None
    current_task: str | None = None
    current_mission_id: str | None = None
    current_assignment_id: str | None = None
    session_id: str | None = None
    cwd: str | None = None
    needs_human: bool = False
    blocked_reason: str | None = None
    next_action: str | None = None
    notify_session_key: str | None = None
    last_dispatch_at: float | None = None
    context_tokens: int | None = None
    context_state: str | None = None
    accepting_work: bool | None = None
    dropped: tuple[str, ...] = ()
    error: str | None = None


_OURS = {"dropped", "error"}


def runtime_from(found: Mapping[str, JsonValue]) -> Runtime:
    """Take over the known keys, leniently."""
    known = {field.alias or name: None for name, field in Runtime.model_fields.items() if name not in _OURS}
    values = {key: found[key] for key in known if found.get(key) is not None}
    try:
        return Runtime.model_validate(values)
    except ValidationError as error:
        bad = {str(complaint["loc"][0]) for complaint in error.errors(include_url=False)}
    kept = {key: value for key, value in values.items() if key not in bad}
    return Runtime.model_validate(kept).model_copy(update={"dropped": tuple(sorted(bad))})
