/** What the key of a client may do: `users` where it names the user of each call. */
export type ClientRights = 'memory' | 'users'

/** The service and the key that a snippet names; no slash at the end of the address. */
export type Place = { url: string; key: string; rights: ClientRights }

/** A file, or a piece of a program, to copy. */
export type Snippet = { file: string; text: string }

/** The groups of the page, in their order. */
export const kinds = ['Programs', 'SDKs by base URL', 'Clients', 'Frameworks', 'MCP'] as const

export type ConnectedClient = {
  name: string
  kind: (typeof kinds)[number]
  snippets: (place: Place) => Snippet[]
  notes: readonly string[]
  /** Several people use it: `named` where it sends the user of each call, `unnamed` where it sends none. */
  users?: 'named' | 'unnamed'
}

const ownKey =
  'The key of your model provider stays where it is: an environment variable, or stored on the account.'

/** Libraries, by the name in the address of the page; as api/guides/connect-an-sdk.md has them. */
export const sdkSnippets: Record<string, ConnectedClient> = {
  openai: {
    name: 'OpenAI SDK',
    kind: 'SDKs by base URL',
    snippets: ({ url, key }) => [
      {
        file: 'TypeScript',
        text: `import OpenAI from 'openai'

const openai = new OpenAI({
  baseURL: '${url}/v1',
  apiKey: '${key}',
  defaultHeaders: { 'X-Provider-Key': process.env.OPENAI_API_KEY },
})
const { choices } = await openai.chat.completions.create({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: 'What is my cat called?' }],
})
console.log(choices[0]?.message.content)`,
      },
      {
        file: 'Python',
        text: `import os
from openai import OpenAI

client = OpenAI(
    base_url="${url}/v1",
    api_key="${key}",
    default_headers={"X-Provider-Key": os.environ["OPENAI_API_KEY"]},
)
answer = client.chat.completions.create(
    model="gpt-4o-mini",
    messages=[{"role": "user", "content": "What is my cat called?"}],
)
print(answer.choices[0].message.content)`,
      },
    ],
    notes: [
      ownKey,
      'One user is one vault: give each of your users a key of their own, or name the user in X-Memory-User with a key that has the rights "users".',
    ],
  },
  anthropic: {
    name: 'Anthropic SDK',
    kind: 'SDKs by base URL',
    snippets: ({ url, key }) => [
      {
        file: 'TypeScript',
        text: `import Anthropic from '@anthropic-ai/sdk'

const anthropic = new Anthropic({
  baseURL: '${url}',
  apiKey: '${key}',
  defaultHeaders: { 'X-Provider-Key': process.env.ANTHROPIC_API_KEY },
})
const { content } = await anthropic.messages.create({
  model: 'claude-sonnet-5',
  max_tokens: 300,
  messages: [{ role: 'user', content: 'What is my cat called?' }],
})
console.log(content)`,
      },
      {
        file: 'Python',
        text: `import os
from anthropic import Anthropic

client = Anthropic(
    base_url="${url}",
    api_key="${key}",
    default_headers={"X-Provider-Key": os.environ["ANTHROPIC_API_KEY"]},
)
message = client.messages.create(
    model="claude-sonnet-5",
    max_tokens=300,
    messages=[{"role": "user", "content": "What is my cat called?"}],
)
print(message.content)`,
      },
    ],
    notes: [ownKey],
  },
  gemini: {
    name: 'Gemini SDK',
    kind: 'SDKs by base URL',
    snippets: ({ url, key }) => [
      {
        file: 'TypeScript',
        text: `import { GoogleGenerativeAI } from '@google/generative-ai'

const gemini = new GoogleGenerativeAI(process.env.GEMINI_API_KEY!).getGenerativeModel(
  { model: 'gemini-2.5-flash' },
  {
    baseUrl: '${url}',
    customHeaders: { 'X-Memory-Key': '${key}' },
  },
)
const { response } = await gemini.generateContent('What is my cat called?')
console.log(response.text())`,
      },
      {
        file: 'Python',
        text: `import os
from google import genai
from google.genai import types

client = genai.Client(
    api_key=os.environ["GEMINI_API_KEY"],
    http_options=types.HttpOptions(
        base_url="${url}",
        headers={"X-Memory-Key": "${key}"},
    ),
)
answer = client.models.generate_content(model="gemini-2.5-flash", contents="What is my cat called?")
print(answer.text)`,
      },
    ],
    notes: [ownKey],
  },
  'ai-sdk': {
    name: 'Vercel AI SDK',
    kind: 'SDKs by base URL',
    snippets: ({ url, key }) => [
      {
        file: 'TypeScript',
        text: `import { createOpenAI } from '@ai-sdk/openai'
import { streamText } from 'ai'

const openai = createOpenAI({
  baseURL: '${url}/v1',
  apiKey: '${key}',
  headers: { 'X-Provider-Key': process.env.OPENAI_API_KEY! },
})
const { textStream } = streamText({
  model: openai('gpt-4o-mini'),
  prompt: 'What is my cat called?',
})
for await (const text of textStream) process.stdout.write(text)`,
      },
    ],
    notes: [ownKey],
  },
  langchain: {
    name: 'LangChain models',
    kind: 'SDKs by base URL',
    snippets: ({ url, key }) => [
      {
        file: 'TypeScript',
        text: `import { ChatOpenAI } from '@langchain/openai'

const model = new ChatOpenAI({
  model: 'gpt-4o-mini',
  apiKey: '${key}',
  configuration: {
    baseURL: '${url}/v1',
    defaultHeaders: { 'X-Provider-Key': process.env.OPENAI_API_KEY! },
  },
})
const { text } = await model.invoke('What is my cat called?')
console.log(text)`,
      },
    ],
    notes: [ownKey, 'The model of an agent of LangGraph is the same.'],
  },
  curl: {
    name: 'Any program',
    kind: 'Clients',
    snippets: ({ url, key }) => [
      {
        file: 'Store what was said',
        text: `curl ${url}/v1/memory/ingest -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
  -d '{"messages": [{"role": "user", "content": "My cat is called Ada."}]}'`,
      },
      {
        file: 'Ask for what belongs into the prompt',
        text: `curl ${url}/v1/memory/prepare -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
  -d '{"messages": [{"role": "user", "content": "What is my cat called?"}]}'`,
      },
    ],
    notes: [
      'Your program calls its model itself and puts the answer of the second call before the message of the user.',
    ],
  },
}
