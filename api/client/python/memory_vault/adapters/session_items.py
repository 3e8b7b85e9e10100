"""Items of a conversation as memories, as the client for TypeScript stores them: programs of both read each other's."""

from __future__ import annotations

import json
import random
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..generated.vault import Vault
from .core import (
    FIELDS_MAX, PIECE_BYTES_MAX, Fields, delete_rows, encode, join_chunks, now, split_text, to_chunks, upload
)


class SessionItems:
    """The items of a conversation as memories of a session of the vault, one after another in time.

    The words of an item are the text of its memories, what else it has is in their metadata
    (`item_data0` and so on). An item without words, such as the call of a tool, is named by its type.
    """

    def __init__(self, vault: Vault, session: str, kind: str) -> None:
        self._vault = vault
        self._session = session
        self._kind = kind
        self._last = 0
        self._lock = threading.Lock()

    def add(self, items: Sequence[Fields]) -> None:
        """Adds items after what is there, also beside another writer."""
        if items:
            with self._lock:
                self._add(items)

    def _add(self, items: Sequence[Fields]) -> None:
        # After what is there, also where clocks of machines differ.
        newest = self.read(1)
        at = max(now(), self._last + 1, int(newest[0]["at"]) + 1 if newest else 0)
        lines: List[Fields] = []
        added = set()
        for item in items:
            # With a fraction: another process may begin in the same millisecond.
            first = at + random.random()
            added.add(first)
            role, parts, chunks = _to_parts(item)
            for part, content in enumerate(parts):
                metadata = {
                    "item_of": self._kind,
                    "item_at": first,
                    "item_part": part,
                    "item_parts": len(parts),
                    **{f"item_data{n}": chunk for n, chunk in enumerate(chunks[part])},
                }
                # A millisecond for each part: equal texts are apart, and the order is that of time.
                lines.append({"content": content, "role": role, "timestamp": at, "metadata": metadata})
                at += 1
        self._last = at
        if upload(self._vault, lines, self._session) == 0:
            return
        # Another writer has stored the same words in the same millisecond: once more, after them.
        own = [row for row in self._rows() if row["metadata"]["item_at"] in added]
        self._add(items)
        delete_rows(self._vault, own)

    def read(self, limit: Optional[int] = None) -> List[Fields]:
        """The items whose parts are all there, oldest first; with a limit the newest: `item`, `at`, `rows`."""
        parts = _whole(self._rows(limit))
        found = sorted(parts)
        return [
            {"item": _to_item(parts[at]), "at": at, "rows": parts[at]}
            for at in (found if limit is None else found[-limit:] if limit > 0 else [])
        ]

    def _rows(self, limit: Optional[int] = None) -> List[Fields]:
        """The memories of all items, or of so many of the newest and a few more."""
        rows: List[Fields] = []
        to: Optional[str] = "9999-12-31"
        while to is not None and (limit is None or len(_whole(rows)) < limit):
            page = self._vault.date_search(
                from_="0001-01-01",
                to=to,
                session_id=self._session,
                metadata={"item_of": self._kind},
                max_tokens=200_000 if limit is None else min(200_000, limit * 500),
            )
            for row in page["memories"]:
                fields = {"id": row["id"], "content": row["content"], "metadata": dict(row.get("metadata", {}))}
                rows.append(fields)
            to = page["returned"]["from"] if page["truncated"] else None
        return rows

    def remove(self, items: Sequence[Fields]) -> None:
        delete_rows(self._vault, [row for item in items for row in item["rows"]])

    def clear(self) -> None:
        """Empties the session of the vault."""
        self._vault.clear_memory(session_id=self._session)


def _whole(rows: Sequence[Fields]) -> Dict[float, List[Fields]]:
    """The memories of the items whose parts are all there, by the time of the item."""
    items: Dict[float, List[Fields]] = {}
    for row in rows:
        items.setdefault(row["metadata"]["item_at"], []).append(row)
    return {at: rows for at, rows in items.items() if len(rows) == rows[0]["metadata"]["item_parts"]}


def _to_parts(item: Fields) -> Tuple[str, List[str], List[List[str]]]:
    """The role, the texts of the memories and the fields with the rest of the item in each."""
    role = "user" if item.get("role") == "user" else "assistant"
    words: List[str] = []
    rest = _take_words(item, words)
    pieces = split_text("".join(words), PIECE_BYTES_MAX)
    if not all(piece.strip() for piece in pieces):
        # The service takes no memory without words: the item is data as a whole.
        rest = item
        name = " ".join(str(item[key]) for key in ("type", "name") if isinstance(item.get(key), str))
        plain = " ".join("".join(words).split()) or f"({name or 'no text'})"
        pieces = split_text(plain, PIECE_BYTES_MAX)
    chunks = to_chunks(encode(rest), FIELDS_MAX - 4)
    count = max(len(pieces), len(chunks))
    return (
        role,
        [pieces[part] if part < len(pieces) else "(data)" for part in range(count)],
        [chunks[part] if part < len(chunks) else [] for part in range(count)],
    )


def _take_words(item: Fields, words: List[str]) -> Fields:
    """Moves the words of an item to a list: what is left has the number of their characters in their place.

    What a model has thought is none of its words.
    """

    def take(text: str) -> Fields:
        words.append(text)
        return {"words": len(text)}

    def take_part(part: Any) -> Any:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            return {**part, "text": take(part["text"])}
        return part

    left = dict(item)
    for name in () if item.get("type") == "reasoning" else ("content", "output"):
        value = item.get(name)
        if isinstance(value, str):
            left[name] = take(value)
        elif isinstance(value, list):
            left[name] = [take(part) if isinstance(part, str) else take_part(part) for part in value]
        elif isinstance(value, dict):
            left[name] = take_part(value)
    return left


def _give_words(rest: Fields, words: str) -> Fields:
    """The item of `_take_words`."""
    at = 0

    def give(value: Any) -> Any:
        nonlocal at
        if isinstance(value, dict):
            if list(value) == ["words"] and isinstance(value["words"], int):
                at += value["words"]
                return words[at - value["words"] : at]
            if "text" in value:
                return {**value, "text": give(value["text"])}
            return value
        return [give(part) for part in value] if isinstance(value, list) else value

    return {**rest, **{name: give(rest[name]) for name in ("content", "output") if name in rest}}


def _to_item(rows: List[Fields]) -> Fields:
    rows.sort(key=lambda row: row["metadata"]["item_part"])
    text = "".join(row["content"] for row in rows)
    data = join_chunks("item_", rows)
    if data:
        return _give_words(json.loads(data), text)
    # The first form: the rest of an item in each of its memories, or the item as JSON in brackets.
    rest = rows[0]["metadata"].get("item_rest")
    if rest is None:
        whole: Fields = json.loads("".join(row["content"][1:-1] for row in rows))
        return whole
    item: Fields = json.loads(rest)
    if item["content"] is None:
        return {**item, "content": text}
    return {**item, "content": [{**item["content"][0], "text": text}]}
