"""The base of every value that travels between steps."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict

SCHEMA = 1
"""The schema number that stands beside every value in the ledger."""


class Value(BaseModel):
    """A frozen model, closed to unknown keys when it is built."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def recall(cls, text: str | bytes) -> Self:
        """Read a stored value leniently: keys of a newer or older release are dropped, here and in nested values.

        Raises:
            pydantic.ValidationError: a field that this release needs is missing or of another kind.
        """
        return cls.model_validate_json(text, extra="ignore")
