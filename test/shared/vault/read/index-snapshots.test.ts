import t from 'tap'
import { nearestRows } from '#scripts/lab/bench/nearest-rows.ts'
import { createVaultIndex } from '#shared/search/index/vault-index.ts'
import { VaultIndexes, type IndexRef } from '#shared/search/index/vault-indexes.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { createIndexSource } from '#shared/vault/read/search/index-source.ts'
import { saveIndex } from '#shared/vault/read/search/index-snapshots.postgres.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { insertMemories, resolveCaller } from '#test/support/start/insert-memories.ts'
import { exportLines, importFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { countSnapshotParts } from '#test/support/checks/observe.ts'

const { backend, base } = await startService(t)
const { query } = backend.postgres

/** Indexes of another process, and how often they read all documents of a vault. */
function otherProcess() {
  let loads = 0
  const source = createIndexSource(backend)
  const indexes = new VaultIndexes(
    { ...source, load: (...given) => (loads++, source.load(...given)) },
    {
      budgetBytes: 100_000_000,
      createIndex: options => createVaultIndex({ ...options, termsOf }),
      saveAfterMs: 0,
    },
  )
  return { indexes, loads: () => loads }
}

async function filledVault() {
  const key = await buildKey(backend)
  const texts = Array.from({ length: 120 }, (_, n) => ({ text: `heron number ${n} nests` }))
  const ids = await insertMemories(backend, key, texts)
  const client = createTestClient(base, key)
  const ref = async (): Promise<IndexRef> => {
    const { space, dimension } = await backend.embedders.get()
    return { scope: (await resolveCaller(backend, key)).scope, session: null, space, dimension }
  }
  const parts = async (): Promise<number> => {
    const { vault } = (await ref()).scope
    return countSnapshotParts(backend, vault)
  }
  const load = async (process = otherProcess()) => {
    const index = await process.indexes.get(await ref())
    if (index === 'too-large') throw new Error('it fits')
    const { byTier } = index
    const texts = Array.from({ length: byTier[1].count }, (_, row) => byTier[1].text(row))
    return { texts: texts.toSorted(), loads: process.loads(), index }
  }
  const saved = () => waitUntil('it is saved', async () => (await parts()) > 0)
  return { ids, client, ref, parts, load, saved }
}

t.test('another process reads what is saved, and what was stored since', async t => {
  const { client, load, saved } = await filledVault()
  const first = await load()
  t.equal(first.loads, 1)
  await saved()
  const told = { messages: [{ role: 'user', content: 'a stork came' }] }
  await client.post('/v1/memory/ingest?wait=true', told)
  const second = await load()
  t.equal(second.loads, 0)
  t.same(second.texts, ['a stork came', ...first.texts])
  const vector = (await (await backend.embedders.get()).embedTexts(['heron number 7 nests']))[0]!
  for (const { index } of [first, second]) {
    const { rows, cosines } = nearestRows(index.byTier[1], vector, 1)
    t.equal(index.byTier[1].text(rows[0]!), 'heron number 7 nests')
    t.ok(cosines[0]! > 0.999)
    t.equal(index.byTier[1].wordIndex.documentFrequency('heron'), 120)
  }
})

t.test('what is removed, changed or cleared is not kept', async t => {
  const heron = { text: 'heron number 3 flies' }
  const changes = {
    deletion: ({ client, ids }) => client.post('/v1/memory/delete-ids', { ids: [ids[3]] }),
    edit: ({ client, ids }) => client.post('/v1/memory/edit', { memory_id: ids[3], ...heron }),
    replacement: async ({ client }) => {
      const line = (await exportLines(client)).find(({ content }) => /number 3 /.test(content))!
      return importFile(client, [{ ...line, content: heron.text }], '?on_conflict=replace')
    },
    clearing: ({ client }) => client.send('DELETE', '/v1/memory'),
  } satisfies Record<
    string,
    (vault: Awaited<ReturnType<typeof filledVault>>) => Promise<{ status: number }>
  >
  for (const [name, change] of Object.entries(changes)) {
    const vault = await filledVault()
    const { index } = await vault.load()
    await vault.saved()
    const before = await vault.ref()
    t.equal((await change(vault)).status, 200, name)
    t.equal(await vault.parts(), 0, name)
    const { texts } = await vault.load()
    t.notOk(texts.includes('heron number 3 nests'), name)
    // A process that saves what it has read before the change.
    const late = { rows: 120, bytes: index.save() }
    t.equal(await saveIndex(backend.postgres, before, late), false, name)
    const { rows } = await query(
      'select from index_snapshots where vault = $1 and revision <= $2',
      [before.scope.vault, before.scope.revision],
    )
    t.same(rows, [], name)
  }
})

t.test('a damaged one, or one of other code, is not used', async t => {
  const { ref, load, saved } = await filledVault()
  const { vault } = (await ref()).scope
  const { texts } = await load()
  for (const damage of [
    'bytes = set_byte(bytes, 9000, 255 - get_byte(bytes, 9000))',
    `code = 'other'`,
  ]) {
    await saved()
    await query(`update index_snapshots set ${damage} where vault = $1`, [vault])
    const again = await load()
    t.equal(again.loads, 1, damage)
    t.same(again.texts, texts)
    await query('delete from index_snapshots where vault = $1', [vault])
    await load()
  }
})

t.test('a table that cannot be read costs a load of the documents, not the search', async t => {
  const { load, saved } = await filledVault()
  const { texts } = await load()
  await saved()
  await query('alter table index_snapshots rename to renamed')
  const again = await load()
  await query('alter table renamed rename to index_snapshots')
  t.equal(again.loads, 1)
  t.same(again.texts, texts)
})
