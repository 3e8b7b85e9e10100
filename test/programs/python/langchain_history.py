"""LangChain: the history of a conversation and a retriever."""

from harness import ANSWER, MODEL_KEY, MODEL_URL, PIXEL, apart, check, equal, main, rows, seen, texts, vault_of, words_only
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_openai import ChatOpenAI
from memory_vault.adapters.langchain import VaultChatMessageHistory, VaultRetriever

ada, ben = vault_of("ada"), vault_of("ben")
CHAT = {"configurable": {"session_id": "chat-1"}}


def build():
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{text}")])
    model = ChatOpenAI(model="gpt-4o-mini", base_url=MODEL_URL, api_key=MODEL_KEY)
    return RunnableWithMessageHistory(
        prompt | model,
        lambda session_id: VaultChatMessageHistory(ada, session_id),
        input_messages_key="text",
        history_messages_key="history",
    )


def first() -> None:
    chain = build()
    answer = chain.invoke({"text": "My canoe is red."}, CHAT)
    equal("a real answer has a long rest", len(str(answer.response_metadata)) > 200, True)
    equal("the words of both are stored", texts(ada, "chat-1"), ["My canoe is red.", ANSWER])
    history = VaultChatMessageHistory(ada, "chat-1")
    equal("the answer comes back whole", history.messages[1], answer)
    for _ in chain.stream({"text": "My boat lies in Lisbon."}, CHAT):
        break
    call = {"name": "forecast", "args": {"city": "Lisbon"}, "id": "call_1"}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL * 2000}}
    more = [
        HumanMessage([{"type": "text", "text": "This is my tent."}, picture, "And my stove."]),
        AIMessage("", tool_calls=[call]),
        ToolMessage("sunny", tool_call_id="call_1"),
        AIMessage("Noted. " * 200, response_metadata={"x": "y" * 3000}),
        HumanMessage("  \n"),
    ]
    other = VaultChatMessageHistory(ada, "chat-2")
    other.add_messages(more)
    equal("all come back as they were", other.messages, more)
    words_only(ada, "chat-1")
    words_only(ada, "chat-2")
    check("the words beside a picture", "This is my tent.And my stove." in texts(ada, "chat-2"))
    equal("roles", [row["role"] for row in rows(ada, "chat-1")][:2], ["user", "assistant"])
    apart(ben, "canoe")
    equal("another user's history is empty", VaultChatMessageHistory(ben, "chat-1").messages, [])


def again() -> None:
    seen()
    build().invoke({"text": "What colour is it?"}, CHAT)
    check("after a restart the history is sent", "My canoe is red." in "".join(seen()))
    retriever = VaultRetriever(vault=ada, limit=1, session_id="chat-1")
    equal("the retriever", [one.page_content for one in retriever.invoke("canoe")], ["My canoe is red."])
    VaultChatMessageHistory(ada, "chat-1").clear()
    equal("cleared", VaultChatMessageHistory(ada, "chat-1").messages, [])


main({"first": first, "again": again})
