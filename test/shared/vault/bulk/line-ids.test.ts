import t from 'tap'
import { importedMemoryId, lineMemoryId, type LineIdentity } from '#shared/vault/bulk/plan-items.ts'
import { isUuid, mintId } from '#shared/core/ids.ts'

const identity: LineIdentity = {
  vault: mintId(),
  epoch: 1,
  session: null,
  sessionEpoch: 0,
  contentHash: Buffer.alloc(32, 7),
  timestamp: 1_700_000_000_000,
}

t.test('a line has the same id whenever it is sent, and another if anything differs', async t => {
  t.equal(lineMemoryId(identity, 0, 0), lineMemoryId({ ...identity }, 0, 0))
  const ids = [
    lineMemoryId(identity, 0, 0),
    lineMemoryId(identity, 1, 0),
    lineMemoryId(identity, 0, 1),
    lineMemoryId({ ...identity, vault: mintId() }, 0, 0),
    lineMemoryId({ ...identity, epoch: 2 }, 0, 0),
    lineMemoryId({ ...identity, session: 'trip' }, 0, 0),
    lineMemoryId({ ...identity, session: 'trip', sessionEpoch: 1 }, 0, 0),
    lineMemoryId({ ...identity, contentHash: Buffer.alloc(32, 8) }, 0, 0),
    lineMemoryId({ ...identity, timestamp: 1_700_000_000_001 }, 0, 0),
    lineMemoryId({ ...identity, timestamp: null }, 0, 0),
    lineMemoryId({ ...identity, timestamp: 8_640_000_000_000_000 }, 0, 0),
    lineMemoryId({ ...identity, timestamp: 0 }, 0, 0),
    lineMemoryId({ ...identity, timestamp: -1 }, 0, 0),
    lineMemoryId({ ...identity, timestamp: -62_135_596_800_000 }, 0, 0),
  ]
  t.equal(new Set(ids).size, ids.length)
  t.ok(ids.every(isUuid))
})

t.test('ids sort by time, then by piece', async t => {
  const ids = [
    lineMemoryId(identity, 0, 0),
    lineMemoryId(identity, 1, 0),
    lineMemoryId(identity, 70, 0),
    lineMemoryId(identity, 5_000, 0),
    lineMemoryId({ ...identity, timestamp: identity.timestamp! + 1 }, 0, 0),
  ]
  t.same([...ids].sort(), ids)
})

t.test('an imported id is its own at first, then one of the vault in its place', async t => {
  const scope = { vault: mintId(), epoch: 1 }
  const [first, second] = [mintId(), mintId()]
  t.equal(importedMemoryId(scope, first.toUpperCase(), 0), first)
  const moved = importedMemoryId(scope, first, 1)
  t.equal(moved, importedMemoryId(scope, first.toUpperCase(), 1))
  t.not(moved, first)
  t.not(moved, importedMemoryId(scope, first, 2))
  t.not(moved, importedMemoryId({ ...scope, vault: mintId() }, first, 1))
  t.not(moved, importedMemoryId({ ...scope, epoch: 2 }, first, 1))
  t.equal(moved.slice(0, 18), first.slice(0, 18))
  t.ok(moved < importedMemoryId(scope, second, 1) === first < second)
  t.ok(isUuid(moved))
})
