"""Memory for Pydantic AI (`pydantic-ai`): a capability that recalls, a toolset, and a call that stores a run.

    memory = VaultMemory(vault)
    agent = Agent(model, capabilities=[memory], toolsets=[memory.toolset()])
    result = await agent.run("What is my cat called?")
    await memory.store(result.new_messages())
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections import OrderedDict
from typing import Any, Dict, List

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart
from pydantic_ai.toolsets import FunctionToolset

from ..errors import VaultError
from ..generated.vault import Vault
from .core import recall, store

logger = logging.getLogger(__name__)
#: Questions whose block is kept for the further steps of a run, which get the same one.
BLOCKS_MAX = 100


class VaultMemory(AbstractCapability[Any]):
    """Puts the block of what is remembered before the last words of the user of each request.

    The change is the request's alone: the history of the run never holds a block. A fault of the memory
    is logged, and the model is asked all the same.
    """

    def __init__(self, vault: Vault, *, turns: int = 6) -> None:
        """:param turns: the newest turns that the question is made of"""
        self._vault = vault
        self._turns = turns
        self._blocks: "OrderedDict[str, str]" = OrderedDict()

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        messages = await self._with_block(list(request_context.messages))
        return await handler(dataclasses.replace(request_context, messages=messages))

    async def _with_block(self, messages: List[Any]) -> List[Any]:
        asked = [at for at, message in enumerate(messages) if _is_question(message)]
        if not asked:
            return messages
        is_step = asked[-1] < len(messages) - 1
        block = await self._recall(_turns(messages[: asked[-1] + 1])[-self._turns :], is_step)
        if block:
            request = messages[asked[-1]]
            parts = [SystemPromptPart(content=block), *request.parts]
            messages[asked[-1]] = dataclasses.replace(request, parts=parts)
        return messages

    async def _recall(self, turns: List[Dict[str, str]], is_step: bool) -> str:
        """The block of a question; a further step of a run gets that of the first one."""
        key = json.dumps(turns)
        if is_step and key in self._blocks:
            return self._blocks[key]
        try:
            block = await asyncio.to_thread(recall, self._vault, turns)
        except VaultError as error:
            logger.warning("nothing was recalled: %s", error)
            return ""
        self._blocks[key] = block
        if len(self._blocks) > BLOCKS_MAX:
            self._blocks.popitem(last=False)
        return block

    async def store(self, messages: List[Any]) -> None:
        """Stores what user and model said in these messages, such as `result.new_messages()`."""
        await asyncio.to_thread(store, self._vault, _turns(messages))

    def toolset(self) -> Any:
        """Tools with which the model itself looks for memories and keeps one."""

        async def search_memory(query: str) -> List[str]:
            """Searches what is remembered of earlier conversations.

            Args:
                query: What to look for, in plain words.
            """
            found = await asyncio.to_thread(lambda: self._vault.search(query=query, limit=8))
            return [f"{one['timestamp']} {one['content']}" for one in found["memories"]]

        async def remember(fact: str) -> str:
            """Keeps a fact for later conversations.

            Args:
                fact: One sentence that stands for itself.
            """
            said = [{"role": "user", "content": fact}]
            await asyncio.to_thread(lambda: self._vault.ingest(messages=said, wait=True))
            return "Stored."

        return FunctionToolset(tools=[search_memory, remember])


def _is_question(message: Any) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(one, UserPromptPart) for one in message.parts)


def _turns(messages: List[Any]) -> List[Dict[str, str]]:
    turns: List[Dict[str, str]] = []
    for message in messages:
        role, kind = ("assistant", TextPart) if isinstance(message, ModelResponse) else ("user", UserPromptPart)
        texts = [_text(part.content) for part in message.parts if isinstance(part, kind)]
        turns.append({"role": role, "content": "\n".join(text for text in texts if text)})
    return [turn for turn in turns if turn["content"].strip()]


def _text(content: Any) -> str:
    """A prompt may be a list of texts, images and files."""
    return content if isinstance(content, str) else "\n".join(one for one in content if isinstance(one, str))
