"""Everything that can go wrong in a worker's life, each with a stable reason.

LifecycleError                 has .worker_id, a stable .reason, a sentence, .evidence
  Misuse                       the caller asked for something that cannot be: exit code 2
    ConfigurationError         afresh.toml or the environment
    RosterError                swarm.yaml
    InvalidWorkerId            not a worker id
    UnknownWorker              a well-formed id that no one declared
    OtherHost                  a run that is meant for another host
  PassingFault                 likely gone at the next try: the only kind that a task is tried again for
    TerminalError              tmux refused
    ContextUnreadable          the agent's records cannot be read
  NotNow                       nothing was typed and nothing needs to be: the renewal ends spared
  ParksHere                    the agent's provider fails or limits it: the renewal waits until a stored time
  RenewalInProgress            another process holds this worker
  LedgerError                  the ledger cannot be read or written
  ArchiveIndexError            the archive cannot be searched; nothing else depends on its index
  TextNotSendable              the agent's face would run, complete or swallow the text
  MemoryNotWritten             a memory event of the swarm cannot be written
  GitRefused                   git is missing, says no, or takes too long
  ArtifactMissing              no kept result has this handle
  StopsHere                    ends a renewal in a block; the reason is the block's
    PreflightFailed            something that brings the worker back is missing
      LaunchUnknown            nobody knows how the worker is started
    NotDelivered               our text has no row in the agent's database
    CheckpointRefused          the reply is missing, malformed or stale (reason says which)
    HandoffTimeout             no reply in time
    HandoffNotSaved            a write or its read-back failed
    HandoffOutdated            the worker went on working after its handoff
    BusyTooLong                the worker never became idle
    NotStopped                 processes of the old agent survived
    NotReady                   the new agent never showed its input line
    ResumeUnanswered           the new session did not answer in time
    ResumeRefused              the answer belongs to another renewal
    WeakResume                 twice in a row the new session took up something else than its handoff
    BaselineTooLarge           the fresh session starts above the soft limit
    AgentGone                  the agent ended while it was waited for
    ApiFailure                 the agent's provider failed again and again
    Stuck                      one flow run after the other ended at the same phase without a word
    Interfered                 someone else's act ended the renewal: a person typed, a dialog opened
"""

from __future__ import annotations

from typing import ClassVar

from lifecycle.redaction import redact
from lifecycle.trouble import Trouble


class LifecycleError(Exception):
    """The base of all. *detail* is one sentence for a human; *evidence* is what they need to judge it."""

    reason: str = "error"
    remedy: ClassVar[str] = ""

    def __init__(self, detail: str, *, worker_id: str = "", evidence: str = "", reason: str | None = None) -> None:
        detail = redact(detail)  # Prefect shows it, and so do notices and the ledger
        super().__init__(detail)
        self.detail = detail
        self.worker_id = worker_id
        self.evidence = evidence
        if reason is not None:
            self.reason = reason


class Misuse(LifecycleError):
    """The caller asked for something that cannot be; nothing was done."""

    reason = "misuse"


class ConfigurationError(Misuse):
    """The configuration cannot be used; the message names file and key."""

    reason = "configuration"


class RosterError(Misuse):
    """The roster exists and cannot be read."""

    reason = "roster"


class InvalidWorkerId(Misuse):
    """Not a worker id; no path or tmux target was built from it."""

    reason = "invalid_worker_id"


class UnknownWorker(Misuse):
    """A well-formed id that no roster, configuration or profile knows."""

    reason = "unknown_worker"


class OtherHost(Misuse):
    """A run that is meant for another host; nothing here was looked at."""

    reason = "other_host"


class PassingFault(LifecycleError):
    """The same call may go through later: no side effect yet, or one that a second run finds."""

    reason = "passing_fault"


class RenewalInProgress(LifecycleError):
    """Another process holds this worker's lock."""

    reason = "renewal_in_progress"


class LedgerError(LifecycleError):
    """The ledger cannot be read or written."""

    reason = "ledger"


class ArchiveIndexError(LifecycleError):
    """The archive's index cannot be made or read. It is derived, and may be deleted."""

    reason = "archive_index"


class TerminalError(PassingFault):
    """tmux refused or is not there. A step that is tried again looks before it acts."""

    reason = "terminal"


class ContextUnreadable(PassingFault):
    """The agent's own records cannot be read now; a reading made from them is unknown, never healthy."""

    reason = "unreadable"


class TextNotSendable(LifecycleError):
    """The agent's face would run, complete or swallow this text; nothing was typed."""

    reason = "not_sendable"


class MemoryNotWritten(LifecycleError):
    """A memory event of the swarm cannot be written; no renewal depends on it."""

    reason = "memory_not_written"


class GitRefused(LifecycleError):
    """git is missing, says no, or takes too long. Of what was begun nothing can be seen."""

    reason = "git"


class ArtifactMissing(LifecycleError):
    """No kept result has this handle, or its file is not what was kept."""

    reason = "artifact_missing"


class NotNow(LifecycleError):
    """The worker cannot be asked now, and nothing was typed. A later sweep finds it again."""

    reason = "not_now"


class ParksHere(LifecycleError):
    """A turn ended without an answer, and not for anything that the worker did. The old session is kept (U6).

    *failed_turn* is false where nothing was typed because the worker's account is known to be in *trouble*.
    """

    reason = "parked"

    def __init__(
        self, detail: str, *, trouble: Trouble, worker_id: str = "", evidence: str = "", failed_turn: bool = True
    ) -> None:
        super().__init__(detail, worker_id=worker_id, evidence=evidence)
        self.trouble = trouble
        self.failed_turn = failed_turn


class StopsHere(LifecycleError):
    """Ends a renewal in a block that waits for a human."""

    reason = "blocked"


class PreflightFailed(StopsHere):
    """Something that brings the worker back after the stop is missing."""

    reason = "preflight_failed"


class LaunchUnknown(PreflightFailed):
    """No launch specification was found."""

    reason = "launch_unknown"


class NotDelivered(StopsHere):
    """The agent's database holds no row with our text."""

    reason = "not_delivered"


class NothingTyped(NotDelivered):
    """The input line never took text; this call touched no key."""


class CheckpointRefused(StopsHere):
    """The reply is no checkpoint for this renewal; the reason is one of the parser's, *missing* the labels it lacks.

    *own_words* says that the sentence holds no word of the worker's, so that any face may be told it.
    """

    reason = "checkpoint_malformed"

    def __init__(
        self,
        detail: str,
        *,
        worker_id: str = "",
        evidence: str = "",
        reason: str | None = None,
        missing: tuple[str, ...] = (),
        own_words: bool = False,
    ) -> None:
        super().__init__(detail, worker_id=worker_id, evidence=evidence, reason=reason)
        self.missing = missing
        self.own_words = own_words


class HandoffTimeout(StopsHere):
    """The worker was asked and did not answer in time."""

    reason = "handoff_timeout"


class HandoffNotSaved(StopsHere):
    """The handoff could not be written or did not read back as written."""

    reason = "handoff_not_saved"


class HandoffOutdated(StopsHere):
    """The worker went on working after its handoff."""

    reason = "handoff_outdated"


class BusyTooLong(StopsHere):
    """The worker never became idle."""

    reason = "busy_too_long"


class NotStopped(StopsHere):
    """Processes of the old agent survived KILL, so no second agent may be started."""

    reason = "not_stopped"


class NotReady(StopsHere):
    """The new agent never showed its input line. The worker is down or half up."""

    reason = "not_ready"


class ResumeUnanswered(StopsHere):
    """The new session did not answer the resume prompt in time."""

    reason = "resume_unanswered"


class ResumeRefused(StopsHere):
    """The new session answered for another renewal."""

    reason = "resume_refused"


class WeakResume(StopsHere):
    """For the second time in a row the new session's checkpoint does not fit the handoff, and gives no reason."""

    reason = "weak_resume"


class BaselineTooLarge(StopsHere):
    """The first reading of the fresh session is already above the soft limit."""

    reason = "baseline_too_large"


class AgentGone(StopsHere):
    """The agent ended while it was waited for."""

    reason = "agent_gone"


class ApiFailure(StopsHere):
    """The agent's provider failed again and again, and not for a limit or a login."""

    reason = "api_failure"


class Stuck(StopsHere):
    """One flow run after the other took the renewal up at the same phase and ended without a word."""

    reason = "stuck"


class Interfered(StopsHere):
    """A person or another program acted on the pane, so Afresh stepped back."""

    reason = "interfered"
