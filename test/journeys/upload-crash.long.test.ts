import { request } from 'node:http'
import t, { type Test } from 'tap'
import type { Backend } from '#shared/backend.ts'
import { buildKey, createTestClient, type TestClient } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { startWeb, startWorker } from '#test/support/processes.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { billedEventsOfVault, countRows, vaultRow } from '#test/support/observe.ts'
import { countAcceptedFiles, vaultOfOperation } from '#test/support/observe-jobs.ts'

t.setTimeout(0)
// Each has databases and processes of its own, and mostly waits: for heartbeats, for deadlines.
t.jobs = 2
const besides = { buffered: true }

const at = 1_700_000_000_000
const linesOf = (count: number): string[] =>
  Array.from({ length: count }, (_, n) =>
    JSON.stringify({ content: `memory number ${n}`, timestamp: at + n }),
  )
const ndjson = { 'content-type': 'application/x-ndjson' }
const send = (client: TestClient, lines: string[], headers: Record<string, string> = {}) =>
  client.send('POST', '/v1/memory/upload', {
    body: lines.join('\n'),
    headers: { ...ndjson, prefer: 'respond-async', ...headers },
  })

/** Every line once: in the vault, in the answer, on the bill and in the debt. */
async function checkWhole(
  t: Test,
  backend: Backend,
  client: TestClient,
  { operation, count }: { operation: string; count: number },
): Promise<void> {
  const told = async () => (await client.get(`/v1/operations/${operation}`)).body
  await waitUntil('the file is stored', async () => (await told()).state === 'done')
  t.match((await told()).outcome.body, {
    status: 'complete',
    stats: { inputItems: count, memories: count, stored: count, skipped: 0, failed: 0 },
  })
  const { body } = await client.get('/v1/memory/export')
  t.equal(body.length, count)
  t.equal(new Set(body.map(({ content }: { content: string }) => content)).size, count)
  const vault = await vaultOfOperation(backend, operation)
  const bills = await billedEventsOfVault(backend, vault)
  const { rawUnits, rawTokens } = await vaultRow(backend, vault)
  t.equal(rawUnits, count)
  t.match(bills, [{ id: operation, memoryTokens: rawTokens }])
  t.equal(await countAcceptedFiles(backend, vault), 0)
}

t.test(
  'workers are killed in the middle of a file: every line is stored once',
  besides,
  async t => {
    const config = await createTestConfig(t)
    const backend = await createTestBackend(t, { config })
    const web = await startWeb(t, config)
    const client = createTestClient(web.base, await buildKey(backend))
    const { body } = await send(client, linesOf(3_000))
    const operation: string = body.operation_id
    const done = async (): Promise<number> =>
      (await client.get(`/v1/operations/${operation}`)).body.progress.done
    let kills = 0
    // On a busy machine one may store all of them before it is killed.
    for (let before = 0; kills < 3 && before < 3_000; kills++) {
      const worker = await startWorker(t, config)
      const stored = before
      await waitUntil('it is at work', async () => (await done()) > stored)
      worker.kill('SIGKILL')
      await worker.exited
      before = await done()
    }
    t.comment(`${await done()} of 3,000 lines stored after ${kills} kills`)
    await startWorker(t, config)
    await checkWhole(t, backend, client, { operation, count: 3_000 })
  },
)

t.test('the API is killed while a file arrives: sent again it is stored once', besides, async t => {
  const config = await createTestConfig(t)
  const backend = await createTestBackend(t, { config })
  const key = await buildKey(backend)
  await startWorker(t, config)
  const staged = (): Promise<number> => countRows(backend, 'bulk_chunks')
  const lines = linesOf(700)
  for (let kill = 0; kill < 3; kill++) {
    const web = await startWeb(t, config)
    const before = await staged()
    const { port } = new URL(web.base)
    const sending = request({
      port,
      host: '127.0.0.1',
      path: '/v1/memory/upload',
      method: 'POST',
      headers: { ...ndjson, authorization: `Bearer ${key}`, 'idempotency-key': 'once' },
    })
    const cut = new Promise(resolve => sending.once('error', resolve))
    sending.write(`${lines.slice(0, 210 * (kill + 1)).join('\n')}\n`)
    await waitUntil('some of it is staged', async () => (await staged()) > before)
    web.kill('SIGKILL')
    await cut
  }
  const web = await startWeb(t, config)
  const client = createTestClient(web.base, key)
  t.same((await client.get('/v1/memory/export')).body, [], 'nothing of it is there')
  const { body } = await send(client, lines, { 'idempotency-key': 'once' })
  await checkWhole(t, backend, client, { operation: body.operation_id, count: 700 })
})
