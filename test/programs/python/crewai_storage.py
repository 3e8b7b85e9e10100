"""CrewAI: the memory of a crew."""

import os

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false", CREWAI_TESTING="true")

from crewai import LLM, Agent, Crew, Task  # noqa: E402
from crewai.memory.unified_memory import Memory  # noqa: E402
from crewai.tools import tool  # noqa: E402
from harness import MODEL_KEY, MODEL_URL, apart, check, equal, main, rows, seen, texts, vault_of, words_only  # noqa: E402
from memory_vault.adapters.crewai import VaultStorage  # noqa: E402

ada, ben = vault_of("ada"), vault_of("ben")
FACT = "We decided to use PostgreSQL for the user database."


@tool("forecast")
def forecast(city: str, days: int) -> str:
    """The weather to come."""
    return "sunny"


def build(vault):
    llm = LLM(model="openai/gpt-4o-mini", base_url=MODEL_URL, api_key=MODEL_KEY)
    storage = VaultStorage(vault)
    return llm, storage, Memory(storage=storage, embedder=storage.embed, llm=llm)


def first() -> None:
    llm, storage, memory = build(ada)
    memory.remember(FACT, scope="/p", categories=["database"], importance=0.7, metadata={"n": 1})
    memory.remember("The canoe is red.", scope="/p/boats", categories=["boat"], importance=0.5)
    memory.drain_writes()
    equal("the facts are the texts", sorted(texts(ada)), ["The canoe is red.", FACT])
    equal("of the user", {row["role"] for row in rows(ada)}, {"user"})
    words_only(ada)
    equal("by scope", [one.content for one in storage.list_records("/p/boats")], ["The canoe is red."])
    found = memory.recall("which database?", scope="/p", limit=2, depth="shallow")
    equal("recalled", found[0].record.content, FACT)
    equal("counted", (storage.count(), storage.list_scopes("/"), storage.list_categories()), (2, ["/p"], {"boat": 1, "database": 1}))
    record = storage.list_records("/p/boats")[0]
    equal("a record comes back whole", (record.categories, record.importance), (["boat"], 0.5))
    memory.update(record.id, content="The canoe is blue.")
    equal("replaced", sorted(texts(ada)), ["The canoe is blue.", FACT])
    apart(ben, "database")
    crew(llm, memory)


def crew(llm, memory) -> None:
    agent = Agent(role="Adviser", goal="Advise", backstory="Terse.", llm=llm, tools=[forecast])
    task = Task(description="Which database do we use, and how will the weather be?", expected_output="A line.", agent=agent)
    seen()
    result = Crew(agents=[agent], tasks=[task], memory=memory).kickoff()
    check("a crew ends", str(result), result)
    check("and its model is told", FACT in "".join(seen()))
    memory.drain_writes()
    words_only(ada)


def again() -> None:
    _, storage, memory = build(vault_of("ada"))
    found = memory.recall("PostgreSQL", scope="/p", limit=1, depth="shallow")
    equal("after a restart it is recalled", found[0].record.content, FACT)
    check("forgotten", memory.forget(scope="/p") >= 2)
    equal("nothing is left below", storage.count("/p"), 0)
    memory.reset()
    equal("reset", texts(ada), [])


main({"first": first, "again": again})
