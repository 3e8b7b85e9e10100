"""OpenAI Agents SDK: sessions, by both APIs of OpenAI."""

import time

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from harness import FORECAST, MODEL_KEY, MODEL_URL, apart, check, equal, main, seen, texts, vault_of, words_only
from memory_vault.adapters.openai_agents import VaultSession
from openai import AsyncOpenAI

ada, ben = vault_of("ada"), vault_of("ben")
set_tracing_disabled(True)


@function_tool
def forecast(city: str, days: int) -> str:
    """The weather to come."""
    return "sunny"


def build(kind) -> Agent:
    client = AsyncOpenAI(base_url=MODEL_URL, api_key=MODEL_KEY)
    return Agent(name="terse", model=kind("gpt-5-mini", openai_client=client), tools=[forecast])


async def first() -> None:
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        session = VaultSession(ada, kind.__name__)
        said = "My canoe is red. How will the weather be?"
        result = await Runner.run(build(kind), said, session=session)
        equal(f"{kind.__name__}: the tool loop ends", result.final_output, FORECAST)
        found = texts(ada, kind.__name__)
        check("the words of both", said in found and FORECAST in found, found)
        words_only(ada, kind.__name__)
        kept = SQLiteSession("x")
        await Runner.run(build(kind), said, session=kept)
        names = [[item.get("type"), item.get("role")] for item in await session.get_items()]
        equal("the same items as SQLiteSession", names, [[i.get("type"), i.get("role")] for i in await kept.get_items()])
        streamed = Runner.run_streamed(build(kind), "My boat lies in Lisbon.", session=session)
        async for _ in streamed.stream_events():
            streamed.cancel()
            break
    await pictures()
    apart(ben, "canoe")
    equal("another user's session is empty", await VaultSession(ben, "OpenAIResponsesModel").get_items(), [])


async def pictures() -> None:
    """A picture is stored once, and comes back whole."""
    session = VaultSession(ada, "pictures")
    url = "data:image/png;base64," + "A" * 400_000
    shown = {"type": "input_image", "image_url": url, "detail": "auto"}
    screenshot = {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot", "image_url": url}}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "This is my tent."}, shown]},
        screenshot,
        {"type": "function_call_output", "call_id": "1", "output": " é🦊\n" * 900},
        {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "x" * 9000},
    ]
    before = time.monotonic()
    await session.add_items(items)
    equal("pictures come back as they were", await session.get_items(), items)
    check("in seconds", time.monotonic() - before < 120, time.monotonic() - before)
    found = texts(ada, "pictures")
    check("few memories, the words first", len(found) < 1200 and "This is my tent." in found, len(found))
    check("no text is a part of a picture", not any("AAAA" in text for text in found))
    try:
        await session.add_items([{"role": "user", "content": [{**shown, "image_url": "A" * 40_000_000}]}])
        check("a picture of 40 MB is refused", False)
    except ValueError as error:
        check("a picture of 40 MB is refused", "too long" in str(error), error)
    equal("and nothing of it is stored", len(await session.get_items()), len(items))


async def again() -> None:
    seen()
    session = VaultSession(ada, "OpenAIChatCompletionsModel")
    await Runner.run(build(OpenAIChatCompletionsModel), "What colour is it?", session=session)
    check("after a restart the history is sent", "My canoe is red." in "".join(seen()))
    last = await session.pop_item()
    check("the newest item is removed", last and last not in await session.get_items())
    await session.clear_session()
    equal("cleared", await session.get_items(), [])


main({"first": first, "again": again})
