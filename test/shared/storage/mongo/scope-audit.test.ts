import '#test/setup/env.ts'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { findScopeViolation } from '#test/support/checks/scope-audit.ts'
import { scopeViolation } from '#test/support/checks/watch-scopes.ts'

const vault = '0198c0de-0000-7000-8000-000000000001'

t.test('commands that say whose memories they touch keep the rule', async t => {
  for (const [name, command] of [
    ['find', { filter: { vault } }],
    ['find', { filter: { vault: { $eq: vault }, _id: { $in: ['a'] } } }],
    ['find', { filter: { $and: [{ tier: 1 }, { vault }] } }],
    ['count', { query: { vault } }],
    ['distinct', { query: { vault }, key: 'session' }],
    ['aggregate', { pipeline: [{ $match: { vault: { $eq: vault } } }, { $group: { _id: null } }] }],
    [
      'aggregate',
      { pipeline: [{ $vectorSearch: { filter: { $and: [{ vault: { $eq: vault } }] } } }] },
    ],
    ['aggregate', { pipeline: [{ $listSearchIndexes: {} }] }],
    ['insert', { documents: [{ _id: 'a', vault }] }],
    ['update', { updates: [{ q: { vault }, u: { $set: { text: '' } } }] }],
    ['update', { updates: [{ q: { vault }, u: { $setOnInsert: { vault } }, upsert: true }] }],
    ['findAndModify', { query: { vault }, update: { $set: { tier: 2 } } }],
    ['delete', { deletes: [{ q: { vault, _id: 'a' }, limit: 0 }] }],
    ['createIndexes', { indexes: [] }],
    ['getMore', { getMore: 1, collection: 'memories' }],
  ] as const)
    t.equal(findScopeViolation(name, command), null, JSON.stringify([name, command]))
})

t.test('every other way to reach a memory is a fault', async t => {
  for (const [name, command] of [
    ['find', {}],
    ['find', { filter: {} }],
    ['find', { filter: { _id: 'a' } }],
    ['find', { filter: { vault: '' } }],
    ['find', { filter: { vault: { $ne: null } } }],
    ['find', { filter: { vault: { $in: [vault] } } }],
    ['find', { filter: { vault: null } }],
    ['find', { filter: { vault: /./ } }],
    ['find', { filter: { $or: [{ vault }, { tier: 1 }] } }],
    ['find', { filter: { $and: [{ tier: 1 }] } }],
    ['count', {}],
    ['distinct', { key: 'vault' }],
    ['aggregate', { pipeline: [] }],
    ['aggregate', { pipeline: [{ $sort: { at: 1 } }, { $match: { vault } }] }],
    ['aggregate', { pipeline: [{ $match: { tier: 1 } }] }],
    [
      'aggregate',
      { pipeline: [{ $vectorSearch: { filter: { tier: 1 } } }, { $match: { vault } }] },
    ],
    ['aggregate', { pipeline: [{ $match: { vault } }, { $lookup: { from: 'memories' } }] }],
    ['aggregate', { pipeline: [{ $match: { vault } }, { $unionWith: 'memories' }] }],
    ['aggregate', { pipeline: [{ $match: { vault } }, { $out: 'elsewhere' }] }],
    ['insert', { documents: [{ _id: 'a', vault }, { _id: 'b' }] }],
    ['insert', { documents: [] }],
    ['update', { updates: [{ q: { _id: 'a' }, u: { $set: { text: '' } } }] }],
    ['update', { updates: [{ q: { vault }, u: { $set: { vault: 'other' } } }] }],
    ['update', { updates: [{ q: { vault }, u: { vault, text: '' } }] }],
    ['update', { updates: [{ q: { vault }, u: [{ $set: { vault: 'other' } }] }] }],
    [
      'update',
      {
        updates: [
          { q: { vault }, u: {} },
          { q: {}, u: {} },
        ],
      },
    ],
    ['delete', { deletes: [{ q: { vault } }, { q: {} }] }],
    ['findAndModify', { query: {}, remove: true }],
    ['mapReduce', { query: { vault } }],
    ['bulkWrite', { ops: [] }],
  ] as const) {
    const fault = findScopeViolation(name, command)
    t.type(fault, 'string', JSON.stringify([name, command]))
    t.notMatch(fault, new RegExp(vault), 'a fault tells no values')
  }
})

/** Runs a few lines against the real engine in a process that is watched. */
function watchedProcess(lines: string): { status: number | null; stderr: string } {
  const program = `
    import { openMongo } from '#shared/storage/mongo/connect.ts'
    const mongo = await openMongo(process.env.MONGODB_URI.replace('/?', '/scope_audit?'))
    ${lines}
    await mongo.close()`
  const watch = new URL('../../../support/checks/watch-scopes.ts', import.meta.url).href
  return spawnSync(process.execPath, ['--import', watch, '--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('../../../..', import.meta.url)),
    env: { PATH: process.env.PATH, MONGODB_URI: process.env.MONGODB_URI },
    encoding: 'utf8',
    timeout: 60_000,
  })
}

t.test('a process that keeps the rule ends well', async t => {
  const { status, stderr } = watchedProcess(
    `await mongo.memories.find({ vault: '${vault}' }).toArray()
     await mongo.memories.deleteMany({ vault: '${vault}' })`,
  )
  t.equal(stderr, '')
  t.equal(status, 0)
})

t.test('a process that reads past its vault does not', async t => {
  const { status, stderr } = watchedProcess(`await mongo.memories.find({ tier: 1 }).toArray()`)
  t.equal(status, 1)
  t.match(stderr, `${scopeViolation} in memories: find: the filter has no equality on vault`)
})

t.test('nor does one that fails in the middle of it', async t => {
  const { status, stderr } = watchedProcess(
    `await mongo.memories.updateMany({}, { $set: { vault: 'mine' } })
     throw new Error('afterwards')`,
  )
  t.equal(status, 1)
  t.match(stderr, scopeViolation)
})
