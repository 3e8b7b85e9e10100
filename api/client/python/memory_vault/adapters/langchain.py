"""A history and a retriever of LangChain (`langchain-core`)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever

from ..generated.vault import Vault
from .core import Fields
from .session_items import SessionItems

ROLES = {"human": "user", "ai": "assistant"}


class VaultChatMessageHistory(BaseChatMessageHistory):
    """The messages of a conversation in a session of the vault, for `RunnableWithMessageHistory`."""

    def __init__(self, vault: Vault, session_id: str) -> None:
        self._items = SessionItems(vault, session_id, "langchain")

    @property
    def messages(self) -> List[BaseMessage]:  # type: ignore[override]
        return messages_from_dict([_to_message(one["item"]) for one in self._items.read()])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self._items.add([_to_item(message_to_dict(message)) for message in messages])

    def clear(self) -> None:
        self._items.clear()


def _to_item(message: Fields) -> Fields:
    """The content beside the rest, of which what is empty is the default."""
    data: Fields = dict(message["data"])
    content = data.pop("content", "")
    kept = {name: value for name, value in data.items() if value not in (None, "", [], {}, False)}
    item = {"type": message["type"], "content": content, "data": kept}
    return {**item, "role": ROLES[message["type"]]} if message["type"] in ROLES else item


def _to_message(item: Fields) -> Fields:
    return {"type": item["type"], "data": {**item["data"], "content": item["content"]}}


class VaultRetriever(BaseRetriever):
    """One search for each query, the best memory first."""

    vault: Any
    limit: int = 8
    min_relevance: Optional[float] = None
    session_id: Optional[str] = None
    #: only memories with this metadata (`metadata` is LangChain's own, about the run)
    filter: Optional[Dict[str, Any]] = None

    def _get_relevant_documents(self, query: str, *, run_manager: Any = None) -> List[Document]:
        found = self.vault.search(
            query=query,
            limit=self.limit,
            min_relevance=self.min_relevance,
            session_id=self.session_id,
            metadata=self.filter,
        )
        documents: List[Document] = []
        for memory in found["memories"]:
            fields = {name: value for name, value in memory.items() if name != "content"}
            documents.append(Document(page_content=memory["content"], id=memory["id"], metadata=fields))
        return documents
