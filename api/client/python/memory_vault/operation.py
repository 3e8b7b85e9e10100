"""What the contract says of an endpoint, as far as a client has to know it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, FrozenSet, Mapping


class Unset(Enum):
    """The type of UNSET, which stands for an argument that was not given where None is a value."""

    UNSET = "unset"


UNSET = Unset.UNSET


@dataclass(frozen=True)
class Operation:
    """An endpoint."""

    name: str
    method: str
    #: as the router has it: `/v1/orgs/:orgId`
    path: str
    #: `json`, `lines`, `form`, `bytes`, or nothing
    body: str = ""
    #: whether it takes an `Idempotency-Key`
    takes_key: bool = False
    #: whether a POST changes and stores nothing, so that it may be sent again
    reads: bool = False
    #: whether it changes something, so that a key is sent even if the caller names none
    writes: bool = False
    #: fields of the body in which None is a value
    nullable: FrozenSet[str] = frozenset()

    def may_repeat(self) -> bool:
        """Whether a request may be sent again when it is unknown if it arrived."""
        return self.takes_key or self.reads or self.method != "POST"


def given(fields: Mapping[str, Any], nullable: FrozenSet[str] = frozenset()) -> Mapping[str, Any]:
    """The arguments that were given: None is one only where it is a value."""
    return {
        name: value
        for name, value in fields.items()
        if value is not UNSET and (value is not None or name in nullable)
    }
