"""What the adapters share: texts of any length as memories, items of sessions, blocks and turns.

Texts and items are stored as the client for TypeScript stores them, so that programs of both read each other's.
"""

from __future__ import annotations

import json
import math
import random
import re
import threading
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..generated.vault import Vault

Fields = Dict[str, Any]
#: UTF-8 bytes, of which a token has at least one: a memory stays below the 512 tokens of a chunk.
TEXT_BYTES_MAX = 320
ITEM_BYTES_MAX = 480
PATH_BYTES_MAX = 144
METADATA_CHARACTERS_MAX = 256


@dataclass(frozen=True)
class LongText:
    """A text in its latest wording; `metadata` is what names it, times are milliseconds since 1970."""

    metadata: Mapping[str, Any]
    text: str
    created_at: float
    updated_at: float


def recall(vault: Vault, messages: Sequence[Mapping[str, str]], **options: Any) -> str:
    """The block of what is remembered of a conversation; empty where nothing is, or nobody spoke."""
    said = [message for message in messages if message["content"].strip()]
    if not any(message["role"] == "user" for message in said):
        return ""
    return vault.prepare(messages=said, **options)["context"] or ""


def store(vault: Vault, messages: Sequence[Mapping[str, str]], **options: Any) -> None:
    """Stores what user and assistant said; it can be found shortly after."""
    roles = ("user", "assistant")
    said = [one for one in messages if one["role"] in roles and one["content"].strip()]
    if said:
        vault.ingest(messages=said, **options)


def upload(vault: Vault, lines: Iterable[Fields], session: Optional[str] = None) -> int:
    """Stores lines; needs a card on file. Raises RuntimeError when not all are there in time.

    :returns: how many the vault had already: the same text of the same millisecond
    """
    answer: Any = vault.upload(list(lines), session_id=session)
    if answer.get("status") != "complete":
        raise RuntimeError(f"it was not stored: {answer}")
    return int(answer["stats"]["skipped"])


def list_rows(vault: Vault, metadata: Fields) -> List[Fields]:
    """All memories of the core with this metadata: `id`, `text`, `metadata`."""
    rows: List[Fields] = []
    cursor: Optional[str] = None
    while True:
        page = vault.list(metadata=json.dumps(metadata), limit=200, cursor=cursor)
        for item in page["items"]:
            row = {"id": item["memory_id"], "text": item["text"], "metadata": item.get("metadata", {})}
            rows.append(row)
        cursor = page["next_cursor"]
        if cursor is None:
            return rows


def delete_rows(vault: Vault, rows: Sequence[Fields]) -> None:
    for at in range(0, len(rows), 500):
        vault.delete_ids(ids=[row["id"] for row in rows[at : at + 500]])


def to_lines(prefix: str, path: str, metadata: Fields, text: str, known: Optional[LongText]) -> List[Fields]:
    """A text as lines to upload; each has a head that no other has, so that none is left out as known."""
    at = max(_now(), math.trunc(known.updated_at) + 1 if known else 0)
    parts = split_text(text, TEXT_BYTES_MAX)
    wording = f"{at:x}{random.getrandbits(40):x}"
    named = {
        **metadata,
        # With a fraction: another process may write this text in the same millisecond.
        f"{prefix}at": at + random.random(),
        f"{prefix}since": known.created_at if known else at,
        f"{prefix}parts": len(parts),
    }
    return [
        {
            "content": f"{_cut_path(path)} {wording}.{part}\n[{piece}]",
            "role": "assistant",
            "timestamp": at,
            "metadata": {**named, f"{prefix}part": part},
        }
        for part, piece in enumerate(parts)
    ]


def to_texts(prefix: str, rows: Sequence[Fields]) -> List[LongText]:
    """The texts whose parts are all there, in their latest wording; the one written last comes first."""
    wordings: Dict[Tuple[Any, ...], List[Fields]] = {}
    for row in rows:
        name = _name_of(prefix, row["metadata"])
        wordings.setdefault((name, row["metadata"][f"{prefix}at"]), []).append(row)
    latest: Dict[Any, LongText] = {}
    for (name, at), parts in wordings.items():
        metadata = parts[0]["metadata"]
        if len(parts) != metadata[f"{prefix}parts"]:
            continue
        parts.sort(key=lambda row: row["metadata"][f"{prefix}part"])
        text = "".join(row["text"][row["text"].index("\n[") + 2 : -1] for row in parts)
        if name not in latest or latest[name].updated_at < at:
            latest[name] = LongText(metadata, text, metadata[f"{prefix}since"], at)
    return sorted(latest.values(), key=lambda text: -text.updated_at)


def _name_of(prefix: str, metadata: Fields) -> Tuple[Any, ...]:
    counters = {prefix + name for name in ("at", "since", "part", "parts")}
    return tuple(sorted((name, value) for name, value in metadata.items() if name not in counters))


class SessionItems:
    """The items of a conversation as memories of a session of the vault, one after another in time.

    The words of a message are the text of the memory, what else an item has is metadata; an item
    without words is stored as JSON.
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
        at = max(_now(), self._last + 1, int(newest[0]["at"]) + 1 if newest else 0)
        lines: List[Fields] = []
        added = set()
        for item in items:
            # With a fraction: another process may begin in the same millisecond.
            first = at + random.random()
            added.add(first)
            role, parts, rest = _to_parts(item)
            for part, content in enumerate(parts):
                metadata = {
                    "item_of": self._kind,
                    "item_at": first,
                    "item_part": part,
                    "item_parts": len(parts),
                    **({} if rest is None else {"item_rest": rest}),
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


def _to_parts(item: Fields) -> Tuple[str, List[str], Optional[str]]:
    role = "user" if item.get("role") == "user" else "assistant"
    words = _read_words(item)
    if words:
        text, rest = words
        parts = split_text(text, ITEM_BYTES_MAX)
        encoded = _encode(rest)
        if len(encoded) <= METADATA_CHARACTERS_MAX and all(part.strip() for part in parts):
            return role, parts, encoded
    return role, [f"[{part}]" for part in split_text(_encode(item), ITEM_BYTES_MAX)], None


def _read_words(item: Fields) -> Optional[Tuple[str, Fields]]:
    """The text of an item, as its content or in the only part of that, and the item without it."""
    content = item.get("content")
    if isinstance(content, str):
        return content, {**item, "content": None}
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        text = content[0].get("text")
        if isinstance(text, str):
            return text, {**item, "content": [{**content[0], "text": None}]}
    return None


def _to_item(rows: List[Fields]) -> Fields:
    rows.sort(key=lambda row: row["metadata"]["item_part"])
    rest = rows[0]["metadata"].get("item_rest")
    if rest is None:
        whole: Fields = json.loads("".join(row["content"][1:-1] for row in rows))
        return whole
    text = "".join(row["content"] for row in rows)
    item: Fields = json.loads(rest)
    if item["content"] is None:
        return {**item, "content": text}
    return {**item, "content": [{**item["content"][0], "text": text}]}


def split_text(text: str, bytes_max: int) -> List[str]:
    """Pieces of a text, in order, none longer than so many UTF-8 bytes; at least one."""
    pieces: List[str] = []
    piece: List[str] = []
    length = 0
    for character in text:
        size = len(character.encode())
        if length + size > bytes_max:
            pieces.append("".join(piece))
            piece, length = [], 0
        piece.append(character)
        length += size
    return [*pieces, "".join(piece)]


def _cut_path(path: str) -> str:
    """A path on one line, without its beginning where it is long: metadata has it whole."""
    line = re.sub(r"\s+", " ", path)
    return split_text(line[::-1], PATH_BYTES_MAX)[0][::-1]


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _now() -> int:
    return int(time.time() * 1000)
