import { Readable } from 'node:stream'
import t from 'tap'
import { verifyExportFile } from '#shared/accounts/verify-export-file.ts'
import { mintId } from '#shared/core/ids.ts'
import { markOf } from '#shared/vault/read/traces/call-trace.ts'
import { findCallTrace } from '#shared/vault/read/traces/call-traces.postgres.ts'
import { saveRecalledTurns } from '#shared/vault/read/traces/recalled-turns.postgres.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  type TestClient,
} from '#test/support/start/api.ts'
import { insertMemories, resolveCaller } from '#test/support/start/insert-memories.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { tracedCalls } from '#test/support/samples/traced-calls.ts'

/** The traces of model calls in the export of an account. */

const world = await startProxyFixture(t)
const { backend, base } = world
await startJobWorkers(backend)

type Line = { type: string; vault?: number; [field: string]: unknown }

const exportOf = async (client: TestClient): Promise<Line[]> =>
  (await client.get('/v1/account/export')).body as Line[]
const tracesOf = (lines: readonly Line[]): Line[] => lines.filter(({ type }) => type === 'trace')

const question = JSON.stringify({
  model: 'openai/gpt-5',
  messages: [{ role: 'user', content: 'Which bicycle of Quirin is orange?' }],
})

async function begin() {
  const key = await buildKey(backend)
  await insertMemories(backend, key, [{ text: 'The bicycle is orange.' }])
  const call = tracedCalls(world, key)
  const ask = async (headers: Record<string, string> = {}) =>
    (await call('/v1/chat/completions', question, headers)).trace!
  return { key, client: createTestClient(base, key), ask }
}

t.test('each trace is a line of its vault, with digests and without words', async t => {
  const { client, ask } = await begin()
  const older = await ask()
  const newer = await ask({ 'x-session-id': 'chat' })
  const ofUser = await ask({ 'x-memory-user': 'ada' })
  await (await begin()).ask()
  const lines = await exportOf(client)
  t.same(
    tracesOf(lines).map(({ vault, trace_id: id }) => [vault, id]),
    [
      [1, newer],
      [1, older],
      [2, ofUser],
    ],
  )
  const [, first] = tracesOf(lines)
  const { body: read } = await client.get(`/v1/traces/${older}`)
  const { texts, blocks, question: asked, answer: _, cost_usd: __, ...call } = read
  t.same([texts, asked], [true, 'Which bicycle of Quirin is orange?'])
  t.match(first, call, 'what a reader of the trace sees of the call')
  const memory = lines.find(({ type }) => type === 'memory')!
  const [told] = blocks[0].memories
  t.match(first, {
    blocks: [
      {
        turn: null,
        told_at: blocks[0].told_at,
        memories: [{ memory_id: memory.id, mark: markOf(told.line), relevance: told.relevance }],
      },
    ],
  })
  t.notMatch(JSON.stringify(tracesOf(lines)), /bicycle|orange|quirin/i)
  t.match(lines.at(-1), { type: 'end', counts: { trace: 3 } })
})

t.test('a file that lost a trace is found to have', async t => {
  const { client, ask } = await begin()
  await ask()
  const lines = await exportOf(client)
  const verify = (kept: readonly Line[]) =>
    verifyExportFile(Readable.from(kept.map(line => JSON.stringify(line))))
  t.match(await verify(lines), { fault: null })
  const without = lines.filter(({ type }) => type !== 'trace')
  t.match(await verify(without), { fault: /lines of/ })
  const end = { ...lines.at(-1)!, lines: without.length - 1 }
  t.match(await verify([...without.slice(0, -1), end]), { fault: /0 lines of type trace, not 1/ })
})

t.test('more than a page of them, each once; none of a cleared vault or by policy', async t => {
  const { key, client, ask } = await begin()
  const trace = await ask()
  const { scope } = await resolveCaller(backend, key)
  const reader = { vault: scope.vault, epoch: scope.epoch, days: 7 }
  const stored = (await findCallTrace(backend.postgres.query, reader, trace))!
  const copies = Array.from({ length: 120 }, () => ({
    id: mintId(),
    vault: scope.vault,
    epoch: scope.epoch,
    session: null,
    days: 7,
    way: 'proxy' as const,
    trace: stored.trace,
  }))
  await saveRecalledTurns(backend.postgres.query, [], copies)
  const ids = tracesOf(await exportOf(client)).map(({ trace_id: id }) => id as string)
  t.same(ids.toSorted(), [trace, ...copies.map(({ id }) => id)].toSorted())

  const put = (body: object) => client.send('PUT', '/v1/account/policy', { body })
  await put({ traces: 'off' })
  t.same(tracesOf(await exportOf(client)), [])
  await put({ traces: 'ids' })
  t.equal((await client.send('DELETE', '/v1/memory')).status, 200)
  t.same(tracesOf(await exportOf(client)), [])
})
