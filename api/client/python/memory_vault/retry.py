"""When a request is sent again, and after how long."""

from __future__ import annotations

import random
import ssl
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Optional

from .errors import VaultConnectionError, VaultError, VaultStatusError
from .operation import Operation

REFUSED_FOR_NOW = frozenset({429, 503})
FAULTS = frozenset({500, 502, 504})


@dataclass(frozen=True)
class RetryPolicy:
    """Up to `attempts` more tries; times in seconds."""

    attempts: int = 4
    first_delay: float = 0.5
    longest_delay: float = 8.0
    #: a longer `Retry-After` is raised at once
    longest_retry_after: float = 60.0

    def delay_before(self, retry: int, error: VaultError, operation: Operation) -> Optional[float]:
        """Seconds until try number `retry`, counted from 1; None to raise the error."""
        if retry > self.attempts or not is_passing(error, operation):
            return None
        backoff = min(self.longest_delay, self.first_delay * 2 ** (retry - 1))
        jittered = backoff * random.uniform(0.5, 1.0)
        asked = error.retry_after if isinstance(error, VaultStatusError) else None
        if asked is None:
            return jittered
        # Clients that were refused together do not come back together.
        return None if asked > self.longest_retry_after else asked + random.uniform(0, 0.25)


def is_passing(error: VaultError, operation: Operation) -> bool:
    """Whether the same request may work a little later without doing anything twice."""
    if isinstance(error, VaultConnectionError):
        if isinstance(error.__cause__, ssl.SSLCertVerificationError):
            return False
        return not error.sent or operation.may_repeat()
    if not isinstance(error, VaultStatusError):
        return False
    if error.status in REFUSED_FOR_NOW:
        return True
    return error.status in FAULTS and operation.may_repeat()


def parse_retry_after(value: Optional[str]) -> Optional[float]:
    """Seconds from a `Retry-After` of seconds or of a date; None for anything else."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
