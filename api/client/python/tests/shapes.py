"""The interfaces of frameworks that this Python does not have: names, signatures and what is awaited.

Written from their published sources of August 2026. Where a framework is installed, the tests use it.
"""

from __future__ import annotations

import importlib
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any, Dict, Generic, List, NamedTuple, Optional, Tuple, TypeVar

Content = TypeVar("Content")


class Model:
    """Fields with defaults by name, as a model of pydantic has them; unknown ones are left out."""

    def __init__(self, **given: Any) -> None:
        names = [name for kind in type(self).__mro__ for name in vars(kind).get("__annotations__", {})]
        for name in names:
            if name not in given and not hasattr(type(self), name):
                raise TypeError(f"{name} is missing")
            value = given[name] if name in given else getattr(type(self), name)
            setattr(self, name, value() if callable(value) and name not in given else value)


def Field(default: Any = None, *, default_factory: Any = None, exclude: bool = False) -> Any:
    return default_factory or default


def _tool(is_async: bool) -> type:
    names = ("view", "create", "str_replace", "insert", "delete", "rename")

    class Tool(ABC):
        def __init__(self, *, cache_control: Any = None) -> None:
            self._cache_control = cache_control

        def to_dict(self) -> Any:
            return {"type": "memory_20250818", "name": "memory"}

        def execute(self, command: Any) -> Any:
            return getattr(self, command.command)(command)

    for name in names:
        setattr(Tool, name, abstractmethod(lambda self, command: None))
    Tool.__abstractmethods__ = frozenset(names)
    return Tool


class GetOp(NamedTuple):
    namespace: Tuple[str, ...]
    key: str
    refresh_ttl: bool = True


class SearchOp(NamedTuple):
    namespace_prefix: Tuple[str, ...]
    filter: Optional[Dict[str, Any]] = None
    limit: int = 10
    offset: int = 0
    query: Optional[str] = None
    refresh_ttl: bool = True


class PutOp(NamedTuple):
    namespace: Tuple[str, ...]
    key: str
    value: Optional[Dict[str, Any]]
    index: Any = None
    ttl: Optional[float] = None


class MatchCondition(NamedTuple):
    match_type: str
    path: Tuple[str, ...]


class ListNamespacesOp(NamedTuple):
    match_conditions: Optional[Tuple[MatchCondition, ...]] = None
    max_depth: Optional[int] = None
    limit: int = 100
    offset: int = 0


class Item:
    __slots__ = ("value", "key", "namespace", "created_at", "updated_at")

    def __init__(self, *, value: Any, key: str, namespace: Any, created_at: Any, updated_at: Any) -> None:
        self.value, self.key, self.namespace = value, key, tuple(namespace)
        self.created_at, self.updated_at = created_at, updated_at


class SearchItem(Item):
    __slots__ = ("score",)

    def __init__(
        self, namespace: Any, key: str, value: Any, created_at: Any, updated_at: Any, score: Any = None
    ) -> None:
        super().__init__(
            value=value, key=key, namespace=namespace, created_at=created_at, updated_at=updated_at
        )
        self.score = score


class BaseStore(ABC):
    @abstractmethod
    def batch(self, ops: Any) -> List[Any]: ...

    @abstractmethod
    async def abatch(self, ops: Any) -> List[Any]: ...

    def get(self, namespace: Any, key: str) -> Any:
        return self.batch([GetOp(namespace, key)])[0]

    def put(self, namespace: Any, key: str, value: Any) -> None:
        self.batch([PutOp(namespace, key, value)])

    def delete(self, namespace: Any, key: str) -> None:
        self.batch([PutOp(namespace, key, None)])

    def search(self, prefix: Any, /, **options: Any) -> Any:
        return self.batch([SearchOp(prefix, **options)])[0]

    async def aget(self, namespace: Any, key: str) -> Any:
        return (await self.abatch([GetOp(namespace, key)]))[0]


@dataclass
class BaseMessage:
    content: Any
    additional_kwargs: Dict[str, Any] = field(default_factory=dict)
    type = ""


class HumanMessage(BaseMessage):
    type = "human"


class AIMessage(BaseMessage):
    type = "ai"


class BaseChatMessageHistory(ABC):
    messages: List[BaseMessage]

    def add_user_message(self, message: str) -> None:
        self.add_messages([HumanMessage(message)])

    def add_messages(self, messages: Any) -> None:
        raise NotImplementedError

    @abstractmethod
    def clear(self) -> None: ...


def message_to_dict(message: BaseMessage) -> Dict[str, Any]:
    data = {"content": message.content, "additional_kwargs": message.additional_kwargs, "type": message.type}
    return {"type": message.type, "data": data}


def messages_from_dict(messages: Any) -> List[BaseMessage]:
    kinds = {"human": HumanMessage, "ai": AIMessage}
    return [
        kinds[one["type"]](one["data"]["content"], one["data"].get("additional_kwargs", {}))
        for one in messages
    ]


class BaseRetriever(Model):
    def invoke(self, query: str) -> Any:
        return self._get_relevant_documents(query, run_manager=None)  # type: ignore[attr-defined]


class Document(Model):
    page_content: str
    id: Any = None
    metadata: Any = dict


class BaseMemoryService(ABC):
    @abstractmethod
    async def add_session_to_memory(self, session: Any) -> None: ...

    @abstractmethod
    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> Any: ...


class MemoryEntry(Model):
    content: Any
    id: Any = None
    author: Any = None
    timestamp: Any = None


class ContextProvider:
    def __init__(self, source_id: str) -> None:
        self.source_id = source_id


class Message:
    def __init__(self, role: str, contents: Any = None) -> None:
        self.role, self.contents, self.text = role, contents, "\n".join(contents or [])


class BaseMemoryBlock(Model, Generic[Content]):
    name: str
    priority: int = 0

    async def aget(self, messages: Any = None, **options: Any) -> Any:
        return await self._aget(messages, **options)  # type: ignore[attr-defined]

    async def aput(self, messages: Any, from_short_term_memory: bool = False, session_id: Any = None) -> None:
        await self._aput(messages)  # type: ignore[attr-defined]


@dataclass
class Part:
    content: Any


class SystemPromptPart(Part):
    pass


class UserPromptPart(Part):
    pass


class TextPart(Part):
    pass


@dataclass
class ModelRequest:
    parts: Any


@dataclass
class ModelResponse:
    parts: Any


class FunctionToolset:
    def __init__(self, tools: Any = ()) -> None:
        self.tools = {tool.__name__: SimpleNamespace(function=tool) for tool in tools}


class MemoryProvider(ABC):
    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def is_available(self) -> bool: ...

    @abstractmethod
    def initialize(self, session_id: str, **kwargs: Any) -> None: ...

    @abstractmethod
    def get_tool_schemas(self) -> Any: ...


class MemoryRecord(Model):
    content: str
    id: str
    created_at: Any
    scope: str = "/"
    categories: Any = list
    metadata: Any = dict
    embedding: Any = None

    def model_dump_json(self, *, exclude: Any) -> str:
        import json

        return json.dumps({name: value for name, value in vars(self).items() if name not in exclude}, default=str)

    def __init__(self, **given: Any) -> None:
        from datetime import datetime

        super().__init__(**given)
        if isinstance(self.created_at, str):
            self.created_at = datetime.fromisoformat(self.created_at)


class ScopeInfo(Model):
    path: str
    record_count: int = 0
    categories: Any = list
    oldest_record: Any = None
    newest_record: Any = None
    child_scopes: Any = list


def _named(*kinds: Any) -> Dict[str, Any]:
    return {kind.__name__: kind for kind in kinds}


SHAPES: Dict[str, Dict[str, Any]] = {
    "anthropic.lib.tools": {
        "BetaAbstractMemoryTool": _tool(False),
        "BetaAsyncAbstractMemoryTool": _tool(True),
    },
    "langgraph.store.base": _named(
        BaseStore, GetOp, Item, ListNamespacesOp, MatchCondition, PutOp, SearchItem, SearchOp
    ),
    "langchain_core.chat_history": _named(BaseChatMessageHistory),
    "langchain_core.documents": _named(Document),
    "langchain_core.messages": _named(
        AIMessage, BaseMessage, HumanMessage, message_to_dict, messages_from_dict
    ),
    "langchain_core.retrievers": _named(BaseRetriever),
    "google.adk.memory.base_memory_service": {
        "BaseMemoryService": BaseMemoryService,
        "SearchMemoryResponse": SimpleNamespace,
    },
    "google.adk.memory.memory_entry": _named(MemoryEntry),
    "google.genai": {"types": SimpleNamespace(Content=SimpleNamespace, Part=SimpleNamespace)},
    "agent_framework": _named(ContextProvider, Message),
    "llama_index.core.bridge.pydantic": _named(Field),
    "llama_index.core.memory": _named(BaseMemoryBlock),
    "pydantic_ai.messages": _named(ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart),
    "pydantic_ai.toolsets": _named(FunctionToolset),
    "agent.memory_provider": _named(MemoryProvider),
    "crewai.memory.types": _named(MemoryRecord, ScopeInfo),
}


def install() -> None:
    """Puts each interface in the place of its module where that is missing."""
    for name, members in SHAPES.items():
        try:
            importlib.import_module(name)
        except ImportError:
            for end in range(1, name.count(".") + 1):
                parent = ".".join(name.split(".")[:end])
                sys.modules.setdefault(parent, ModuleType(parent))
            module = ModuleType(name)
            vars(module).update(members)
            sys.modules[name] = module
