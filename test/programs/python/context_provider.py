"""Microsoft Agent Framework: a context provider of an agent."""

import logging

from agent_framework import Agent, Content, Message
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from harness import FORECAST, MODEL_KEY, MODEL_URL, PIXEL, apart, check, equal, main, remember, seen, texts, vault_of, words_only
from memory_vault import Vault
from memory_vault.adapters.agent_framework import VaultContextProvider

ada, ben = vault_of("ada"), vault_of("ben")


def forecast(city: str, days: int) -> str:
    """The weather to come."""
    return "sunny"


def build(vault, kind=OpenAIChatCompletionClient):
    client = kind(model="gpt-4o-mini", api_key=MODEL_KEY, base_url=MODEL_URL)
    return Agent(client, instructions="Be terse.", tools=[forecast], context_providers=[VaultContextProvider(vault)])


async def first() -> None:
    remember(ada, "My cat is called Tom.")
    for at, kind in enumerate((OpenAIChatCompletionClient, OpenAIChatClient)):
        agent = build(ada, kind)
        session = agent.create_session()
        seen()
        said = f"What is my cat called, and how will the weather be at {at}?"
        answer = await agent.run(said, session=session)
        bodies = seen()
        equal("the tool loop ends", answer.text, FORECAST)
        check("the model is told", "My cat is called Tom." in bodies[0], len(bodies))
        equal("the turn is stored once", len([one for one in texts(ada) if one == said]), 1)
        await agent.run("My canoe is red.", session=session)
        stream = agent.run("My boat lies in Lisbon.", session=session, stream=True)
        async for _ in stream:
            break
        shown = [Content.from_text("This is my tent."), Content.from_uri("data:image/png;base64," + PIXEL, media_type="image/png")]
        await agent.run(Message(role="user", contents=shown), session=session)
    found = texts(ada)
    check("beside a picture the words", "This is my tent." in found, found)
    words_only(ada)
    apart(ben, "canoe")
    warnings = []
    logging.getLogger("memory_vault").addHandler(type("Kept", (logging.Handler,), {"emit": lambda _, one: warnings.append(one)})())
    answer = await build(Vault("http://127.0.0.1:9", "mk_x", retries=0)).run("Hello")
    check("without a service the agent runs, with a warning", answer.text and warnings)


async def again() -> None:
    seen()
    await build(ada).run("What colour is my canoe?")
    check("after a restart the model is told", "My canoe is red." in "".join(seen()))


main({"first": first, "again": again})
