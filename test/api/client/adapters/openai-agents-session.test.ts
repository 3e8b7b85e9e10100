import {
  Agent,
  Runner,
  Usage,
  type AgentInputItem,
  type Model,
  type ModelRequest,
  type Session,
} from '@openai/agents-core'
import t from 'tap'
import { VaultSession } from '#api/client/adapters/openai-agents-session.ts'
import { vaultClient } from '#api/client/client.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)

async function startSession(id = 'chat-1') {
  const vault = vaultClient(base, await buildKey(backend))
  const session: Session = new VaultSession<AgentInputItem>(vault, id)
  return { vault, session }
}

const user = (content: string): AgentInputItem => ({ type: 'message', role: 'user', content })
const assistant = (text: string): AgentInputItem => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
})

t.test('items come back as they were added, in order, whatever they are', async t => {
  const { vault, session } = await startSession('Größe / 1')
  t.equal(await session.getSessionId(), 'Größe / 1')
  t.same(await session.getItems(), [])
  t.equal(await session.popItem(), undefined)
  const items: AgentInputItem[] = [
    user('My canoe is red.'),
    assistant('Noted. '),
    user('yes'),
    user('yes'),
    { type: 'function_call', callId: 'c1', name: 'find', arguments: '{"q":"a"}' },
    {
      type: 'function_call_result',
      callId: 'c1',
      name: 'find',
      status: 'completed',
      output: { type: 'text', text: ' é🦊\n'.repeat(2000) },
    },
    user(' a  b\n\t"🦊" é ሰላም '.repeat(200)),
    user(' \n '.repeat(300)),
    user(''),
    { ...assistant('x'), providerData: { note: 'n'.repeat(400) } },
  ]
  await session.addItems(items.slice(0, 3))
  await session.addItems(items.slice(3))
  await session.addItems([])
  t.same(await session.getItems(), items)
  t.same(await session.getItems(2), items.slice(-2))
  t.same(await session.getItems(0), [])
  t.same(await session.popItem(), items.at(-1))
  t.same(await session.getItems(), items.slice(0, -1))
  const body = { query: 'which colour is the canoe?', limit: 1, session_id: 'Größe / 1' }
  const { memories } = await vault.call('POST /v1/memory/search', { body })
  t.match(memories, [{ content: 'My canoe is red.', role: 'user' }])
  const other = new VaultSession(vault, 'chat-2')
  t.same(await other.getItems(), [], 'another session')
  await session.clearSession()
  t.same(await session.getItems(), [])
  await session.addItems(items.slice(0, 1))
  t.same(await session.getItems(), items.slice(0, 1))
})

t.test('writers that add the same words in the same millisecond lose none', async t => {
  const { vault, session } = await startSession()
  const other = new VaultSession<AgentInputItem>(vault, 'chat-1')
  const { now } = Date
  const moment = now()
  Date.now = () => moment
  t.teardown(() => void (Date.now = now))
  const words = [user('yes'), user('a '.repeat(500))]
  await Promise.all([session, other, session, other].map(one => one.addItems(words)))
  Date.now = now
  const items = await session.getItems()
  t.equal(items.length, 8)
  t.same(new Set(items.map(item => JSON.stringify(item))).size, 2)
  t.equal((await vault.call('GET /v1/memory/stats')).memories, 4 + 4 * 3, 'and leave nothing else')
})

t.test('an agent goes on where its session ended', async t => {
  const { vault, session } = await startSession()
  const asked: ModelRequest['input'][] = []
  const model: Model = {
    async getResponse({ input }) {
      asked.push(structuredClone(input))
      return { usage: new Usage(), output: [assistant(`Answer ${asked.length}`)] as never }
    },
    getStreamedResponse() {
      throw new Error('not streamed')
    },
  }
  const runner = new Runner({ modelProvider: { getModel: () => model }, tracingDisabled: true })
  const agent = new Agent({ name: 'terse' })
  await runner.run(agent, 'My cat is called Ada.', { session })
  const again = new VaultSession<AgentInputItem>(vault, 'chat-1')
  const { finalOutput } = await runner.run(agent, 'What is it called?', { session: again })
  t.equal(finalOutput, 'Answer 2')
  t.match(asked[1], [
    { role: 'user', content: 'My cat is called Ada.' },
    { role: 'assistant', content: [{ text: 'Answer 1' }] },
    { role: 'user', content: 'What is it called?' },
  ])
  t.equal((await session.getItems()).length, 4)
})
