"""What the archive's index holds: documents, their passages, and passages that were found."""

from __future__ import annotations

from datetime import datetime

from lifecycle.value import Value


class Document(Value):
    """One file of the archive, or one session of a worker. *fingerprint* tells when it is to be read anew.

    *upto* is the last row of a session that was read; *size* the characters that are kept of it.
    """

    name: str
    kind: str
    worker_id: str
    fingerprint: str
    order: float
    generation: int | None = None
    renewal_id: str | None = None
    upto: int = 0
    size: int = 0
    dropped: bool = False


class Entry(Value):
    """One passage of a document, redacted. *place* is where in the document it stands."""

    place: int
    heading: str
    text: str
    at: datetime


class Found(Value):
    """A passage that holds a term that was asked for; a higher *score* (BM25) fits better."""

    name: str
    kind: str
    worker_id: str
    generation: int | None
    renewal_id: str | None
    place: int
    heading: str
    text: str
    at: datetime
    score: float
