import type { CommandStartedEvent, Document } from 'mongodb'
import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { presentTexts, findStoredStates } from '#shared/vault/bulk/memories.mongo.ts'
import {
  countCleared,
  deleteCleared,
  deleteTombstonesBefore,
} from '#shared/vault/delete/delete-cleared.mongo.ts'
import { commandListeners } from '#shared/storage/mongo/connect.ts'
import { copySources, memoriesWithTexts, rawCoreMemories } from '#shared/vault/copy/copies.mongo.ts'
import {
  tombstone,
  findTombstonedBy,
  finalizeTombstones,
  findLiveMemories,
} from '#shared/vault/base/tombstones.mongo.ts'
import { contentHash } from '#shared/vault/base/memories.mongo.ts'
import { createNearestScan } from '#shared/vault/read/search/nearest-scan.mongo.ts'
import {
  hasUnconsolidated,
  markConsolidated,
  findInGivenOrder,
  streamUnconsolidated,
} from '#shared/vault/consolidate/reflections.mongo.ts'
import {
  addVectors,
  textsWithoutVector,
  countWithVector,
  countWithoutVector,
  dropOtherVectors,
} from '#shared/vault/reembed/vector-spaces.mongo.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { insertStoredMemories } from '#test/support/checks/stored-memories.ts'
import { insertVault } from '#test/support/checks/alter.ts'

const unnamed: string[] = []
commandListeners.push(({ commandName, command }: CommandStartedEvent) => {
  const changes = (command['updates'] ?? command['deletes']) as Document[] | undefined
  const isRead =
    ['find', 'aggregate'].includes(commandName) &&
    !('$listSearchIndexes' in (command['pipeline']?.[0] ?? {}))
  const asks = isRead ? [command] : (changes ?? [])
  if (asks.some(({ hint }) => hint === undefined))
    unnamed.push(JSON.stringify(command).slice(0, 300))
})
const backend = await createTestBackend(t)
const { mongo, memories } = backend

const scope: VaultScope = { vault: mintId(), epoch: 1, revision: 0 }
const core = { session: null, sessionEpoch: 0 }
t.teardown(() => mongo.memories.deleteMany({ vault: scope.vault }, { hint: '_id_' }))

await insertVault(backend, scope.vault)
// More than a server tries an index on before it gives up trying.
const ids: string[] = []
for (let start = 0; start < 24_000; start += 8_000) {
  const rows = Array.from({ length: 8_000 }, (_, n) => ({
    text: `memory ${start + n}`,
    at: 1_700_000_000_000 + start + n,
    tokens: 3,
  }))
  ids.push(...(await insertStoredMemories(backend, scope, rows, { vectors: false })))
}

const absent = 'openai__nowhere-8'
const collected = async <Row>(rows: AsyncIterable<Row>): Promise<number> => {
  let count = 0
  for await (const _ of rows) count++
  return count
}

t.test('reads that find nothing in a large vault say so, and name their index', async t => {
  let streamed = 0
  await memories.stream(scope, core, absent, rows => void (streamed += rows.length))
  t.equal(streamed, 0)
  t.equal(await memories.count(scope, core, absent), 0)
  t.same(await memories.byIds(scope, core, absent, ids.slice(0, 600)), [])
  t.match(await memories.stats(scope, [{ session: 's', upTo: 2 }]), { memories: 24_000 })
  t.equal((await memories.findTakenIds(scope, ids.slice(0, 600))).size, 600)
  t.same(await rawCoreMemories(mongo, scope, absent, { max: 10_001 }), [])
  t.equal(await collected(streamUnconsolidated(mongo, scope, { tier: 1, space: absent })), 0)
  t.equal(await hasUnconsolidated(mongo, scope, 2), false)
  t.equal(await hasUnconsolidated(mongo, scope, 1), true)
  t.equal((await findInGivenOrder(mongo, scope, ids.slice(0, 3_000))).length, 3_000)
  t.equal(await countWithoutVector(mongo, scope, absent), 24_000)
  t.equal(await countWithVector(mongo, scope, absent, ids.slice(0, 256)), 0)
  t.equal((await copySources(mongo, scope, absent, ids.slice(0, 500))).size, 500)
  t.same(await memoriesWithTexts(mongo, scope, [contentHash('nowhere')]), [])
  t.equal((await findStoredStates(mongo, scope, ids.slice(0, 500))).size, 500)
  t.equal((await presentTexts(mongo, scope, core, [{ hash: contentHash('x'), at: 1 }])).size, 0)
  const question = { partition: core, space: absent, vector: new Float32Array(8), count: 10 }
  t.same(await createNearestScan(mongo).candidates(scope, question), [])
  t.same(unnamed, [])
})

t.test('so do writes', async t => {
  const [first, ...some] = ids.slice(0, 500)
  const deletion = { operation: mintId(), vault: scope.vault, epoch: scope.epoch }
  await tombstone(mongo, deletion, [first!], { committingBatches: [], unsettledDeletions: [] })
  t.equal((await findTombstonedBy(mongo, deletion, ids.slice(0, 500))).length, 1)
  await finalizeTombstones(mongo, deletion, ids.slice(0, 500))
  t.equal((await findLiveMemories(mongo, scope, [first!, ...some])).length, some.length)
  t.equal(await deleteTombstonesBefore(mongo, { vault: scope.vault, before: new Date(0) }, 10), 0)
  const batch = { ...scope, batch: mintId() }
  t.match(await markConsolidated(mongo, batch, some), { count: some.length })
  const bare = await textsWithoutVector(mongo, scope, absent, some)
  await addVectors(
    mongo,
    scope,
    absent,
    bare.map(row => ({ ...row, vector: new Float32Array(8) })),
  )
  t.equal(await countWithVector(mongo, scope, absent, some), some.length)
  await dropOtherVectors(mongo, scope, absent, some)
  await memories.discard(scope, some)
  const cleared = { vault: scope.vault, session: 'none', from: 0, upTo: 3, vaultEpoch: 3 }
  t.equal(await countCleared(mongo, cleared), 0)
  t.equal(await deleteCleared(mongo, cleared, 10), 0)
  t.equal(await deleteCleared(mongo, { ...cleared, session: null }, 100), 100)
  t.same(unnamed, [])
})
