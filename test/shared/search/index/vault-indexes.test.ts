import t from 'tap'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import { createIndexStores, memory } from '#test/support/start/index-stores.ts'
import { countTurns, startStepClock } from '#test/support/checks/step-clock.ts'

function open(budgetBytes = 10_000_000, now = () => 0) {
  const stores = createIndexStores()
  const indexes = new VaultIndexes(stores.source, {
    budgetBytes,
    createIndex: options => createVaultIndex({ ...options, termsOf: text => text.split(' ') }),
    now,
  })
  return { ...stores, indexes }
}

function textsOf(index: VaultIndex | 'too-large'): string[] | 'too-large' {
  if (index === 'too-large') return index
  const tierIndex = index.byTier[1]
  return Array.from({ length: tierIndex.count }, (_, row) => tierIndex.memory(row).text).sort()
}

t.test('loaded once, then cached', async t => {
  const { indexes, write, refOf, calls } = open()
  write('ada', [memory('one')])
  const first = await indexes.get(refOf('ada'))
  t.same(textsOf(first), ['one'])
  t.equal(await indexes.get(refOf('ada')), first)
  t.same(calls, { load: 1, changes: 0, estimate: 1 })
  t.match(indexes.stats(), { hits: 1, loads: 1, refreshes: 0, evictions: 0 })
  t.equal(indexes.count, 1)
})

t.test('loading and refreshing let the event loop run', async t => {
  const { indexes, write, refOf } = open(1_000_000_000)
  const long = 'word '.repeat(400)
  const rows = (count: number) => Array.from({ length: count }, (_, n) => memory(`${long}${n}`))
  startStepClock(t)
  for (const [what, least] of [
    // The store gives a row at a time.
    ['loading', 3_900],
    // Rows of 2,000 characters.
    ['refreshing', 750],
  ] as const) {
    write('ada', rows(4_000))
    const { turns, stop } = countTurns()
    await indexes.get(refOf('ada'))
    stop()
    t.ok(turns() >= least, `${what}: ${turns()} turns`)
  }
  t.equal(((await indexes.get(refOf('ada'))) as VaultIndex).byTier[1].count, 8_000)
})

t.test('a long load is reported at once, and answers later', async t => {
  const { indexes, write, refOf, pauseReads, estimateAs } = open()
  write('ada', [memory('one')])
  estimateAs(100, 5_000)
  const release = pauseReads()
  t.equal(await indexes.getUnlessLong(refOf('ada')), 'loading')
  t.match(indexes.loading, { indexes: 1, rows: 0, expected: 5_000 })
  const waiting = indexes.get(refOf('ada'))
  release()
  t.same(textsOf(await waiting), ['one'])
  t.same(textsOf((await indexes.getUnlessLong(refOf('ada'))) as VaultIndex), ['one'])
  t.match(indexes.loading, { indexes: 0, rows: 0, expected: 0 })
})

t.test('a short load, and a refresh, are waited for', async t => {
  const { indexes, write, refOf } = open()
  write('ada', [memory('one')])
  t.same(textsOf((await indexes.getUnlessLong(refOf('ada'))) as VaultIndex), ['one'])
  write('ada', [memory('two')])
  const both = (await indexes.getUnlessLong(refOf('ada'))) as VaultIndex
  t.same(textsOf(both), ['one', 'two'])
})

t.test('a hundred at once share one load', async t => {
  const { indexes, write, refOf, calls } = open()
  write('ada', [memory('one')])
  const all = await Promise.all(Array.from({ length: 100 }, () => indexes.get(refOf('ada'))))
  t.equal(new Set(all).size, 1)
  t.equal(calls.load, 1)
})

t.test('a write is seen by the next request after a refresh, without a load', async t => {
  const { indexes, write, refOf, calls } = open()
  const one = memory('one')
  write('ada', [one])
  const index = await indexes.get(refOf('ada'))
  write('ada', [memory('two')])
  write('ada', [memory('three')], [one.id])
  const again = await Promise.all([indexes.get(refOf('ada')), indexes.get(refOf('ada'))])
  t.equal(again[0], index)
  t.equal(again[1], index)
  t.same(textsOf(index), ['three', 'two'])
  t.same(calls, { load: 1, changes: 1, estimate: 1 })
})

t.test('a request that authenticated a little earlier gets the cached index', async t => {
  const { indexes, write, refOf, calls } = open()
  write('ada', [memory('one')])
  const earlier = refOf('ada')
  write('ada', [memory('two')])
  await indexes.get(refOf('ada'))
  t.same(textsOf(await indexes.get(earlier)), ['one', 'two'])
  t.same(calls, { load: 1, changes: 0, estimate: 1 })
})

t.test('during a refresh callers with an older revision are served at once', async t => {
  const { indexes, write, refOf, pauseReads } = open()
  write('ada', [memory('one')])
  const earlier = refOf('ada')
  await indexes.get(earlier)
  write('ada', [memory('two')])
  const release = pauseReads()
  const later = indexes.get(refOf('ada'))
  t.same(textsOf(await indexes.get(earlier)), ['one'])
  release()
  t.same(textsOf(await later), ['one', 'two'])
})

t.test('a write during a load is refreshed after it', async t => {
  const { indexes, write, refOf, pauseReads, calls } = open()
  write('ada', [memory('one')])
  const release = pauseReads()
  const first = indexes.get(refOf('ada'))
  await new Promise(done => setImmediate(done))
  write('ada', [memory('two')])
  const second = indexes.get(refOf('ada'))
  release()
  t.same(textsOf(await second), ['one', 'two'])
  t.equal(await first, await second)
  t.same(calls, { load: 1, changes: 1, estimate: 1 })
})

t.test('after a clear the index is dropped and loaded, also for older scopes', async t => {
  const { indexes, write, refOf, clear, calls } = open()
  write('ada', [memory('secret')])
  const before = refOf('ada')
  await indexes.get(before)
  clear('ada')
  t.same(textsOf(await indexes.get(refOf('ada'))), [])
  t.same(textsOf(await indexes.get(before)), [])
  t.equal(calls.load, 2)
})

for (const what of ['load', 'refresh']) {
  t.test(
    `a clear during a ${what}: its own callers do not see deleted memories either`,
    async t => {
      const { indexes, write, refOf, clear, pauseReads } = open()
      write('ada', [memory('secret')])
      if (what === 'refresh') {
        await indexes.get(refOf('ada'))
        write('ada', [memory('another')])
      }
      const release = pauseReads()
      const before = indexes.get(refOf('ada'))
      await new Promise(done => setImmediate(done))
      clear('ada')
      const after = indexes.get(refOf('ada'))
      release()
      t.same(textsOf(await after), [])
      t.same(textsOf(await before), [])
      t.equal(indexes.count, 1)
    },
  )
}

t.test('when the changes are unknown the index is loaded', async t => {
  const { indexes, write, refOf, forgetLog, calls } = open()
  write('ada', [memory('one')])
  await indexes.get(refOf('ada'))
  write('ada', [memory('two')])
  forgetLog()
  t.same(textsOf(await indexes.get(refOf('ada'))), ['one', 'two'])
  t.equal(calls.load, 2)
  t.equal(indexes.count, 1)
})

t.test('a failed load rejects all who wait, and the next call tries again', async t => {
  const { indexes, write, refOf, failNext } = open()
  write('ada', [memory('one')])
  failNext(1)
  const waiting = await Promise.allSettled([indexes.get(refOf('ada')), indexes.get(refOf('ada'))])
  const statuses = waiting.map(({ status }) => status)
  t.same(statuses, ['rejected', 'rejected'])
  t.equal(indexes.count, 0)
  t.equal(indexes.bytes, 0)
  t.same(textsOf(await indexes.get(refOf('ada'))), ['one'])
})

t.test('a failed refresh leaves the index unchanged', async t => {
  const { indexes, write, refOf, failNext, calls } = open()
  write('ada', [memory('one')])
  const earlier = refOf('ada')
  await indexes.get(earlier)
  write('ada', [memory('two')])
  failNext(1)
  await t.rejects(indexes.get(refOf('ada')), { message: 'the store is away' })
  t.same(textsOf(await indexes.get(earlier)), ['one'])
  t.same(textsOf(await indexes.get(refOf('ada'))), ['one', 'two'])
  t.equal(calls.load, 1)
})

t.test('an index that a failed put left half changed is not cached', async t => {
  const { indexes, write, refOf } = open()
  write('ada', [memory('one')])
  await indexes.get(refOf('ada'))
  write('ada', [{ ...memory('two'), vector: new Float32Array(9) }])
  await t.rejects(indexes.get(refOf('ada')), TypeError)
  t.equal(indexes.count, 0)
  t.equal(indexes.bytes, 0)
})

t.test('over budget the least recently used index is evicted', async t => {
  const { indexes, write, refOf, calls } = open(100_000)
  for (const vault of ['ada', 'bob', 'cyd', 'dan']) write(vault, [memory('one')])
  await indexes.get(refOf('ada'))
  const each = indexes.bytes
  t.ok(each > 100_000 / 5 && each < 100_000 / 3, `${each} bytes each: ${100_000 / each} fit`)
  const fitting = Math.floor(100_000 / each)

  for (const vault of ['bob', 'cyd', 'dan'].slice(0, fitting - 1)) await indexes.get(refOf(vault))
  await indexes.get(refOf('ada'))
  write('eve', [memory('one')])
  await indexes.get(refOf('eve'))
  t.equal(indexes.count, fitting)
  t.ok(indexes.bytes <= indexes.budget)
  t.equal(indexes.stats().evictions, 1)

  const loads = calls.load
  await indexes.get(refOf('ada'))
  t.equal(calls.load, loads, 'used just before: still cached')
  await indexes.get(refOf('bob'))
  t.equal(calls.load, loads + 1, 'least recently used: loaded again')
})

t.test('too large by estimate: not loaded, and not estimated again for a while', async t => {
  let time = 0
  const { indexes, write, refOf, calls, estimateAs } = open(100_000, () => time)
  write('ada', [memory('one')])
  estimateAs(100_001)
  t.equal(await indexes.get(refOf('ada')), 'too-large')
  write('ada', [memory('two')])
  t.equal(await indexes.get(refOf('ada')), 'too-large')
  t.same(calls, { load: 0, changes: 0, estimate: 1 })

  estimateAs(100)
  time = 600_000
  t.same(textsOf(await indexes.get(refOf('ada'))), ['one', 'two'])
})

t.test('too large only when loaded: the load is aborted', async t => {
  const { indexes, write, refOf, batches } = open(60_000)
  write('ada', [memory('x'.repeat(100_000)), memory('two'), memory('three')])
  write('bob', [memory('one')])
  t.equal(await indexes.get(refOf('ada')), 'too-large')
  t.equal(batches(), 1)
  t.equal(indexes.count, 0)
  t.same(textsOf(await indexes.get(refOf('bob'))), ['one'])
})

t.test('an index that a write made too large', async t => {
  const { indexes, write, refOf } = open(60_000)
  write('ada', [memory('one')])
  await indexes.get(refOf('ada'))
  write('ada', [memory('x'.repeat(100_000))])
  t.equal(await indexes.get(refOf('ada')), 'too-large')
  t.equal(indexes.count, 0)
  t.ok(indexes.bytes < 10_000)
})

t.test('a clear invalidates `too-large`', async t => {
  const { indexes, write, refOf, clear, estimateAs } = open(100_000)
  write('ada', [memory('one')])
  estimateAs(100_001)
  await indexes.get(refOf('ada'))
  clear('ada')
  estimateAs(100)
  t.same(textsOf(await indexes.get(refOf('ada'))), [])
})

t.test('loads in progress count by their estimate; without room it is `too-large`', async t => {
  const { indexes, write, refOf, pauseReads, estimateAs } = open(100_000)
  write('ada', [memory('one')])
  write('bob', [memory('two')])
  estimateAs(60_000)
  const release = pauseReads()
  const ada = indexes.get(refOf('ada'))
  await new Promise(done => setImmediate(done))
  t.equal(indexes.bytes, 60_000)
  t.equal(await indexes.get(refOf('bob')), 'too-large')
  release()
  t.same(textsOf(await ada), ['one'])
  t.same(textsOf(await indexes.get(refOf('bob'))), ['two'], 'not cached: there is room now')
})

t.test('a forgotten vault is loaded again, also when it was being loaded', async t => {
  const { indexes, write, refOf, pauseReads, calls } = open()
  write('ada', [memory('one')])
  write('adam', [memory('another')])
  await indexes.get(refOf('ada'))
  await indexes.get(refOf('adam'))
  indexes.forget('ada')
  t.equal(indexes.count, 1)

  const release = pauseReads()
  const loading = indexes.get(refOf('ada'))
  await new Promise(done => setImmediate(done))
  indexes.forget('ada')
  release()
  t.same(textsOf(await loading), ['one'])
  t.equal(calls.load, 4)
  t.equal(indexes.count, 2)
})

t.test('core, session and space of one vault have an index each', async t => {
  const { indexes, write, refOf, calls } = open()
  write('ada', [memory('one')])
  const core = await indexes.get(refOf('ada'))
  const session = await indexes.get(refOf('ada', 'core'))
  const other = await indexes.get({ ...refOf('ada'), space: 'other' })
  t.equal(new Set([core, session, other]).size, 3)
  t.same(textsOf(session), [])
  t.equal(calls.load, 3)
})

t.test('an index that leaves a small cache before its time is saved as it leaves', async t => {
  const { source, write, refOf } = createIndexStores()
  const saved: { vault: string; rows: number }[] = []
  const rows = (name: string) => Array.from({ length: 100 }, (_, n) => memory(`${name} ${n}`))
  const sizes = new VaultIndexes(source, {
    budgetBytes: 10_000_000,
    createIndex: options => createVaultIndex({ ...options, termsOf: text => text.split(' ') }),
  })
  for (const vault of ['ada', 'bob']) write(vault, rows(vault))
  await sizes.get(refOf('ada'))
  const indexes = new VaultIndexes(
    {
      ...source,
      save: async ({ scope: { vault } }, index) => void saved.push({ vault, rows: index.rows }),
    },
    {
      budgetBytes: Math.ceil(sizes.bytes * 1.5),
      createIndex: options => createVaultIndex({ ...options, termsOf: text => text.split(' ') }),
      saveAfterMs: 3_600_000,
    },
  )
  await indexes.get(refOf('ada'))
  t.same(saved, [])
  await indexes.get(refOf('bob'))
  t.match(indexes.stats(), { evictions: 1 })
  t.same(saved, [{ vault: refOf('ada').scope.vault, rows: 100 }])
})
