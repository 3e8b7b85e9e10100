"""
title: Memory Vault
author: Memory Vault
version: 1.1.0
required_open_webui_version: 0.9.0
license: MIT
description: Recalls what a Memory Vault remembers of the person before each message, and stores the turn after it.
"""

import logging
import re
from collections import OrderedDict
from typing import Any, Awaitable, Callable, Optional

import httpx
from pydantic import BaseModel, Field

logger = logging.getLogger(__name__)

# Questions that are kept so that an answer which is made again does not store them twice.
QUESTIONS_MAX = 1000
# Messages before the question that are asked with.
MESSAGES_MAX = 6

Emitter = Optional[Callable[[dict], Awaitable[None]]]


class Filter:
    """A filter function of Open WebUI: one vault for each of its users.

    Chats that are temporary and channels, which several people read, are neither asked with nor stored. A fault of the
    memory is told in the chat, and the model answers all the same.
    """

    class Valves(BaseModel):
        url: str = Field("http://localhost:3000", description="Address of the service, without /v1")
        key: str = Field(
            "", description="Memory Key with the rights users", json_schema_extra={"input": {"type": "password"}}
        )
        person: str = Field("id", description="What names the person to the service: id or email")
        timeout: float = Field(2.0, description="Seconds to wait for what is remembered")
        priority: int = Field(0, description="Place among the filters, the lowest first")

    class UserValves(BaseModel):
        enabled: bool = Field(True, description="Remember my chats, and tell models what was remembered")
        key: str = Field(
            "", description="A Memory Key of my own, in place of a vault here", json_schema_extra={"input": {"type": "password"}}
        )

    def __init__(self) -> None:
        self.valves = self.Valves()
        self._stored: "OrderedDict[str, bool]" = OrderedDict()

    async def inlet(
        self,
        body: dict,
        __user__: Optional[dict] = None,
        __metadata__: Optional[dict] = None,
        __event_emitter__: Emitter = None,
    ) -> dict:
        """Puts the block of what is remembered before the words of the person's last message."""
        headers = self._headers(__user__)
        messages = body.get("messages") or []
        if headers is None or not _is_private(__metadata__) or not messages or messages[-1].get("role") != "user":
            return body
        turns = [{"role": one["role"], "content": text} for one in messages if (text := _said(one))]
        if not turns:
            return body
        try:
            answer = await self._call(
                "/v1/memory/prepare", {"messages": turns[-MESSAGES_MAX:]}, headers, self.valves.timeout
            )
        except httpx.HTTPError as error:
            await _tell(__event_emitter__, "nothing was recalled", error)
            return body
        if answer.get("context"):
            # Only the request has it: the chat keeps what the person wrote.
            messages[-1] = _with_block(messages[-1], answer["context"])
        return body

    async def outlet(
        self,
        body: dict,
        __user__: Optional[dict] = None,
        __metadata__: Optional[dict] = None,
        __event_emitter__: Emitter = None,
    ) -> dict:
        """Stores the person's last message and the answer; the answer alone where it was made again."""
        headers = self._headers(__user__)
        messages = body.get("messages") or []
        chat = {"chat_id": body.get("chat_id"), **(__metadata__ or {})}
        if headers is None or not _is_private(chat) or len(messages) < 2:
            return body
        question, answer = messages[-2], messages[-1]
        said, answered = _said(question), _said(answer)
        if question.get("role") != "user" or answer.get("role") != "assistant" or not said or not answered:
            return body
        turn = [{"role": "user", "content": said}, {"role": "assistant", "content": answered}]
        known = str(question.get("id") or "")
        if known in self._stored:
            turn = turn[1:]
        metadata = {"source": "open-webui", "conversation": str(chat.get("chat_id") or "api")[:256]}
        try:
            await self._call("/v1/memory/ingest", {"messages": turn, "metadata": metadata}, headers, 10.0)
        except httpx.HTTPError as error:
            await _tell(__event_emitter__, "the turn was not stored", error)
            return body
        if known:
            self._stored[known] = True
            if len(self._stored) > QUESTIONS_MAX:
                self._stored.popitem(last=False)
        return body

    def _headers(self, user: Optional[dict]) -> Optional[dict]:
        """The key and the person of a call; None where nothing is remembered of them."""
        own = (user or {}).get("valves")
        if own is not None and not own.enabled:
            return None
        if own is not None and own.key:
            return {"Authorization": f"Bearer {own.key}"}
        person = (user or {}).get("email" if self.valves.person == "email" else "id")
        if not self.valves.key or not person:
            return None
        return {"Authorization": f"Bearer {self.valves.key}", "X-Memory-User": str(person)}

    async def _call(self, path: str, body: dict, headers: dict, timeout: float) -> dict:
        async with httpx.AsyncClient(timeout=timeout) as client:
            response = await client.post(self.valves.url.rstrip("/") + path, json=body, headers=headers)
        if response.is_error:
            raise httpx.HTTPStatusError(_reason(response), request=response.request, response=response)
        return response.json()


def _is_private(metadata: Optional[dict]) -> bool:
    """Whether a chat is the person's own and is kept."""
    chat = str((metadata or {}).get("chat_id") or "")
    return not chat.startswith(("local:", "temporary:", "channel:")) and not (metadata or {}).get("task")


def _said(message: dict) -> str:
    """The words of a message, without thoughts, results of tools and blocks of memory."""
    content: Any = message.get("content") or ""
    if isinstance(content, list):
        content = "\n".join(part.get("text", "") for part in content if part.get("type") == "text")
    content = re.sub(r"<details\b[^>]*\btype=.*?</details>", "", content, flags=re.DOTALL)
    content = re.sub(r"<memory_context\b.*?</memory_context>", "", content, flags=re.DOTALL)
    return content.strip() if message.get("role") in ("user", "assistant") else ""


def _with_block(message: dict, block: str) -> dict:
    content = message.get("content") or ""
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": block}, *content]}
    return {**message, "content": f"{block}\n\n{content}"}


def _reason(response: httpx.Response) -> str:
    try:
        said = response.json()
        return " ".join(str(said[name]) for name in ("error", "hint") if said.get(name))
    except ValueError:
        return f"status {response.status_code}"


async def _tell(emitter: Emitter, what: str, error: Exception) -> None:
    reason = str(error) or type(error).__name__
    logger.warning("Memory Vault: %s: %s", what, reason)
    if emitter:
        told = {"description": f"Memory Vault: {what}: {reason}", "done": True}
        await emitter({"type": "status", "data": told})
