"""What the adapters share: recalling and storing turns, uploads, lists, and pieces of texts."""

from __future__ import annotations

import json
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ..generated.vault import Vault

Fields = Dict[str, Any]
#: UTF-8 bytes, of which a token has at least one: a memory stays below the 512 tokens of a chunk.
PIECE_BYTES_MAX = 480
#: What the service takes: fields of metadata, characters of one, lines of an upload.
FIELDS_MAX = 16
FIELD_CHARACTERS_MAX = 256
LINES_MAX = 10_000
#: How often the end of an upload is asked for that takes longer than an answer may.
POLL_SECONDS = 0.5


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


def upload(vault: Vault, lines: Sequence[Fields], session: Optional[str] = None) -> int:
    """Stores lines, and returns when they are there; needs a card on file.

    :returns: how many the vault had already: the same text of the same millisecond
    :raises ValueError: before anything is sent, when an upload cannot have so many lines
    :raises RuntimeError: when the service gave the upload up
    """
    if len(lines) > LINES_MAX:
        raise ValueError(f"it is too long to be stored: {len(lines)} memories, of which an upload has {LINES_MAX}")
    answer: Any = vault.upload(list(lines), session_id=session)
    while answer.get("status") == "processing":
        time.sleep(POLL_SECONDS)
        operation: Any = vault.read_operation(answer["operation_id"])
        if operation["state"] in ("done", "failed", "cancelled"):
            answer = (operation.get("outcome") or {}).get("body") or operation
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


def to_chunks(data: str, room: int) -> List[List[str]]:
    """The fields of metadata that a text is, for one memory after another."""
    fields = [data[at : at + FIELD_CHARACTERS_MAX] for at in range(0, len(data), FIELD_CHARACTERS_MAX)]
    return [fields[at : at + room] for at in range(0, len(fields), room)]


def join_chunks(prefix: str, rows: Sequence[Fields]) -> str:
    """What `to_chunks` has made of a text."""
    fields = [row["metadata"] for row in rows]
    return "".join(one[f"{prefix}data{n}"] for one in fields for n in range(FIELDS_MAX) if f"{prefix}data{n}" in one)


def split_text(text: str, bytes_max: int) -> List[str]:
    """Pieces of a text, in order, none longer than so many UTF-8 bytes, between words where there are any."""
    pieces: List[str] = []
    start, blank, size = 0, 0, 0
    for at, character in enumerate(text):
        length = len(character.encode())
        if size + length > bytes_max:
            end = blank if blank - start > (at - start) / 2 else at
            pieces.append(text[start:end])
            start, size = end, len(text[end:at].encode())
        size += length
        if character.isspace():
            blank = at + 1
    return [*pieces, text[start:]]


def encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def now() -> int:
    return int(time.time() * 1000)
