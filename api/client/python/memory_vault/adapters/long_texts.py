"""Texts of any length as memories, as the client for TypeScript stores them: programs of both read each other's."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..generated.vault import Vault
from .core import (
    FIELDS_MAX, PIECE_BYTES_MAX, Fields, delete_rows, encode, join_chunks, list_rows, now, split_text, to_chunks, upload
)


@dataclass(frozen=True)
class LongText:
    """A text in its latest wording; `metadata` is what names it, times are milliseconds since 1970.

    `data` is what is kept beside the words.
    """

    metadata: Mapping[str, Any]
    text: str
    created_at: float = 0
    updated_at: float = 0
    data: Optional[str] = None


def put_texts(vault: Vault, prefix: str, texts: Sequence[LongText], before: Sequence[Fields] = ()) -> None:
    """Stores texts in one upload, and then removes what was there before: a put that breaks off loses nothing.

    The words of a text are the memories, its `data` is in their metadata.

    :param before: the rows of earlier wordings, which `to_texts` has read
    """
    at = max([now(), *(math.trunc(text.updated_at) + 1 for text in texts)])
    tried = set()
    while True:
        lines: List[Fields] = []
        for text in texts:
            lines += _to_lines(prefix, text, at + len(lines))
        if upload(vault, lines) == 0:
            break
        # The vault has the same words of the same millisecond: once more, at another time.
        tried |= {line["metadata"][f"{prefix}stamp"] for line in lines}
        at += len(lines) + random.randrange(1, 1000)
    named = [row for text in texts if tried for row in list_rows(vault, dict(text.metadata))]
    delete_rows(vault, [*before, *(row for row in named if row["metadata"].get(f"{prefix}stamp") in tried)])


def _to_lines(prefix: str, text: LongText, at: int) -> List[Fields]:
    """A text as lines to upload, a millisecond apart: so equal pieces are no repetition, and in order."""
    pieces, data = split_text(text.text, PIECE_BYTES_MAX), text.data
    if not all(piece.strip() for piece in pieces):
        # The service takes no memory without words, and a text comes back as it was.
        data = encode(text.text) if data is None else data
        pieces = split_text(" ".join(text.text.split()) or "(empty)", PIECE_BYTES_MAX)
    room = FIELDS_MAX - len(text.metadata) - 1
    chunks = to_chunks(data or "", room)
    count = max(len(pieces), len(chunks))
    # With a fraction: another process may write this text in the same millisecond.
    written = at + random.random()
    lines = []
    for part in range(count):
        stamp = f"{written!r}:{text.created_at or written!r}:{part}:{count}"
        fields = {f"{prefix}data{n}": chunk for n, chunk in enumerate(chunks[part] if part < len(chunks) else [])}
        lines.append(
            {
                "content": pieces[part] if part < len(pieces) else "(data)",
                "role": "user",
                "timestamp": at + part,
                "metadata": {**text.metadata, f"{prefix}stamp": stamp, **fields},
            }
        )
    return lines


def to_texts(prefix: str, rows: Sequence[Fields]) -> List[LongText]:
    """The texts whose parts are all there, in their latest wording; the one written last comes first."""
    wordings: Dict[Tuple[Any, ...], List[Fields]] = {}
    for row in rows:
        read = _read_part(prefix, row)
        wordings.setdefault((read["name"], read["at"]), []).append(read)
    latest: Dict[Any, LongText] = {}
    for (name, at), parts in wordings.items():
        if len(parts) != parts[0]["parts"]:
            continue
        parts.sort(key=lambda part: part["part"])
        if name not in latest or latest[name].updated_at < at:
            data = join_chunks(prefix, parts) or None
            text = "".join(part["text"] for part in parts)
            latest[name] = LongText(dict(name), text, parts[0]["since"], at, data)
    return sorted(latest.values(), key=lambda text: -text.updated_at)


def _read_part(prefix: str, row: Fields) -> Fields:
    """Which part of which text a memory is; also of the first form, with a head, brackets and counters apart."""
    metadata = row["metadata"]
    counters = {prefix + name: name for name in ("at", "since", "part", "parts")}
    own = {name: value for name, value in metadata.items() if name not in counters}
    name = tuple(sorted((n, v) for n, v in own.items() if not re.fullmatch(f"{prefix}(stamp|data[0-9]+)", n)))
    if f"{prefix}stamp" not in metadata:
        text = row["text"][row["text"].index("\n[") + 2 : -1]
        read = {counter: metadata[field] for field, counter in counters.items()}
        return {**read, "name": name, "text": text, "metadata": {}}
    at, since, part, parts = metadata[f"{prefix}stamp"].split(":")
    numbers = {"at": float(at), "since": float(since), "part": int(part), "parts": int(parts)}
    return {**numbers, "name": name, "text": row["text"], "metadata": metadata}
