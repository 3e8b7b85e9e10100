"""LangGraph: an agent with a tool and a store, for two users."""

from datetime import datetime, timezone
from typing import Any
from uuid import UUID

from harness import FORECAST, MODEL_KEY, MODEL_URL, apart, check, equal, main, remember, rows, seen, texts, vault_of, words_only
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from memory_vault.adapters.langgraph import VaultStore

ada, ben = vault_of("ada"), vault_of("ben")


@tool
def forecast(city: str, days: int) -> str:
    """The weather to come."""
    return "sunny"


def build(store: Any) -> Any:
    model = ChatOpenAI(model="gpt-4o-mini", base_url=MODEL_URL, api_key=MODEL_KEY).bind_tools([forecast])

    def answer(state: MessagesState, *, store: BaseStore) -> Any:
        said = state["messages"][-1]
        if said.type == "human":
            text = said.content if isinstance(said.content, str) else said.content[0]["text"]
            store.put(("memories", "ada"), said.id, {"data": text})
        found = store.search(("memories", "ada"), query=str(state["messages"][0].content), limit=3)
        known = "\n".join(item.value["data"] for item in found)
        return {"messages": [model.invoke([("system", f"You know: {known}"), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_node("tools", ToolNode([forecast]))
    graph.add_edge(START, "answer")
    graph.add_conditional_edges("answer", tools_condition)
    graph.add_edge("tools", "answer")
    return graph.compile(store=store)


def first() -> None:
    store = VaultStore(ada)
    graph = build(store)
    said = {"messages": [("user", "My canoe is red. How will the weather be?")]}
    equal("the tool loop ends", graph.invoke(said)["messages"][-1].content, FORECAST)
    equal("the turn is stored once", texts(ada), ["My canoe is red. How will the weather be?"])
    for _ in graph.stream({"messages": [("user", "My boat lies in Lisbon.")]}, stream_mode="messages"):
        break
    check("a stopped stream leaves the words", "My boat lies in Lisbon." in texts(ada))
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    shown = [{"type": "text", "text": "This is my tent."}, picture]
    graph.invoke({"messages": [{"role": "user", "content": shown}]})
    check("beside a picture the words", "This is my tent." in texts(ada))
    equal("the role is the user's", {row["role"] for row in rows(ada)}, {"user"})
    words_only(ada)
    apart(ben, "canoe")
    compare(store)


def compare(store: Any) -> None:
    """The same operations give the same as the store of LangGraph."""
    other = InMemoryStore()
    results = []
    for one in (store, other):
        space = ("facts", "ada")
        one.put(space, "boat", {"text": "My boat lies in Lisbon. " * 40, "n": 900, "東京": ["🦊", None, 2.5]})
        one.put(space, "cat", {"text": "Tom", "n": 4})
        one.put(space, "none", {"n": 5, "open": True})
        one.put(space, "same", {"text": "Tom", "n": 6})
        one.put(space, "cat", {"text": "Tom", "n": 7})
        one.put(("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), "deep", {"text": " é🦊\n" * 500})
        one.put(space, "gone", {"text": "x"})
        one.delete(space, "gone")
        one.put(space, "ab" * 400, {"text": "A long key.", "n": 1})
        one.put(space, "ab" * 400 + "c", {"text": "Another.", "n": 1})
        one.delete(space, "ab" * 400 + "c")
        keys = ("boat", "cat", "none", "same", "gone", "ab" * 400, "ab" * 400 + "c")
        items = [one.get(space, key) for key in keys] + [one.get(("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), "deep")]
        results.append(
            [
                [item and (item.namespace, item.key, item.value) for item in items],
                sorted(item.key for item in one.search(space, filter={"n": {"$gt": 5}})),
                sorted(one.list_namespaces(prefix=("facts",))),
            ]
        )
    equal("operations as in InMemoryStore", results[0], results[1])
    check("a long key is found by meaning", [found.key for found in store.search(("facts",), query="A long key.")][0] == "ab" * 400)
    moment, number = datetime(2026, 2, 3, 4, 5, tzinfo=timezone.utc), UUID(int=7)
    store.put(("times",), "trip", {"text": "The trip.", "at": moment, "day": moment.date(), "id": number})
    equal("times are texts", store.get(("times",), "trip").value, {"text": "The trip.", "at": "2026-02-03T04:05:00+00:00", "day": "2026-02-03", "id": str(number)})
    try:
        store.put(("times",), "no", {"at": object()})
        check("what is no JSON is refused", False)
    except TypeError as error:
        check("what is no JSON is refused", "object is no JSON" in str(error), error)


def again() -> None:
    store = VaultStore(vault_of("ada"))
    seen()
    build(store).invoke({"messages": [("user", "What colour is my canoe?")]})
    check("after a restart the model is told", "My canoe is red." in "".join(seen()))
    found = store.search(("facts",), query="where is the boat?")
    check("searched by meaning", found and found[0].key == "boat" and found[0].score > 0, found)
    remember(ben, "I have a parrot.")
    equal("another user's store is empty", VaultStore(ben).search(("memories",)), [])


main({"first": first, "again": again})
