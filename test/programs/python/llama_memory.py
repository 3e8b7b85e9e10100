"""LlamaIndex: a block of the memory of a chat engine."""

from harness import ANSWER, MODEL_KEY, MODEL_URL, apart, check, equal, main, remember, seen, texts, vault_of, words_only
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.core.memory import Memory
from llama_index.llms.openai_like import OpenAILike
from memory_vault.adapters.llama_index import VaultMemoryBlock

ada, ben = vault_of("ada"), vault_of("ben")


def forecast(city: str, days: int) -> str:
    """The weather to come."""
    return "sunny"


def build(vault, **options):
    llm = OpenAILike(model="gpt-4o-mini", api_base=MODEL_URL, api_key=MODEL_KEY, is_chat_model=True, is_function_calling_model=True, context_window=8000)
    block = VaultMemoryBlock(vault=vault)
    memory = Memory.from_defaults(session_id="chat-1", memory_blocks=[block], **options)
    return memory, block, FunctionAgent(tools=[forecast], llm=llm, system_prompt="Be terse.", streaming=False)


async def first() -> None:
    remember(ada, "My cat is called Tom.")
    memory, block, agent = build(ada, token_limit=80, chat_history_token_ratio=0.5, token_flush_size=20)
    seen()
    answer = await agent.run("What is my cat called, and how will the weather be?", memory=memory)
    check("the tool loop ends", "sun" in str(answer), answer)
    check("the model is told", "My cat is called Tom." in "".join(seen()))
    for said in ("My canoe is red.", "My boat lies in Lisbon.", "My stove is green.", "My hat is blue."):
        await agent.run(said, memory=memory)
    found = texts(ada)
    check("what left the short-term memory is stored", "My canoe is red." in found, found)
    equal("each once", len([one for one in found if one == "My canoe is red."]), 1)
    # What is still in the short-term memory, at the end of a conversation.
    memory, block, agent = build(ada)
    shown = ChatMessage(role="user", blocks=[TextBlock(text="This is my tent."), ImageBlock(image=b"\x89PNG")])
    await memory.aput(shown)
    await agent.run("My kite is long.", memory=memory)
    await block.aput(await memory.aget_all())
    check("the end of a short conversation is stored", {"My kite is long.", "This is my tent.", ANSWER} <= set(texts(ada)), texts(ada))
    words_only(ada)
    apart(ben, "canoe")


async def again() -> None:
    memory, _, agent = build(ada)
    seen()
    await agent.run("What colour is my canoe?", memory=memory)
    check("after a restart the model is told", "My canoe is red." in "".join(seen()))


main({"first": first, "again": again})
