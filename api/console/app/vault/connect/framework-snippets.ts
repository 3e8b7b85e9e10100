import type {
  ConnectedClient,
  Place,
  Snippet,
} from '#api/console/app/vault/connect/sdk-snippets.ts'

const typescript = (text: string): Snippet => ({ file: 'TypeScript', text })
const python = (text: string): Snippet => ({ file: 'Python', text })

const packages = {
  typescript:
    'The package: npm pack ./api/client in a copy of Memory Vault, then npm install ./memory-vault-client-1.1.0.tgz in your program.',
  python: 'The package: pip install ./api/client/python in a copy of Memory Vault.',
}

/** A program of the client for TypeScript. */
const inTypeScript = (
  { url, key }: Place,
  { imports, body }: { imports: string; body: string },
): Snippet =>
  typescript(`import { createVault } from 'memory-vault-client'
${imports}

const vault = createVault('${url}', '${key}')
${body}`)

/** A program of the client for Python. */
const inPython = (
  { url, key }: Place,
  { imports, body }: { imports: string; body: string },
): Snippet =>
  python(`from memory_vault import Vault
${imports}

vault = Vault("${url}", "${key}")
${body}`)

/** The clients of this service, by the name in the address of the page; as their pages have them. */
export const clientSnippets: Record<string, ConnectedClient> = {
  typescript: {
    name: 'TypeScript client',
    kind: 'Clients',
    snippets: ({ url, key }) => [
      typescript(`import { createVault } from 'memory-vault-client'

const vault = createVault('${url}', '${key}')
await vault.ingest({ messages: [{ role: 'user', content: 'Ada turns nine in May.' }], wait: true })
const { memories } = await vault.search({ query: 'how old is Ada?', limit: 3 })
console.log(memories)`),
    ],
    notes: ['Every endpoint is a method, with its types.', packages.typescript],
  },
  python: {
    name: 'Python client',
    kind: 'Clients',
    snippets: ({ url, key }) => [
      python(`from memory_vault import Vault

vault = Vault("${url}", "${key}")
vault.ingest(messages=[{"role": "user", "content": "Ada turns nine in May."}], wait=True)
for memory in vault.search("how old is Ada?", limit=3)["memories"]:
    print(memory["content"])`),
    ],
    notes: [
      'Every endpoint is a method, with its types; AsyncVault is for asyncio.',
      packages.python,
    ],
  },
}

/** Adapters of frameworks. A line that is a comment goes where your program has the rest. */
export const frameworkSnippets: Record<string, ConnectedClient> = {
  'ai-sdk-middleware': {
    name: 'AI SDK middleware',
    kind: 'Frameworks',
    snippets: place => [
      inTypeScript(place, {
        imports: `import { vaultMiddleware } from 'memory-vault-client/ai-sdk'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, wrapLanguageModel } from 'ai'`,
        body: `const openai = createOpenAI({ apiKey: process.env.OPENAI_API_KEY! })
const model = wrapLanguageModel({
  model: openai.chat('gpt-4o-mini'),
  middleware: vaultMiddleware(vault, { onError: console.error }),
})
console.log((await generateText({ model, prompt: 'What is my cat called?' })).text)`,
      }),
    ],
    notes: [
      'Model calls go straight to the provider; memory is asked before and told after.',
      packages.typescript,
    ],
  },
  'langchain-adapter': {
    name: 'LangChain',
    kind: 'Frameworks',
    snippets: place => [
      inTypeScript(place, {
        imports: `import { VaultRetriever } from 'memory-vault-client/langchain'`,
        body: `const retriever = new VaultRetriever({ vault, limit: 3 })
console.log(await retriever.invoke('What is my cat called?'))`,
      }),
      inPython(place, {
        imports: `from memory_vault.adapters.langchain import VaultChatMessageHistory, VaultRetriever`,
        body: `retriever = VaultRetriever(vault=vault, limit=3)
print(retriever.invoke("What is my cat called?"))
# RunnableWithMessageHistory(chain, lambda session_id: VaultChatMessageHistory(vault, session_id))
print(VaultChatMessageHistory(vault, "conversation-1").messages)`,
      }),
    ],
    notes: [
      'For memory around each model call, see ChatOpenAI under SDKs by base URL.',
      packages.typescript,
      packages.python,
    ],
  },
  langgraph: {
    name: 'LangGraph',
    kind: 'Frameworks',
    snippets: place => [
      inTypeScript(place, {
        imports: `import { VaultStore } from 'memory-vault-client/langgraph'`,
        body: `const store = new VaultStore(vault)
// builder.compile({ store })
await store.put(['users', 'user-17'], 'boat', { text: 'A red canoe.' })
console.log(await store.search(['users'], { query: 'canoe', limit: 3 }))`,
      }),
      inPython(place, {
        imports: `from memory_vault.adapters.langgraph import VaultStore`,
        body: `store = VaultStore(vault)
# builder.compile(store=store)
store.put(("users", "user-17"), "boat", {"text": "A red canoe."})
print([item.value for item in store.search(("users",), query="canoe", limit=3)])`,
      }),
    ],
    notes: [packages.typescript, packages.python],
  },
  'openai-agents': {
    name: 'OpenAI Agents SDK',
    kind: 'Frameworks',
    snippets: place => [
      inTypeScript(place, {
        imports: `import { VaultSession } from 'memory-vault-client/openai-agents'`,
        body: `const session = new VaultSession(vault, 'conversation-1')
// await run(agent, 'What is my cat called?', { session })
console.log(await session.getItems())`,
      }),
      inPython(place, {
        imports: `import asyncio
from memory_vault.adapters.openai_agents import VaultSession`,
        body: `session = VaultSession(vault, "conversation-1")
# await Runner.run(agent, "What is my cat called?", session=session)
print(asyncio.run(session.get_items()))`,
      }),
    ],
    notes: [packages.typescript, packages.python],
  },
  'anthropic-memory': {
    name: 'Anthropic’s memory tool',
    kind: 'Frameworks',
    snippets: place => [
      inTypeScript(place, {
        imports: `import { vaultMemory } from 'memory-vault-client/anthropic-memory'
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory'`,
        body: `const memory = vaultMemory(vault)
const tools = [betaMemoryTool(memory)]
// anthropic.beta.messages.toolRunner({ model, max_tokens, messages, tools })
console.log(await memory.view({ path: '/memories' }), tools.length)`,
      }),
      inPython(place, {
        imports: `from memory_vault.adapters.anthropic import VaultMemoryTool`,
        body: `tool = VaultMemoryTool(vault)
# anthropic.beta.messages.tool_runner(model=model, max_tokens=1024, messages=messages, tools=[tool])
print(tool.to_dict())`,
      }),
    ],
    notes: [
      'Files that the model writes below /memories are memories of this vault.',
      packages.typescript,
      packages.python,
    ],
  },
  mastra: {
    name: 'Mastra',
    kind: 'Frameworks',
    snippets: place => [
      inTypeScript(place, {
        imports: `import { VaultProcessor } from 'memory-vault-client/mastra'`,
        body: `const memory = new VaultProcessor(vault, { onError: console.error })
// new Agent({ name, instructions, model, inputProcessors: [memory], outputProcessors: [memory] })
console.log(memory.name, (await vault.stats()).memories)`,
      }),
    ],
    notes: [packages.typescript],
  },
  'google-adk': {
    name: 'Google ADK',
    kind: 'Frameworks',
    snippets: place => [
      inPython(place, {
        imports: `import asyncio
from memory_vault.adapters.google_adk import VaultMemoryService`,
        body: `memory = VaultMemoryService(vault, per_user=False)
# Runner(app_name="app", agent=agent, session_service=sessions, memory_service=memory)
print(asyncio.run(memory.search_memory(app_name="app", user_id="user-17", query="my cat")))`,
      }),
    ],
    notes: [
      'With a key that names users, leave per_user=False out: each user of each app has a vault.',
      packages.python,
    ],
  },
  crewai: {
    name: 'CrewAI',
    kind: 'Frameworks',
    snippets: place => [
      inPython(place, {
        imports: `from memory_vault.adapters.crewai import VaultStorage`,
        body: `storage = VaultStorage(vault)
# Crew(agents=agents, tasks=tasks, memory=Memory(storage=storage, embedder=storage.embed))
print(storage.list_records())`,
      }),
    ],
    notes: ['Memory is that of crewai: from crewai import Memory.', packages.python],
  },
  'pydantic-ai': {
    name: 'Pydantic AI',
    kind: 'Frameworks',
    snippets: place => [
      inPython(place, {
        imports: `import asyncio
from memory_vault.adapters.pydantic_ai import VaultMemory`,
        body: `memory = VaultMemory(vault)
# agent = Agent(model, history_processors=[memory.recall], toolsets=[memory.toolset()])
# result = await agent.run("What is my cat called?")
# await memory.store(result.new_messages())
print(asyncio.run(memory.recall([])), vault.stats()["memories"])`,
      }),
    ],
    notes: [packages.python],
  },
  'llama-index': {
    name: 'LlamaIndex',
    kind: 'Frameworks',
    snippets: place => [
      inPython(place, {
        imports: `from memory_vault.adapters.llama_index import VaultMemoryBlock`,
        body: `block = VaultMemoryBlock(vault=vault)
# Memory.from_defaults(session_id="conversation-1", memory_blocks=[block])
print(block.name, vault.stats()["memories"])`,
      }),
    ],
    notes: [packages.python],
  },
  'agent-framework': {
    name: 'Microsoft Agent Framework',
    kind: 'Frameworks',
    snippets: place => [
      inPython(place, {
        imports: `from memory_vault.adapters.agent_framework import VaultContextProvider`,
        body: `memory = VaultContextProvider(vault)
# Agent(client=client, instructions=instructions, context_providers=[memory])
print(memory, vault.stats()["memories"])`,
      }),
    ],
    notes: [packages.python],
  },
  hermes: {
    name: 'Hermes',
    kind: 'Frameworks',
    snippets: ({ url, key }) => [
      {
        file: '$HERMES_HOME/plugins/memory-vault/__init__.py',
        text: `from memory_vault.adapters.hermes import register`,
      },
      { file: '$HERMES_HOME/plugins/memory-vault/plugin.yaml', text: 'name: memory-vault' },
      { file: 'Its environment', text: `MEMORY_VAULT_URL=${url}\nMEMORY_VAULT_KEY=${key}` },
    ],
    notes: ['hermes config set memory.provider memory-vault selects it.', packages.python],
  },
  n8n: {
    name: 'n8n',
    kind: 'Frameworks',
    snippets: ({ url, key }) => [
      {
        file: 'Credentials of the node “Memory Vault”',
        text: `Base URL: ${url}\nMemory Key: ${key}`,
      },
    ],
    notes: [
      'npm pack ./api/client/n8n in a copy of Memory Vault makes the package of the node.',
      'It recalls, stores, searches, lists and deletes, in a workflow or as a tool of an AI agent.',
    ],
  },
  openclaw: {
    name: 'OpenClaw',
    kind: 'Frameworks',
    snippets: ({ url, key }) => [
      {
        file: 'openclaw.json',
        text: JSON.stringify(
          {
            plugins: {
              slots: { memory: 'memory-vault' },
              entries: {
                'memory-vault': {
                  config: { baseUrl: url, key },
                  hooks: { allowConversationAccess: true },
                },
              },
            },
          },
          null,
          2,
        ),
      },
    ],
    notes: [
      'npm pack ./api/client/openclaw in a copy of Memory Vault, then openclaw plugins install npm-pack: with the file that it made.',
      'It uses your memory at the machine, and with senders who are you ("owners": ["telegram:7"]) in private conversations; never in groups.',
    ],
  },
}
