"""The storage of CrewAI's memory (`crewai`):

    storage = VaultStorage(vault)
    crew = Crew(..., memory=Memory(storage=storage, embedder=storage.embed))

CrewAI asks its storage by vectors. The vault searches by words and meaning, with a model of its own: `embed` makes
a plain vector of the words of a text and keeps which text it was, so that `search` can ask with the text.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import zlib
from collections import OrderedDict
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional, Sequence, Tuple

from crewai.memory.types import MemoryRecord, ScopeInfo

from ..generated.vault import Vault
from .core import Fields, delete_rows, encode, list_rows
from .long_texts import LongText, put_texts, to_texts

DIMENSIONS = 512
#: Texts whose vector can be asked with; a search follows its vector at once.
KNOWN_MAX = 10_000
TREE = {"crew_tree": "records"}
PREFIX = "crew_"


class VaultStorage:
    """Records as memories of the core, with `crew_id` as metadata."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._texts: "OrderedDict[Tuple[float, ...], str]" = OrderedDict()

    def embed(self, texts: Sequence[str]) -> List[List[float]]:
        """Vectors of the words of texts, of unit length: equal texts have a cosine of 1."""
        vectors = [_vector(text) for text in texts]
        for text, vector in zip(texts, vectors):
            self._texts[tuple(vector)] = text
            self._texts.move_to_end(tuple(vector))
        while len(self._texts) > KNOWN_MAX:
            self._texts.popitem(last=False)
        return vectors

    def save(self, records: List[Any]) -> None:
        self._put(records, [])

    def _put(self, records: Sequence[Any], before: Sequence[Fields]) -> None:
        """The content of a record is the text of its memories, all of it is in their metadata."""
        texts = []
        for record in records:
            fields = json.loads(record.model_dump_json(exclude={"embedding"}))
            names = {**TREE, "crew_id": record.id}
            texts.append(LongText(names, record.content, data=encode(fields)))
        if texts:
            put_texts(self._vault, PREFIX, texts, before)

    def search(
        self,
        query_embedding: List[float],
        scope_prefix: Optional[str] = None,
        categories: Optional[List[str]] = None,
        metadata_filter: Optional[Dict[str, Any]] = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> List[Tuple[Any, float]]:
        """The records closest to the text of a vector that `embed` made."""
        query = self._texts.get(tuple(query_embedding))
        if query is None:
            raise ValueError("the vector is not of this storage: give Memory(embedder=storage.embed)")
        found = self._vault.search(query=query, limit=200, metadata=TREE)["memories"]
        scores: Dict[str, float] = {}
        for row in found:
            scores.setdefault(str(row.get("metadata", {})["crew_id"]), row["relevance"])
        names, hits = [name for name, score in scores.items() if score >= min_score], []
        # A filter lists at most 32 values.
        for at in range(0, len(names), 32):
            records = {one.id: one for one in self._records({"crew_id": names[at : at + 32]})}
            for name in names[at : at + 32]:
                if name in records and _fits(records[name], scope_prefix, categories, metadata_filter):
                    hits.append((records[name], scores[name]))
            if len(hits) >= limit:
                break
        return hits[:limit]

    def delete(
        self,
        scope_prefix: Optional[str] = None,
        categories: Optional[List[str]] = None,
        record_ids: Optional[List[str]] = None,
        older_than: Optional[datetime] = None,
        metadata_filter: Optional[Dict[str, Any]] = None,
    ) -> int:
        gone = {
            record.id
            for record in self._records()
            if _fits(record, scope_prefix, categories, metadata_filter)
            and (record_ids is None or record.id in record_ids)
            and (older_than is None or _utc(record.created_at) < _utc(older_than))
        }
        rows = list_rows(self._vault, TREE)
        delete_rows(self._vault, [row for row in rows if row["metadata"]["crew_id"] in gone])
        return len(gone)

    def update(self, record: Any) -> None:
        before = list_rows(self._vault, {**TREE, "crew_id": record.id})
        self._put([record], before)

    def get_record(self, record_id: str) -> Optional[Any]:
        records = self._records({"crew_id": record_id})
        return records[0] if records else None

    def list_records(self, scope_prefix: Optional[str] = None, limit: int = 200, offset: int = 0) -> List[Any]:
        """The newest first."""
        found = [record for record in self._records() if _fits(record, scope_prefix)]
        return sorted(found, key=lambda one: _utc(one.created_at), reverse=True)[offset : offset + limit]

    def get_scope_info(self, scope: str) -> Any:
        found = [record for record in self._records() if _fits(record, scope)]
        times = [record.created_at for record in found]
        return ScopeInfo(
            path=scope,
            record_count=len(found),
            categories=sorted({name for record in found for name in record.categories}),
            oldest_record=min(times, key=_utc) if times else None,
            newest_record=max(times, key=_utc) if times else None,
            child_scopes=_children(found, scope),
        )

    def list_scopes(self, parent: str = "/") -> List[str]:
        return _children(self._records(), parent)

    def list_categories(self, scope_prefix: Optional[str] = None) -> Dict[str, int]:
        counts: Dict[str, int] = {}
        for record in self._records():
            if _fits(record, scope_prefix):
                for name in record.categories:
                    counts[name] = counts.get(name, 0) + 1
        return counts

    def count(self, scope_prefix: Optional[str] = None) -> int:
        return sum(_fits(record, scope_prefix) for record in self._records())

    def reset(self, scope_prefix: Optional[str] = None) -> None:
        self.delete(scope_prefix)

    def close(self) -> None:
        """The client stays open: it is the caller's."""

    async def asave(self, records: List[Any]) -> None:
        await asyncio.to_thread(self.save, records)

    async def asearch(self, query_embedding: List[float], *args: Any, **options: Any) -> List[Tuple[Any, float]]:
        return await asyncio.to_thread(self.search, query_embedding, *args, **options)

    async def adelete(self, *args: Any, **options: Any) -> int:
        return await asyncio.to_thread(self.delete, *args, **options)

    def _records(self, metadata: Optional[Fields] = None) -> List[Any]:
        rows = list_rows(self._vault, {**TREE, **(metadata or {})})
        return [MemoryRecord(**json.loads(text.data or text.text)) for text in to_texts(PREFIX, rows)]


def _fits(
    record: Any,
    scope_prefix: Optional[str] = None,
    categories: Optional[List[str]] = None,
    metadata_filter: Optional[Dict[str, Any]] = None,
) -> bool:
    below = (scope_prefix or "/").rstrip("/")
    return (
        (record.scope.rstrip("/") + "/").startswith(below + "/")
        and (not categories or any(name in record.categories for name in categories))
        and all(record.metadata.get(name) == value for name, value in (metadata_filter or {}).items())
    )


def _children(records: Sequence[Any], parent: str) -> List[str]:
    base = parent.rstrip("/")
    below = {record.scope[len(base) + 1 :].split("/")[0] for record in records if _fits(record, parent)}
    return sorted(f"{base}/{name}" for name in below if name)


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _vector(text: str) -> List[float]:
    counts = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        counts[zlib.crc32(word.encode()) % DIMENSIONS] += 1
    length = math.sqrt(sum(count * count for count in counts)) or 1.0
    return [count / length for count in counts]
