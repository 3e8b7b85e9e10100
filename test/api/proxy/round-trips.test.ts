import pg from 'pg'
import t from 'tap'
import { commandListeners } from '#shared/storage/mongo/connect.ts'
import { startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { createProxyAccount } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'

/** How often a model call asks the stores, before the provider and after it. */

type PgClient = pg.Client & { connectionParameters: { application_name?: string } }

const asked: string[] = []
const { query } = pg.Client.prototype
pg.Client.prototype.query = function (this: PgClient, ...given: unknown[]) {
  const [config] = given as [string | { name?: string; text?: string }]
  const { name, text } = typeof config === 'string' ? { text: config } : config
  // The queue's own connections look after it by the clock.
  if (this.connectionParameters.application_name !== 'pgboss') {
    asked.push(`postgres ${name?.split(':')[0] ?? text?.trim().split(/\s+/, 3).join(' ')}`)
  }
  return Reflect.apply(query, this, given) as unknown
} as typeof query
t.teardown(() => (pg.Client.prototype.query = query))
const noteCommand: (typeof commandListeners)[number] = ({ commandName, command }) =>
  asked.push(`mongo ${commandName} ${String(command[commandName])}`)
commandListeners.push(noteCommand)
t.teardown(() => commandListeners.splice(commandListeners.indexOf(noteCommand), 1))

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
const { base } = await startTestApi(t, backend)
const { newKey } = await createProxyAccount(backend, base)
provider.respondAlways(async (seen, to) => {
  asked.push('provider')
  await respondJson(chatCompletion('Fine.'))(seen, to)
})

const user = (content: string) => ({ role: 'user', content })
const used = [
  { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function' }] },
  { role: 'tool', tool_call_id: 'c', content: 'Nothing found.' },
]

/** Statements of calls before, of a new connection, or by the clock. */
const background = new Set([
  'postgres call-traces.save',
  'postgres members.note-use',
  'postgres usage.insert',
  'postgres select set_config(name, value,',
])

/** Beside the provider's work: when exactly is chance. */
const besideCall = new Set(['postgres open-exchanges.insert', 'postgres recalled-turns.keep'])

/**
 * What was asked before the provider, and after it until the client saw the end, when nothing was looked up
 * within the last second.
 */
async function tripsOf(key: string, messages: readonly object[], more: object = {}) {
  backend.verifiedKeys.noteChange()
  backend.providerKeys.noteChange()
  return tripsSoon(key, messages, more)
}

async function tripsSoon(key: string, messages: readonly object[], more: object = {}) {
  asked.length = 0
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-memory-key': key },
    body: JSON.stringify({ model: 'openai/gpt-5', messages, ...more }),
  })
  await response.text()
  const trips = asked.filter(trip => !besideCall.has(trip) && !background.has(trip))
  const at = trips.indexOf('provider')
  return {
    status: response.status,
    before: trips.slice(0, at).toSorted(),
    after: trips.slice(at + 1),
    beside: asked.filter(trip => besideCall.has(trip)).toSorted(),
  }
}

const promise = [
  'postgres begin isolation level',
  'postgres vaults.lock-all',
  'postgres exchanges.accept',
  'postgres commit',
]

t.test('a warm vault is not asked at all, and Postgres three times', async t => {
  const key = await newKey()
  await insertMemories(backend, key, [{ text: 'The bicycle is orange.' }])
  await tripsOf(key, [user('Which bicycle?')])
  const whole = await tripsOf(key, [user('Which bicycle is orange?')])
  t.same(whole, {
    status: 200,
    before: ['postgres keys.find', 'postgres provider-keys.find'],
    after: promise,
    beside: [...besideCall],
  })
  const loop = await tripsOf(key, [user('Which bicycle is orange?'), ...used])
  t.same(loop.before, [
    'postgres keys.find',
    'postgres provider-keys.find',
    'postgres recalled-turns.read',
  ])
  t.same(loop.after, promise)
  t.ok(loop.beside.includes('postgres open-exchanges.insert'))

  const reading = await tripsOf(key, [user('Which bicycle?')], { memory_mode: 'read' })
  t.same(reading.before, ['postgres keys.find', 'postgres provider-keys.find'])
  t.notMatch(reading.after, ['postgres begin isolation level'])
  const off = await tripsOf(key, [user('Which bicycle?')], { memory_mode: 'off' })
  t.same(off.before, ['postgres keys.find', 'postgres provider-keys.find'])
})

t.test('a key of the last second is not looked up for a call without memory', async t => {
  const key = await newKey()
  for (;;) {
    const begun = performance.now()
    await tripsOf(key, [user('Which bicycle?')], { memory_mode: 'off' })
    const { status, before } = await tripsSoon(key, [user('Why?')], { memory_mode: 'off' })
    // The machine was busy.
    if (performance.now() - begun > 900) continue
    t.equal(status, 200)
    t.same(before, [])
    const reading = await tripsSoon(key, [user('Which bicycle?')], { memory_mode: 'read' })
    t.ok(reading.before.includes('postgres keys.find'), 'memory is read as it is now')
    return
  }
})

t.test('what has been stored since is read once: the log, and the memories', async t => {
  const key = await newKey()
  await insertMemories(backend, key, [{ text: 'The bicycle is orange.' }])
  await tripsOf(key, [user('Which bicycle?')])
  await insertMemories(backend, key, [{ text: 'The bicycle is blue.' }])
  const { before } = await tripsOf(key, [user('Which bicycle is orange or blue?')])
  t.same(before, [
    'mongo find memories',
    'postgres changes.since',
    'postgres keys.find',
    'postgres provider-keys.find',
  ])
})
