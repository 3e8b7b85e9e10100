"""The long-term memory of LangGraph (`langgraph`): `graph.compile(store=VaultStore(vault))`."""

from __future__ import annotations

import asyncio
import hashlib
import json
from datetime import date, datetime, time, timezone
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple
from uuid import UUID

from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, PutOp, SearchItem, SearchOp

from ..generated.vault import Vault
from .core import Fields, delete_rows, list_rows
from .long_texts import LongText, put_texts, to_texts

#: Metadata has 16 fields.
DEPTH_MAX = 10
HITS_MAX = 200
#: Of a field of metadata.
KEY_CHARACTERS_MAX = 256


class VaultStore(BaseStore):
    """Items with a namespace of up to 10 labels and a key, searched by meaning and words.

    An item is a memory of the core, cut into parts where it is long: its texts are the words, its JSON
    is metadata. Everything is searched, so `index` has no effect; items have no time to live. Dates, times and
    UUIDs in a value come back as texts, as those of LangGraph's store for Postgres do.
    """

    supports_ttl = False

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def batch(self, ops: Iterable[Any]) -> List[Any]:
        """Reads see what was there before the writes of their batch, of which the last one for a key counts."""
        puts: Dict[Tuple[Tuple[str, ...], str], Any] = {}
        results: List[Any] = []
        for op in ops:
            if isinstance(op, GetOp):
                results.append(self._get(op.namespace, op.key))
            elif isinstance(op, SearchOp):
                results.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._list_namespaces(op))
            elif isinstance(op, PutOp):
                puts[(tuple(op.namespace), op.key)] = op.value
                results.append(None)
            else:
                raise ValueError(f"{op!r} is no operation of a store")
        for (namespace, key), value in puts.items():
            self._put(namespace, key, value)
        return results

    async def abatch(self, ops: Iterable[Any]) -> List[Any]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _get(self, namespace: Sequence[str], key: str) -> Optional[Item]:
        items = _to_items(list_rows(self._vault, _tree(namespace, key)))
        return Item(**items[0]) if items else None

    def _put(self, namespace: Sequence[str], key: str, value: Optional[Fields]) -> None:
        if not 1 <= len(namespace) <= DEPTH_MAX:
            raise ValueError(f"a namespace has 1 to {DEPTH_MAX} labels: {namespace}")
        before = list_rows(self._vault, _tree(namespace, key))
        if value is None:
            delete_rows(self._vault, before)
            return
        known = to_texts("lg_", before)
        times = (known[0].created_at, known[0].updated_at) if known else (0, 0)
        # A key that is too long for its field stands before the value.
        data = _encode(value if _field_of(key) == key else [key, value])
        words = "\n".join(_words(value)) or _encode(value)
        put_texts(self._vault, "lg_", [LongText(_tree(namespace, key), words, *times, data)], before)

    def _search(self, op: Any) -> List[Any]:
        if getattr(op, "query", None):
            found = self._nearest(op.namespace_prefix, op.query)
        else:
            found = _to_items(list_rows(self._vault, _tree(op.namespace_prefix)))
        matching = [item for item in found if _matches(item["value"], op.filter or {})]
        return [SearchItem(**item) for item in matching[op.offset : op.offset + op.limit]]

    def _nearest(self, prefix: Sequence[str], query: str) -> List[Fields]:
        rows = self._vault.search(query=query, limit=HITS_MAX, metadata=_tree(prefix))["memories"]
        found: Dict[Tuple[Tuple[str, ...], str], Fields] = {}
        for row in rows:
            metadata: Fields = dict(row.get("metadata", {}))
            name = (_namespace(metadata), str(metadata["lg_key"]))
            # The best part of an item comes first.
            if name not in found:
                items = _to_items(list_rows(self._vault, _tree(*name)))
                found[name] = {**items[0], "score": row["relevance"]} if items else {}
        return [item for item in found.values() if item]

    def _list_namespaces(self, op: Any) -> List[Tuple[str, ...]]:
        names = set()
        for row in list_rows(self._vault, _tree(())):
            name = _namespace(row["metadata"])
            if all(_matches_path(name, one) for one in op.match_conditions or ()):
                names.add(name[: op.max_depth] if op.max_depth else name)
        return sorted(names)[op.offset : op.offset + op.limit]


def _words(value: Any) -> Iterable[str]:
    """The texts of a value, in their order: what a person or a model would read of it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _words(part)


def _encode(value: Any) -> str:
    """JSON, with the texts by which LangGraph's store for Postgres keeps what JSON has no form for."""

    def plain(other: Any) -> str:
        if isinstance(other, (date, time)):
            return other.isoformat()
        if isinstance(other, UUID):
            return str(other)
        raise TypeError(f"a value of {type(other).__name__} is no JSON: {other!r}")

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=plain)


def _field_of(key: str) -> str:
    """A key as a field of metadata: the hash of one that is too long."""
    return key if len(key) <= KEY_CHARACTERS_MAX else f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def _tree(namespace: Sequence[str], key: Optional[str] = None) -> Fields:
    """The metadata of an item with this key, or of all items below a namespace."""
    labels: Fields = {f"lg_{at}": label for at, label in enumerate(namespace)}
    if key is not None:
        return {**labels, "lg_depth": len(namespace), "lg_key": _field_of(key)}
    return {**labels, "lg_depth": list(range(max(1, len(namespace)), DEPTH_MAX + 1))}


def _namespace(metadata: Fields) -> Tuple[str, ...]:
    return tuple(str(metadata[f"lg_{at}"]) for at in range(int(metadata["lg_depth"])))


def _to_items(rows: Sequence[Fields]) -> List[Fields]:
    """The items whose parts are all there and are JSON: a memory of one may have been edited."""
    items: List[Fields] = []
    for text in to_texts("lg_", rows):
        try:
            value = json.loads(text.data or text.text)
        except ValueError:
            continue
        items.append(_to_item(text, value))
    return items


def _to_item(text: LongText, value: Any) -> Fields:
    created, updated = (
        datetime.fromtimestamp(ms / 1000, timezone.utc) for ms in (text.created_at, text.updated_at)
    )
    key, value = value if isinstance(value, list) else (str(text.metadata["lg_key"]), value)
    return {
        "namespace": _namespace(dict(text.metadata)),
        "key": key,
        "value": value,
        "created_at": created,
        "updated_at": updated,
    }


_COMPARISONS = {
    "$eq": lambda value, other: value == other,
    "$ne": lambda value, other: value != other,
    "$gt": lambda value, other: float(value) > float(other),
    "$gte": lambda value, other: float(value) >= float(other),
    "$lt": lambda value, other: float(value) < float(other),
    "$lte": lambda value, other: float(value) <= float(other),
}


def _matches(value: Fields, filter: Fields) -> bool:
    """Whether each field of a filter is equal, or fulfils its operators."""
    for name, wanted in filter.items():
        if isinstance(wanted, dict) and any(key.startswith("$") for key in wanted):
            for key, other in wanted.items():
                if key not in _COMPARISONS:
                    raise ValueError(f"{key} is no operator of a filter")
                is_ordering = key not in ("$eq", "$ne")
                if is_ordering and value.get(name) is None:
                    return False
                if not _COMPARISONS[key](value.get(name), other):
                    return False
        elif value.get(name) != wanted:
            return False
    return True


def _matches_path(namespace: Sequence[str], condition: Any) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    at = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    return all(label in ("*", namespace[at + n]) for n, label in enumerate(path))
