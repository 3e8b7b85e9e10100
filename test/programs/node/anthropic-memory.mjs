// Anthropic's memory tool, run by the SDK.
import Anthropic from '@anthropic-ai/sdk'
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory'
import { vaultMemory } from 'memory-vault-client/anthropic-memory'
import { check, equal, main, seen, texts, vaultOf } from './harness.mjs'

const client = new Anthropic({
  apiKey: process.env.ANTHROPIC_API_KEY,
  baseURL: process.env.ANTHROPIC_BASE_URL,
})
const path = '/memories/notes.md'

/** What the model was sent as the outcome of its call. */
async function ask(user, command) {
  await seen()
  await client.beta.messages.toolRunner({
    model: 'claude-sonnet-5',
    max_tokens: 300,
    tools: [betaMemoryTool(vaultMemory(vaultOf(user)))],
    messages: [{ role: 'user', content: `call memory ${JSON.stringify(command)}` }],
  })
  const { messages } = JSON.parse((await seen()).at(-1))
  return messages.flatMap(({ content }) => content).findLast(({ type }) => type === 'tool_result')
}

async function first() {
  const created = await ask('ada', {
    command: 'create',
    path,
    file_text: 'My canoe is red.\nIt is old.\n',
  })
  check(
    'created',
    JSON.stringify(created.content).includes('File created successfully') && !created.is_error,
  )
  const missing = await ask('ada', { command: 'view', path: '/memories/no.md' })
  check(
    'a fault is one',
    missing.is_error === true && JSON.stringify(missing).includes('does not exist'),
    JSON.stringify(missing),
  )
  equal('the lines of the file', await texts(vaultOf('ada')), ['My canoe is red.\nIt is old.\n'])
  const other = await ask('ben', { command: 'view', path })
  equal('another user has no such file', other.is_error, true)
}

async function again() {
  const shown = await ask('ada', { command: 'view', path })
  check(
    'after a restart the file is there',
    JSON.stringify(shown.content).includes('My canoe is red.'),
  )
}

await main({ first, again })
