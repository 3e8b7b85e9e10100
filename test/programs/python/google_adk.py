"""Google ADK: a runner with a memory service, and the tools that read it."""

import os

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types
from harness import ANSWER, FORECAST, OWNER, PIXEL, check, equal, main, seen, words_only
from harness import texts as texts_of
from memory_vault.adapters.google_adk import VaultMemoryService

os.environ["GOOGLE_GEMINI_BASE_URL"] = os.environ["GOOGLE_BASE_URL"]
APP = os.environ["RUN"] + "app"


def forecast(city: str, days: int) -> str:
    """The weather to come."""
    return "sunny"


def build():
    memory = VaultMemoryService(OWNER)
    tools = [forecast, load_memory, PreloadMemoryTool()]
    agent = LlmAgent(name="terse", model="gemini-2.5-flash", instruction="Be terse.", tools=tools)
    sessions = InMemorySessionService()
    return memory, sessions, Runner(agent=agent, app_name=APP, session_service=sessions, memory_service=memory)


async def say(runner, session, *parts, stop: bool = False) -> str:
    said = types.Content(role="user", parts=[types.Part(text=one) if isinstance(one, str) else one for one in parts])
    text = ""
    async for event in runner.run_async(user_id=session.user_id, session_id=session.id, new_message=said):
        if event.is_final_response() and event.content:
            text = "".join(part.text or "" for part in event.content.parts)
        if stop:
            break
    return text


async def first() -> None:
    memory, sessions, runner = build()
    session = await sessions.create_session(app_name=APP, user_id="ada")
    equal("the tool loop ends", await say(runner, session, "My canoe is red. How will the weather be?"), FORECAST)
    picture = types.Part(inline_data=types.Blob(mime_type="image/png", data=__import__("base64").b64decode(PIXEL)))
    await say(runner, session, "This is my tent.", picture)
    await say(runner, session, "My boat lies in Lisbon.", stop=True)
    session = await sessions.get_session(app_name=APP, user_id="ada", session_id=session.id)
    thought = types.Content(role="model", parts=[types.Part(text="A secret thought.", thought=True), types.Part(text="An oak loom.")])
    await sessions.append_event(session, Event(author="terse", content=thought))
    for _ in range(2):
        await memory.add_session_to_memory(session)
    vault = OWNER.for_user(f"{APP}/ada")
    found = texts_of(vault)
    wanted = ["My canoe is red. How will the weather be?", "This is my tent.", "My boat lies in Lisbon.", FORECAST, "An oak loom."]
    equal("each turn is stored once", sorted(found), sorted([*wanted, *[one for one in found if one == ANSWER]]))
    check("no thought", "A secret thought." not in "".join(found))
    words_only(vault)
    found = await memory.search_memory(app_name=APP, user_id="ben", query="canoe")
    equal("another user sees nothing", found.memories, [])
    try:
        await memory.search_memory(app_name=APP, user_id="a\nb", query="x")
        check("an id that no header holds is refused in words", False)
    except ValueError as error:
        check("an id that no header holds is refused in words", "user" in str(error), error)


async def again() -> None:
    memory, sessions, runner = build()
    session = await sessions.create_session(app_name=APP, user_id="ada")
    seen()
    await say(runner, session, "What colour is my canoe?")
    check("after a restart the memory is preloaded", "My canoe is red." in "".join(seen()))
    entry = (await memory.search_memory(app_name=APP, user_id="ada", query="canoe")).memories[0]
    equal("a memory as an entry", (type(entry), entry.author), (MemoryEntry, "user"))
    one = VaultMemoryService(OWNER, user_of=lambda app_name, user_id: f"{app_name}-{user_id}")
    await one.add_memory(app_name=APP, user_id="cy", memories=[entry])
    equal("a vault by ids of one's own", texts_of(OWNER.for_user(f"{APP}-cy")), [entry.content.parts[0].text])
    await memory.delete_memories(app_name=APP, user_id="ada")
    equal("deleted", (await memory.search_memory(app_name=APP, user_id="ada", query="canoe")).memories, [])


main({"first": first, "again": again})
