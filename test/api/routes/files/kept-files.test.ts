import t from 'tap'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import {
  listKeptFiles,
  replaceKeptFile,
  type KeptFile,
} from '#shared/vault/bulk/kept-files.postgres.ts'
import { storeChunk } from '#shared/vault/bulk/store-chunk.ts'
import { removeEarlierVersion } from '#shared/vault/delete/remove-earlier-version.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import { pdfOf } from '#test/support/start/documents.ts'
import { countRows, readRows } from '#test/support/checks/observe.ts'
import { jobsOf } from '#test/support/checks/observe-jobs.ts'
import { exportLines, type KeyedClient } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const { backend, base, newClient } = await startService(t)
const idle = await startService(t, { jobs: [] })

const post = (
  client: TestClient,
  query: Record<string, string>,
  body: Buffer | string,
  headers: Record<string, string> = {},
) =>
  client.send('POST', `/v1/memory/files?${new URLSearchParams(query)}`, {
    headers: { 'content-type': 'application/octet-stream', ...headers },
    body,
  })

const content = (id: string): string => `/v1/memory/files/content?file_id=${id}`

/** The bytes that are kept of a file. */
async function download(client: KeyedClient, id: string): Promise<Buffer> {
  const headers = { authorization: `Bearer ${client.key}` }
  return Buffer.from(await (await fetch(client.base + content(id), { headers })).arrayBuffer())
}

const keep = (client: TestClient, keep_files = true) =>
  client.send('PUT', '/v1/account/policy', { body: { keep_files } })

async function keptOf(client: KeyedClient): Promise<number> {
  const { scope } = await client.caller()
  return countRows(backend, { table: 'kept_files', vault: scope.vault })
}

/** A client whose account keeps files, with one file. */
async function withFile(query: Record<string, string> = {}) {
  const client = await newClient()
  await keep(client)
  const { body } = await post(
    client,
    { name: 'lease.txt', file_id: 'lease', ...query },
    'The lease runs.',
  )
  t.match(body, { kept: true, stored: 1 })
  return client
}

t.test('a file is not kept unless the policy says so', async t => {
  const client = await newClient()
  t.match((await post(client, { name: 'a.txt', file_id: 'a' }, 'A text.')).body, { kept: false })
  const { status, body } = await client.get(content('a'))
  t.match([status, body.error], [404, 'No such file is kept'])
  t.match((await client.get('/v1/memory/files')).body.items, [{ kept_bytes: 0 }])
  t.equal(await keptOf(client), 0)
  const { body: policy } = await keep(client)
  t.equal(policy.keep_files, true)
  t.equal((await client.get(content('a'))).status, 404, 'it is for what comes from then on')
})

t.test('200: byte for byte, in parts, as a download that no browser shows', async t => {
  const client = await newClient()
  await keep(client)
  const pages = Array.from({ length: 30 }, (_, n) => [
    `Page ${n} of the lease, of the ${n}th of May.`,
  ])
  const bytes = Buffer.concat([pdfOf(pages), Buffer.alloc(2_500_000, 'of no meaning')])
  const { body } = await post(client, { name: 'docs/Mietvertrag 2026 “neu”.pdf' }, bytes)
  t.match(body, { kept: true, pages: 30 })
  t.ok((await keptOf(client)) > 1, 'it is kept in parts')
  t.ok(bytes.equals(await download(client, body.file_id)))
  const { status, headers } = await client.get(content(body.file_id))
  t.equal(status, 200)
  t.same(
    ['content-type', 'content-length', 'x-content-type-options', 'cache-control'].map(name =>
      headers.get(name),
    ),
    ['application/octet-stream', String(bytes.length), 'nosniff', 'no-store'],
  )
  t.match(headers.get('content-disposition'), /^attachment; filename="Mietvertrag 2026 /)
  t.match((await client.get('/v1/memory/files')).body.items, [{ kept_bytes: bytes.length }])
  const stranger = await newClient()
  t.equal((await stranger.get(content(body.file_id))).status, 404)
  const { body: blind } = await client.post('/v1/keys', { name: 'Writer' })
  t.equal(
    (await createTestClient(base, `${blind.key}:write`).get(content(body.file_id))).status,
    403,
  )
})

t.test('compressed on its way, it is kept as it was', async t => {
  const { gzipSync } = await import('node:zlib')
  const client = await newClient()
  await keep(client)
  const text = 'The lease runs.\n'.repeat(5_000)
  await post(client, { name: 'a.txt', file_id: 'a' }, gzipSync(text), {
    'content-encoding': 'gzip',
  })
  t.equal((await download(client, 'a')).toString(), text)
})

t.test(
  'a newer version takes its place; one that comes while the policy is off ends it',
  async t => {
    const client = await withFile()
    await post(
      client,
      { name: 'lease.md', file_id: 'lease', session_id: 's' },
      'The lease has ended.',
    )
    t.equal((await download(client, 'lease')).toString(), 'The lease has ended.')
    t.equal(await keptOf(client), 1)
    await keep(client, false)
    t.equal((await client.get(content('lease'))).status, 200, 'what is kept stays')
    t.match(
      (
        await post(
          client,
          { name: 'lease.md', file_id: 'lease', session_id: 's' },
          'The lease has ended.',
        )
      ).body,
      { stored: 0, kept: false },
    )
    t.equal(await keptOf(client), 0)
  },
)

t.test('it goes with its last memory, however that goes', async t => {
  const ways: Record<string, (client: KeyedClient) => Promise<unknown>> = {
    'the file is deleted': client => client.send('DELETE', '/v1/memory/files?file_id=lease'),
    'its memory is deleted': async client =>
      client.post('/v1/memory/delete-ids', {
        ids: (await exportLines(client, '?session_id=s')).map(({ id }) => id),
      }),
    'its session is cleared': client => client.send('DELETE', '/v1/memory?session_id=s'),
    'the vault is cleared': client => client.send('DELETE', '/v1/memory'),
    'the account is erased': async client => {
      const { account } = await client.caller()
      const [row] = await readRows<{ email: string }>(
        backend,
        'select email from accounts where id = $1',
        [account],
      )
      return client.post('/v1/account/erase', { email: row!.email })
    },
  }
  for (const [way, go] of Object.entries(ways)) {
    const client = await withFile({ session_id: 's' })
    const { scope } = await client.caller()
    await post(client, { name: 'b.txt', file_id: 'other' }, 'Another file.')
    await go(client)
    const left = await readRows<{ file_id: string }>(
      backend,
      'select file_id from kept_files where vault = $1',
      [scope.vault],
    )
    t.same(left, /vault|account/.test(way) ? [] : [{ file_id: 'other' }], way)
  }
})

t.test('a part of its memories may go, and it stays', async t => {
  const client = await newClient()
  await keep(client)
  const text = `${'x'.repeat(990)}\n\n${'y'.repeat(990)}`
  await post(client, { name: 'a.txt', file_id: 'a' }, text)
  const [first] = await exportLines(client)
  await client.post('/v1/memory/delete-ids', { ids: [first!.id] })
  t.equal((await download(client, 'a')).toString(), text)
})

t.test('where private data is looked for none is kept, and the answer says so', async t => {
  const client = await newClient()
  await client.send('PUT', '/v1/account/policy', {
    body: { keep_files: true, redaction: { mode: 'redact', kinds: ['email'] } },
  })
  t.match((await post(client, { name: 'a.txt' }, 'Write to ines@example.com.')).body, {
    kept: false,
    not_kept: 'The redaction policy is on, and a copy that is not redacted would undo it',
  })
  t.equal(await keptOf(client), 0)
})

t.test('202: the earlier version is given until all of the newer one is stored', async t => {
  const client = await idle.newClient()
  await keep(client)
  const send = async (text: string, headers = {}) =>
    (
      await post(client, { name: 'a.txt', file_id: 'a' }, text, {
        prefer: 'respond-async',
        ...headers,
      })
    ).body
  const runStep = async (operation: string) => {
    const jobs = await jobsOf<StepJob>(idle.backend, 'upload')
    const { data } = jobs.findLast(job => job.data.operation === operation)!
    const step = await storeChunk(idle.backend, data)
    if (step.state === 'removes-earlier') await removeEarlierVersion(idle.backend, step.chunk)
    return step
  }
  const first = await send('One.')
  t.match(first, { status: 'processing', kept: true })
  t.equal((await client.get(content('a'))).status, 404, 'not before it is stored')
  await runStep(first.operation_id)
  await runStep(first.operation_id)
  t.equal((await download(client, 'a')).toString(), 'One.')

  const second = await send('Two.')
  await runStep(second.operation_id)
  t.equal((await download(client, 'a')).toString(), 'One.')
  t.match(
    await send('Two.'),
    { operation_id: second.operation_id, kept: true },
    'the same joins it',
  )
  await runStep(second.operation_id)
  t.equal((await download(client, 'a')).toString(), 'Two.')

  const givenUp = await send('Three.')
  await client.send('DELETE', `/v1/operations/${givenUp.operation_id}`)
  t.equal((await download(client, 'a')).toString(), 'Two.')
  const { scope } = await client.caller()
  t.equal(
    await countRows(idle.backend, { table: 'kept_files', vault: scope.vault }),
    1,
    'nothing of it is left',
  )
})

t.test('an upload that has ended takes no newer version away', async t => {
  const client = await withFile()
  const { scope } = await client.caller()
  const [{ id }] = (await listKeptFiles(backend.postgres.query, scope.vault)) as [KeptFile]
  await post(client, { name: 'lease.txt', file_id: 'lease' }, 'The lease has ended.')
  await replaceKeptFile(backend.postgres.query, { ...scope, id, document: 'lease' }, true)
  t.equal((await download(client, 'lease')).toString(), 'The lease has ended.')
})

t.test('the export of the account has it, part by part', async t => {
  const client = await newClient()
  await keep(client)
  const bytes = Buffer.from('A line of a long file.\n'.repeat(80_000))
  await post(client, { name: 'long.txt', file_id: 'long' }, bytes)
  const { body: lines } = await client.get('/v1/account/export')
  const parts = lines.filter(({ type }: { type: string }) => type === 'file')
  t.ok(parts.length > 1)
  t.match(parts[0], { vault: 1, file_id: 'long', name: 'long.txt', bytes: bytes.length })
  const whole = Buffer.concat(
    parts.map(({ content }: { content: string }) => Buffer.from(content, 'base64')),
  )
  t.ok(whole.equals(bytes))
  t.notOk(JSON.stringify(await exportLines(client)).includes(parts[0].content))
})

t.test('what was cleared does not come back by an upload that was on its way', async t => {
  const client = await idle.newClient()
  await keep(client)
  const { body } = await post(client, { name: 'a.txt', file_id: 'a' }, 'One.', {
    prefer: 'respond-async',
  })
  t.equal(body.kept, true)
  await client.send('DELETE', '/v1/memory', { headers: { prefer: 'respond-async' } })
  const { scope } = await client.caller()
  await waitUntil(
    'nothing is kept',
    async () => (await countRows(idle.backend, { table: 'kept_files', vault: scope.vault })) === 0,
  )
})
