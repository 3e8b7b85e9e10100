"""Pydantic AI: a capability that recalls, with a tool loop, a stream and a history of several turns."""

from harness import FORECAST, MODEL_KEY, MODEL_URL, PIXEL, apart, check, equal, main, remember, seen, texts, vault_of, words_only
from memory_vault.adapters.pydantic_ai import VaultMemory
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

ada, ben = vault_of("ada"), vault_of("ben")
BLOCK = "<memory_context>"


def build(vault):
    memory = VaultMemory(vault)
    model = OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(base_url=MODEL_URL, api_key=MODEL_KEY))
    agent = Agent(model, capabilities=[memory], toolsets=[memory.toolset()])

    @agent.tool_plain
    def forecast(city: str, days: int) -> str:
        """The weather to come."""
        return "sunny"

    return memory, agent


async def first() -> None:
    remember(ada, "My cat is called Tom and sleeps all day.")
    memory, agent = build(ada)
    seen()
    result = await agent.run("What is my cat called, and how will the weather be?")
    bodies = seen()
    equal("the tool loop ends", result.output, FORECAST)
    equal("each step has the block once", [body.count(BLOCK) for body in bodies], [1, 1])
    equal("and the same one", len({body[body.index(BLOCK) :][:200] for body in bodies}), 1)
    history = result.all_messages()
    check("the history keeps none", BLOCK not in str(history))
    await memory.store(result.new_messages())
    for said in ("My canoe is red.", "Where does my cat Tom sleep?", "And my cat again?"):
        result = await agent.run(said, message_history=history)
        history = result.all_messages()
        await memory.store(result.new_messages())
    check("a further turn has one block at most", max(body.count(BLOCK) for body in seen()) == 1)
    check("the history keeps none", BLOCK not in str(history))
    async with agent.run_stream("My boat lies in Lisbon.") as streamed:
        async for _ in streamed.stream_text(delta=True):
            break
        await memory.store(streamed.new_messages())
    check("a stopped stream leaves the words", "My boat lies in Lisbon." in texts(ada), texts(ada))
    result = await agent.run(["This is my tent.", BinaryContent(data=b"\x89PNG" + PIXEL.encode(), media_type="image/png")])
    await memory.store(result.new_messages())
    check("beside a picture the words", "This is my tent." in texts(ada))
    words_only(ada)
    apart(ben, "canoe")
    seen()
    await build(ben)[1].run("What is my cat called?")
    check("another user's model is told nothing", BLOCK not in "".join(seen()))


async def again() -> None:
    memory, agent = build(ada)
    seen()
    await agent.run("What colour is my canoe?")
    check("after a restart the model is told", "My canoe is red." in "".join(seen()))
    await agent.run('call remember {"fact":"The stove is green."}')
    check("the model keeps a fact", "The stove is green." in texts(ada), texts(ada))
    seen()
    await agent.run('call search_memory {"query":"stove"}')
    check("and finds it", "The stove is green." in seen()[-1])


main({"first": first, "again": again})
