import t from 'tap'
import type { ExportedLine } from '#shared/domain/file-types.ts'
import { mintId } from '#shared/core/ids.ts'
import { raiseEpoch, raiseSessionEpoch } from '#shared/vault/base/vaults.postgres.ts'
import type { TestClient } from '#test/support/start/api.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'
import { tombstoneDocuments } from '#test/support/checks/alter.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { importFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t, { jobs: ['import', 'upload'] })

async function newVault() {
  const client = await newClient()
  return { ...client, vault: (await client.caller()).scope.vault }
}

const at = Date.parse('2026-03-01T10:00:00Z')
const line = (content: string, rest: Partial<ExportedLine> = {}) => ({
  id: mintId(),
  tier: 1,
  role: 'user',
  content,
  timestamp: at,
  session_id: null,
  ...rest,
})
const contentsOf = async (client: TestClient, query = '', headers = {}): Promise<string[]> => {
  const { body } = await client.get(`/v1/memory/export${query}`, headers)
  return body.map(({ content }: ExportedLine) => content)
}

t.test('200: an empty vault is an empty file', async t => {
  const { status, body, headers } = await (await newVault()).get('/v1/memory/export')
  t.equal(status, 200)
  t.match(headers.get('content-type'), 'application/x-ndjson')
  t.same(body, [])
})

t.test('HEAD leaves no cursor open', async t => {
  const { key, vault, send } = await newVault()
  const rows = Array.from({ length: 1_200 }, (_, n) => ({ text: `row ${n}`, at: at + n }))
  await insertStoredMemories(backend, await readVaultScope(backend, key), rows, { vectors: false })
  type Cursors = Set<{ cursorFilter?: { vault?: unknown } }>
  const { client } = backend.mongo.memories as unknown as {
    client: { s: { activeCursors: Cursors } }
  }
  const open = () =>
    [...client.s.activeCursors].filter(one => JSON.stringify(one.cursorFilter)?.includes(vault))
  for (let n = 0; n < 3; n++) t.equal((await send('HEAD', '/v1/memory/export')).status, 200)
  await waitUntil('every cursor is closed', () => open().length === 0)
})

t.test('200: core first, then each session; tier by tier, by time, then by id', async t => {
  const client = await newVault()
  const ties = [line('tie'), line('tie'), line('tie')]
  await importFile(client, [
    line('in a', { session_id: 'a', timestamp: at - 9 }),
    line('high', { tier: 3, importance: 9, timestamp: at - 3 }),
    line('in B', { session_id: 'B', timestamp: at - 9 }),
    line('reflection', { tier: 2, importance: 5, timestamp: at - 2 }),
    line('late', { timestamp: at + 1 }),
    line('early', { timestamp: at - 1 }),
    ...ties,
  ])
  const first = await client.get('/v1/memory/export')
  t.same(
    first.body.map(({ content }: ExportedLine) => content),
    ['early', 'tie', 'tie', 'tie', 'late', 'reflection', 'high', 'in B', 'in a'],
  )
  t.same(
    first.body.slice(1, 4).map(({ id }: ExportedLine) => id),
    ties.map(({ id }) => id).sort(),
  )
  t.same((await client.get('/v1/memory/export')).body, first.body, 'the order is stable')
})

t.test('200: the core alone, or one session', async t => {
  const client = await newVault()
  await importFile(client, [line('core'), line('trip', { session_id: 'trip' })])
  t.same(await contentsOf(client, '?sessions=false'), ['core'])
  t.same(await contentsOf(client, '', { 'x-session-id': 'trip' }), ['trip'])
  t.same(await contentsOf(client, '?sessions=false', { 'x-session-id': 'trip' }), ['trip'])
  t.same(await contentsOf(client, '', { 'x-session-id': 'other' }), [])
})

t.test('200: vectors come where they are asked for, and are the stored ones', async t => {
  const client = await newVault()
  await importFile(client, [line('a grey kitten')])
  t.notOk('vector' in (await client.get('/v1/memory/export')).body[0])
  const { vector } = (await client.get('/v1/memory/export?vectors=true')).body[0]
  const [expected] = await (await backend.embedders.get()).embedTexts(['a grey kitten'])
  t.match(vector, { model: 'local', space: 'local_v1' })
  t.same(Float32Array.from(vector.values), expected)
})

t.test('200: nothing of what was deleted, of a cleared session, or of another vault', async t => {
  const [client, stranger] = [await newVault(), await newVault()]
  const gone = line('gone')
  await importFile(client, [line('stays'), gone, line('trip', { session_id: 'trip' })])
  t.same(await contentsOf(stranger), [])
  await tombstoneDocuments(backend, client.vault, [gone.id])
  t.same(await contentsOf(client), ['stays', 'trip'])
  await backend.postgres.transaction(tx => raiseSessionEpoch(tx, client.vault, 'trip'))
  t.same(await contentsOf(client), ['stays'])
  await backend.postgres.transaction(tx => raiseEpoch(tx, client.vault))
  t.same(await contentsOf(client), [])
})

t.test('200: thousands of lines, all of them, while others are stored', async t => {
  const client = await newVault()
  const lines = Array.from({ length: 3_000 }, (_, n) =>
    line(`memory number ${n}`, { timestamp: at + n }),
  )
  await importFile(client, lines)
  const [contents] = await Promise.all([
    contentsOf(client),
    importFile(
      client,
      Array.from({ length: 200 }, (_, n) => line(`new ${n}`, { timestamp: at - n })),
    ),
  ])
  const all = new Set(contents)
  t.equal(all.size, contents.length, 'none twice')
  t.ok(lines.every(({ content }) => all.has(content)))
})

t.test('200, then cut: a vault that is cleared meanwhile is not a whole file', async t => {
  const client = await newVault()
  // More than any buffer on the way holds: not all of it can be on its way when the vault is cleared.
  const text = 'x'.repeat(8_000)
  const rows = Array.from({ length: 2_500 }, (_, n) => ({ text, at: at + n, tokens: 1 }))
  const scope = await readVaultScope(backend, client.key)
  await insertStoredMemories(backend, scope, rows, { vectors: false })
  const response = await fetch(`${base}/v1/memory/export`, {
    headers: { authorization: `Bearer ${client.key}` },
  })
  const reader = response.body!.getReader()
  await reader.read()
  await backend.postgres.transaction(tx => raiseEpoch(tx, client.vault))
  await t.rejects(async () => {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read());
  })
})

t.test('400: an unknown embedding model', async t => {
  const client = await newVault()
  const odd = { 'x-embedding-model': 'nonsense' }
  t.equal((await client.get('/v1/memory/export?vectors=true', odd)).status, 400)
})
