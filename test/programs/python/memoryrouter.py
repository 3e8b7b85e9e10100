"""The published client of the hosted contract for LangChain, unchanged but for its address."""

import os

from harness import BASE_URL, MODEL_KEY, MODEL_URL, OWNER, check, equal, main, seen
from harness import texts as texts_of
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_memoryrouter import AsyncMemoryRouterClient, MemoryRouterClient, MemoryRouterStore, create_memory_tools, create_recall_node, create_retain_node
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from memory_vault import Vault


class State(MessagesState):
    memory_context: str


def key_of(user: str) -> str:
    return OWNER.create_key(name=os.environ["RUN"] + user)["key"]


def build():
    client = MemoryRouterClient(base_url=BASE_URL)
    model = ChatOpenAI(model="gpt-4o-mini", base_url=MODEL_URL, api_key=MODEL_KEY)

    def answer(state: State):
        known = state.get("memory_context") or ""
        return {"messages": [model.invoke([("system", f"You know: {known}"), *state["messages"]])]}

    graph = StateGraph(State)
    graph.add_node("recall", create_recall_node(client=client))
    graph.add_node("answer", answer)
    graph.add_node("retain", create_retain_node(client=client))
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "answer")
    graph.add_edge("answer", "retain")
    graph.add_edge("retain", END)
    return graph.compile()


async def first() -> None:
    ada, ben = key_of("ada"), key_of("ben")
    vault = Vault(BASE_URL, ada)
    graph = build()
    graph.invoke({"messages": [("user", "My canoe is red.")]}, {"configurable": {"memory_key": ada}})
    check("a turn is retained", "My canoe is red." in texts_of(vault))
    seen()
    asked = {"messages": [("user", "What colour is my canoe?")]}
    graph.invoke(asked, {"configurable": {"memory_key": ada}})
    check("and recalled", "My canoe is red." in "".join(seen()))
    graph.invoke(asked, {"configurable": {"memory_key": ben}})
    check("another key sees nothing", "My canoe is red." not in "".join(seen()))
    graph.invoke({"messages": [("user", "My kite is long.")]}, {"configurable": {"memory_key": ada, "thread_id": "t-1"}})
    check("a thread is a session", "My kite is long." in texts_of(vault, "t-1") and "My kite is long." not in texts_of(vault))
    store = MemoryRouterStore(ada, base_url=BASE_URL)
    store.mset([("boat", "The boat lies in Lisbon.")])
    while not any("Lisbon" in text for text in texts_of(vault)):
        pass
    check("the store", "Lisbon" in str(store.mget(["boat"])), store.mget(["boat"]))
    check("and asynchronously", "Lisbon" in str(await store.amget(["boat"])))
    retain, recall = create_memory_tools(ada, client=MemoryRouterClient(ada, base_url=BASE_URL))
    told = [HumanMessage("The stove is green."), AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": "1"}]), ToolMessage("x", tool_call_id="1")]
    check("its tools", "Retained 1" in retain.invoke({"messages": told}))
    check("recall of its tools", "canoe" in recall.invoke({"query": "canoe"}))
    client = AsyncMemoryRouterClient(ada, base_url=BASE_URL)
    block = await client.aprepare([{"role": "user", "content": "Which colour has the canoe?"}], density="high", context_limit=20)
    check("prepare", "My canoe is red." in str(block["context"]), block)
    faults = []
    try:
        client.search("", limit=5)
    except Exception as error:
        faults.append(str(error))
    check("a refusal is told", faults and "400" in faults[0], faults)


def again() -> None:
    key = key_of("cy")
    MemoryRouterClient(key, base_url=BASE_URL).ingest([{"role": "user", "content": "My hat is blue."}], model="gpt-4o-mini")
    equal("what it stores are the words", texts_of(Vault(BASE_URL, key)), ["My hat is blue."])


main({"first": first, "again": again})
