"""What the programs of this folder share: vaults of two users, what the model was sent, and checks that are printed."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import time
import traceback
import urllib.request
from typing import Any, Callable, Dict, List, Optional

from memory_vault import Vault

BASE_URL = os.environ["BASE_URL"]
OWNER = Vault(BASE_URL, os.environ["OWNER_KEY"])
MODEL_URL = os.environ["OPENAI_BASE_URL"]
MODEL_KEY = os.environ["OPENAI_API_KEY"]
#: one transparent pixel
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ANSWER = "Noted. Crème brûlée, 東京 and a 🦊 will be remembered."
FORECAST = "The forecast says sun."


def vault_of(user: str) -> Vault:
    """The vault of a user of this run."""
    return OWNER.for_user(os.environ["RUN"] + user)


def check(name: str, is_true: Any, detail: Any = "") -> None:
    print(json.dumps({"check": name, "ok": bool(is_true), "detail": str(detail)[:2000]}), flush=True)


def equal(name: str, found: Any, wanted: Any) -> None:
    check(name, found == wanted, f"{found!r} is not {wanted!r}")


def seen() -> List[str]:
    """The bodies that the model was sent since the last call."""
    with urllib.request.urlopen(os.environ["SEEN"]) as answer:
        return [str(body) for body in json.load(answer)]


def remember(vault: Vault, *said: str) -> None:
    for one in said:
        vault.ingest(messages=[{"role": "user", "content": one}], wait=True)


def rows(vault: Vault, session: Optional[str] = None) -> List[Dict[str, Any]]:
    """What is stored, oldest first, once nothing is under way."""
    while any(one["state"] in ("accepted", "running") for one in vault.list_operations()["items"]):
        time.sleep(0.05)
    page = vault.date_search(from_="0001-01-01", to="9999-12-31", session_id=session, max_tokens=200_000)
    found = [dict(one) for one in page["memories"]]
    return sorted(found, key=lambda one: str(one["timestamp"]))


def texts(vault: Vault, session: Optional[str] = None) -> List[str]:
    return [str(row["content"]) for row in rows(vault, session)]


def words_only(vault: Vault, session: Optional[str] = None) -> None:
    """What is stored is what a person reads: no JSON, no stamp, no block of memories."""
    odd = [text for text in texts(vault, session) if text.lstrip()[:1] in "[{" or "memory_context" in text or '":' in text]
    equal("what is stored are the words", odd, [])


def apart(vault: Vault, query: str) -> None:
    """Another user sees nothing."""
    equal("another user sees nothing", vault.search(query=query, limit=5)["memories"], [])


def main(steps: Dict[str, Callable[[], Any]]) -> None:
    """Runs the step that is the argument, in a process of its own, as after a restart."""
    try:
        outcome = steps[sys.argv[1]]()
        if inspect.isawaitable(outcome):
            asyncio.run(outcome)  # type: ignore[arg-type]
    except Exception:
        check(f"{sys.argv[1]} ends without a fault", False, traceback.format_exc()[-1800:])
        raise SystemExit(1)
