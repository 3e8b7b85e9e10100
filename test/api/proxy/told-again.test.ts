import t from 'tap'
import { sweepAll } from '#workers/sweep-all.ts'
import { createIndexSource } from '#shared/vault/read/search/index-source.ts'
import { createVaultIndex } from '#shared/search/index/vault-index.ts'
import { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/doubles/model-provider.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { countRows } from '#test/support/checks/observe.ts'

/** The later calls of a turn, which bring what tools have found, are told what the first was told. */

const provider = await startModelProvider(t)
provider.respondAlways(respondJson(chatCompletion('Fine.')))
const config = await createTestConfig(t, provider.env)
const backend = await createTestBackend(t, { config })
const { base } = await startTestApi(t, backend)

const question = 'Which colour has the bicycle?'
const used = [
  { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function' }] },
  { role: 'tool', tool_call_id: 'c', content: 'Nothing found.' },
]

type Asking = { at?: string; headers?: Record<string, string>; before?: string }

/** The block of a call with so many steps behind it, without its last line; null when there is none. */
async function toldAt(key: string, steps: number, { at = base, headers, before }: Asking = {}) {
  const messages = [
    ...(before ? [{ role: 'user', content: before }] : []),
    { role: 'user', content: question },
    ...Array.from({ length: steps }, () => used).flat(),
  ]
  const response = await fetch(`${at}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-memory-key': key,
      'x-provider-key': providerKey('openai'),
      ...headers,
    },
    body: JSON.stringify({ model: 'openai/gpt-5', messages }),
  })
  await response.text()
  const sent = JSON.parse(provider.requests.at(-1)!.body.toString()) as {
    messages: { content: string }[]
  }
  const block = sent.messages.find(({ content }) => content?.startsWith('<memory_context>'))
  return { status: response.headers.get('x-memory-status'), block: block?.content ?? null }
}

t.test('none is none until the next turn', async t => {
  const key = await buildKey(backend)
  t.same(await toldAt(key, 0), { status: 'none', block: null })
  await insertMemories(backend, key, [{ text: 'The bicycle is orange.' }])
  t.same(await toldAt(key, 1), { status: 'none', block: null })
  t.same(await toldAt(key, 2), { status: 'none', block: null })
  t.match(await toldAt(key, 0), { status: 'ok', block: /orange/ })
  t.match(await toldAt(key, 1, { before: 'Hello' }), { status: 'ok', block: /orange/ })
})

t.test('a session and the core, with a key that only reads, and ages as they were', async t => {
  const headers = { 'x-session-id': 's' }
  const key = await buildKey(backend)
  const hourAgo = Date.now() - 3_600_000
  const now = { ms: hourAgo + 3_599_000 }
  const { base: at } = await startTestApi(t, { ...backend, now: () => now.ms })
  await insertMemories(backend, key, [{ text: 'The bicycle is orange.', at: hourAgo }])
  await insertMemories(backend, key, [{ text: 'The bicycle was green.' }], { session: 's' })
  const { block } = await toldAt(`${key}:read`, 0, { at, headers })
  t.match(block, /59 minutes ago[^]*orange[^]*green/)
  await insertMemories(backend, key, [{ text: 'The bicycle is blue.' }], { session: 's' })
  now.ms += 2_000
  t.equal((await toldAt(`${key}:read`, 1, { at, headers })).block, block)
  t.match(
    (await toldAt(`${key}:read`, 1, { at })).block,
    'orange',
    'another session is another turn',
  )
  t.match((await toldAt(key, 0, { at, headers })).block, /1 hour ago[^]*blue/)
})

t.test('a vault that is too large for an image', async t => {
  const small = new VaultIndexes(createIndexSource(backend), {
    budgetBytes: 1,
    createIndex: ({ dimension }: { dimension: number }) => createVaultIndex({ dimension, termsOf }),
  })
  const { base: at } = await startTestApi(t, { ...backend, vaultIndexes: small })
  const key = await buildKey(backend)
  const [orange] = await insertMemories(backend, key, [
    { text: 'The bicycle is orange.' },
    { text: 'The bicycle was green.' },
  ])
  const { block } = await toldAt(key, 0, { at })
  t.match(block, /orange[^]*green/)
  await insertMemories(backend, key, [{ text: 'The bicycle is blue.' }])
  t.equal((await toldAt(key, 1, { at })).block, block)
  t.equal((await toldAt(key, 2)).block, block, 'and where there is one it is the same')
  await fetch(`${at}/v1/memory/delete-ids`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-memory-key': key },
    body: JSON.stringify({ ids: [orange] }),
  })
  const { block: left } = await toldAt(key, 3, { at })
  t.match(left, 'green')
  t.notMatch(left, /orange|blue/)
})

t.test('what a member may not see any more leaves the block', async t => {
  const team = await buildTeam(backend)
  await team.defineRole('all', ['*'])
  await team.defineRole('none', [])
  const key = await team.addMember('ann', ['all'])
  await seedTeamMemories(backend, team, [
    { text: 'The bicycle of the team is orange.' },
    { text: 'The bicycle of the boss is silver.', tags: ['secret'] },
  ])
  await insertMemories(backend, key, [{ text: 'My own bicycle is green.' }])
  const { block } = await toldAt(key, 0)
  t.match(block, /orange/)
  t.match(block, /silver/)
  t.match(block, /green/)
  t.equal((await toldAt(key, 1)).block, block)
  await team.assignRoles('ann', ['none'])
  const { block: left } = await toldAt(key, 2)
  t.notMatch(left, 'silver')
  t.match(left, /orange/)
  t.match(left, /green/)
})

t.test('a turn that began while memory was away goes on without', async t => {
  const gate = await startFaultProxy(t, config.mongodbUri)
  const hasty = { ...config, mongodbUri: gate.url, recallTimeoutMs: 1_500 }
  const gated = await createTestBackend(t, { config: hasty })
  const { base: at } = await startTestApi(t, gated)
  const key = await buildKey(backend)
  await insertMemories(backend, key, [{ text: 'The bicycle is orange.' }])
  gate.shut()
  t.same(await toldAt(key, 0, { at }), { status: 'degraded', block: null })
  gate.open()
  t.same(await toldAt(key, 1), { status: 'degraded', block: null })
  t.match(await toldAt(key, 0), { status: 'ok', block: /orange/ })
  t.match(await toldAt(key, 1), { status: 'ok', block: /orange/ })
})

const kept = (): Promise<number> => countRows(backend, 'recalled_turns')

t.test('kept for an hour and ten minutes, and gone with the vault', async t => {
  await startJobWorkers(backend, 'clear')
  const key = await buildKey(backend)
  await insertMemories(backend, key, [{ text: 'The bicycle is orange.' }])
  await toldAt(key, 0)
  await insertMemories(backend, key, [{ text: 'The bicycle is blue.' }])
  t.notMatch((await toldAt(key, 1)).block, 'blue')
  await ageRows(backend, 'recalled_turns', '71 minutes')
  t.match((await toldAt(key, 1)).block, 'blue', 'told anew, and from then on')
  await insertMemories(backend, key, [{ text: 'The bicycle is white.' }])
  t.notMatch((await toldAt(key, 2)).block, 'white')

  const before = await kept()
  t.equal((await sweepAll(backend)).recalledTurns, before - 1)
  t.equal(await kept(), 1)
  await fetch(`${base}/v1/memory`, { method: 'DELETE', headers: { 'x-memory-key': key } })
  await waitUntil('nothing is kept of it', async () => (await kept()) === 0)
})
