import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import {
  VaultIndexes,
  type IndexSource,
  type IndexRef,
} from '#shared/search/index/vault-indexes.ts'

const dimension = 4

function memory(text: string): EmbeddedMemory {
  const vector = Float32Array.of(1, 0, 0, 0)
  return { id: randomUUID(), tier: 1, role: 'user', text, at: 1, tokens: 1, vector }
}

type Change = { vault: string; revision: number; put: EmbeddedMemory[]; remove: string[] }

/**
 * The stores behind the images, in memory: vaults with an epoch, a revision and a
 * log. It can be slow, fail, and forget its log.
 */
function createStores() {
  const rows = new Map<string, EmbeddedMemory[]>()
  const versions = new Map<string, { epoch: number; revision: number }>()
  let log: Change[] = []
  const calls = { load: 0, changes: 0, measure: 0 }
  let batches = 0
  let held: Promise<void> | undefined
  let failures = 0
  let size = 100

  const keyOf = ({ scope, session }: Pick<IndexRef, 'scope' | 'session'>) =>
    `${scope.vault} ${session ?? ''}`

  function refOf(vault: string, session: string | null = null): IndexRef {
    const version = versions.get(vault) ?? { epoch: 1, revision: 0 }
    return { scope: { vault, ...version }, session, space: 'local', dimension }
  }

  function write(vault: string, put: EmbeddedMemory[], remove: string[] = []) {
    const { scope } = refOf(vault)
    const key = `${vault} `
    const kept = (rows.get(key) ?? []).filter(({ id }) => !remove.includes(id))
    rows.set(key, [...kept, ...put])
    versions.set(vault, { epoch: scope.epoch, revision: scope.revision + 1 })
    log.push({ vault, revision: scope.revision + 1, put, remove })
  }

  async function slowly() {
    await held
    await new Promise(done => setImmediate(done))
    if (failures > 0) {
      failures--
      throw new Error('the store is away')
    }
  }

  const source: IndexSource = {
    async load(ref, onBatch) {
      calls.load++
      const read = [...(rows.get(keyOf(ref)) ?? [])]
      await slowly()
      for (const row of read) {
        batches++
        onBatch([row])
      }
    },
    async changes(ref, since) {
      calls.changes++
      const { vault, revision } = ref.scope
      const own = log.filter(
        change => change.vault === vault && change.revision > since && change.revision <= revision,
      )
      await slowly()
      if (own.length < revision - since) return null
      return {
        put: own.flatMap(({ put }) => put),
        remove: own.flatMap(({ remove }) => remove),
      }
    },
    async estimateBytes() {
      calls.measure++
      return size
    },
  }

  return {
    source,
    calls,
    batches: () => batches,
    refOf,
    write,
    clear(vault: string) {
      rows.delete(`${vault} `)
      const { scope } = refOf(vault)
      versions.set(vault, { epoch: scope.epoch + 1, revision: scope.revision + 1 })
    },
    forgetLog() {
      log = []
    },
    /** Reads wait until the returned function is called. */
    hold() {
      const gate = Promise.withResolvers<void>()
      held = gate.promise
      return () => {
        held = undefined
        gate.resolve()
      }
    },
    failNext(times: number) {
      failures = times
    },
    measureAs(bytes: number) {
      size = bytes
    },
  }
}

function open(budgetBytes = 10_000_000, now = () => 0) {
  const stores = createStores()
  const images = new VaultIndexes(stores.source, {
    budgetBytes,
    createIndex: options => createVaultIndex({ ...options, termsOf: text => text.split(' ') }),
    now,
  })
  return { ...stores, images }
}

function textsOf(image: VaultIndex | 'too-large'): string[] | 'too-large' {
  if (image === 'too-large') return image
  const block = image.byTier[1]
  return Array.from({ length: block.count }, (_, row) => block.memory(row).text).sort()
}

t.test('loaded once, then held', async t => {
  const { images, write, refOf, calls } = open()
  write('ada', [memory('one')])
  const first = await images.get(refOf('ada'))
  t.same(textsOf(first), ['one'])
  t.equal(await images.get(refOf('ada')), first)
  t.same(calls, { load: 1, changes: 0, measure: 1 })
  t.match(images.stats(), { hits: 1, loads: 1, refreshes: 0, evictions: 0 })
  t.equal(images.count, 1)
})

t.test('a hundred at once share one load', async t => {
  const { images, write, refOf, calls } = open()
  write('ada', [memory('one')])
  const all = await Promise.all(Array.from({ length: 100 }, () => images.get(refOf('ada'))))
  t.equal(new Set(all).size, 1)
  t.equal(calls.load, 1)
})

t.test('a write is seen by the next request, without loading anew', async t => {
  const { images, write, refOf, calls } = open()
  const one = memory('one')
  write('ada', [one])
  const image = await images.get(refOf('ada'))
  write('ada', [memory('two')])
  write('ada', [memory('three')], [one.id])
  const again = await Promise.all([images.get(refOf('ada')), images.get(refOf('ada'))])
  t.equal(again[0], image)
  t.equal(again[1], image)
  t.same(textsOf(image), ['three', 'two'])
  t.same(calls, { load: 1, changes: 1, measure: 1 })
})

t.test('a request that authenticated a little earlier gets what is held', async t => {
  const { images, write, refOf, calls } = open()
  write('ada', [memory('one')])
  const earlier = refOf('ada')
  write('ada', [memory('two')])
  await images.get(refOf('ada'))
  t.same(textsOf(await images.get(earlier)), ['one', 'two'])
  t.same(calls, { load: 1, changes: 0, measure: 1 })
})

t.test('while a refresh runs, whoever needs less is served at once', async t => {
  const { images, write, refOf, hold } = open()
  write('ada', [memory('one')])
  const earlier = refOf('ada')
  await images.get(earlier)
  write('ada', [memory('two')])
  const release = hold()
  const later = images.get(refOf('ada'))
  t.same(textsOf(await images.get(earlier)), ['one'])
  release()
  t.same(textsOf(await later), ['one', 'two'])
})

t.test('a write during a load is refreshed after it', async t => {
  const { images, write, refOf, hold, calls } = open()
  write('ada', [memory('one')])
  const release = hold()
  const first = images.get(refOf('ada'))
  await new Promise(done => setImmediate(done))
  write('ada', [memory('two')])
  const second = images.get(refOf('ada'))
  release()
  t.same(textsOf(await second), ['one', 'two'])
  t.equal(await first, await second)
  t.same(calls, { load: 1, changes: 1, measure: 1 })
})

t.test('after everything was deleted: dropped and loaded, and never brought back', async t => {
  const { images, write, refOf, clear, calls } = open()
  write('ada', [memory('secret')])
  const before = refOf('ada')
  await images.get(before)
  clear('ada')
  t.same(textsOf(await images.get(refOf('ada'))), [])
  t.same(textsOf(await images.get(before)), [])
  t.equal(calls.load, 2)
})

t.test('deleted during a load: even its own callers do not see what is gone', async t => {
  const { images, write, refOf, clear, hold } = open()
  write('ada', [memory('secret')])
  const release = hold()
  const before = images.get(refOf('ada'))
  await new Promise(done => setImmediate(done))
  clear('ada')
  const after = images.get(refOf('ada'))
  release()
  t.same(textsOf(await after), [])
  t.same(textsOf(await before), [])
  t.equal(images.count, 1)
})

t.test('deleted during a refresh, alike', async t => {
  const { images, write, refOf, clear, hold } = open()
  write('ada', [memory('secret')])
  await images.get(refOf('ada'))
  write('ada', [memory('another')])
  const release = hold()
  const before = images.get(refOf('ada'))
  await new Promise(done => setImmediate(done))
  clear('ada')
  const after = images.get(refOf('ada'))
  release()
  t.same(textsOf(await after), [])
  t.same(textsOf(await before), [])
})

t.test('a log that does not reach back: loaded anew', async t => {
  const { images, write, refOf, forgetLog, calls } = open()
  write('ada', [memory('one')])
  await images.get(refOf('ada'))
  write('ada', [memory('two')])
  forgetLog()
  t.same(textsOf(await images.get(refOf('ada'))), ['one', 'two'])
  t.equal(calls.load, 2)
  t.equal(images.count, 1)
})

t.test('a failed load reaches everybody who waits, and is tried again by the next', async t => {
  const { images, write, refOf, failNext } = open()
  write('ada', [memory('one')])
  failNext(1)
  const waiting = await Promise.allSettled([images.get(refOf('ada')), images.get(refOf('ada'))])
  t.same(
    waiting.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  t.equal(images.count, 0)
  t.equal(images.bytes, 0)
  t.same(textsOf(await images.get(refOf('ada'))), ['one'])
})

t.test('a failed refresh leaves the image as it was', async t => {
  const { images, write, refOf, failNext, calls } = open()
  write('ada', [memory('one')])
  const earlier = refOf('ada')
  await images.get(earlier)
  write('ada', [memory('two')])
  failNext(1)
  await t.rejects(images.get(refOf('ada')), { message: 'the store is away' })
  t.same(textsOf(await images.get(earlier)), ['one'])
  t.same(textsOf(await images.get(refOf('ada'))), ['one', 'two'])
  t.equal(calls.load, 1)
})

t.test('what cannot be put is not held half changed', async t => {
  const { images, write, refOf } = open()
  write('ada', [memory('one')])
  await images.get(refOf('ada'))
  write('ada', [{ ...memory('two'), vector: new Float32Array(9) }])
  await t.rejects(images.get(refOf('ada')), TypeError)
  t.equal(images.count, 0)
  t.equal(images.bytes, 0)
})

t.test('over budget, the one asked for least recently goes', async t => {
  const { images, write, refOf, calls } = open(100_000)
  for (const vault of ['ada', 'bob', 'cyd', 'dan']) write(vault, [memory('one')])
  await images.get(refOf('ada'))
  const each = images.bytes
  t.ok(each > 100_000 / 5 && each < 100_000 / 3, `${each} bytes each: ${100_000 / each} fit`)
  const fitting = Math.floor(100_000 / each)

  for (const vault of ['bob', 'cyd', 'dan'].slice(0, fitting - 1)) await images.get(refOf(vault))
  await images.get(refOf('ada'))
  write('eve', [memory('one')])
  await images.get(refOf('eve'))
  t.equal(images.count, fitting)
  t.ok(images.bytes <= images.budget)
  t.equal(images.stats().evictions, 1)

  const loads = calls.load
  await images.get(refOf('ada'))
  t.equal(calls.load, loads, 'asked again just before: still held')
  await images.get(refOf('bob'))
  t.equal(calls.load, loads + 1, 'asked least recently: loaded anew')
})

t.test('too large by measure: not loaded, and not measured again for a while', async t => {
  let time = 0
  const { images, write, refOf, calls, measureAs } = open(100_000, () => time)
  write('ada', [memory('one')])
  measureAs(100_001)
  t.equal(await images.get(refOf('ada')), 'too-large')
  write('ada', [memory('two')])
  t.equal(await images.get(refOf('ada')), 'too-large')
  t.same(calls, { load: 0, changes: 0, measure: 1 })

  measureAs(100)
  time = 600_000
  t.same(textsOf(await images.get(refOf('ada'))), ['one', 'two'])
})

t.test('too large only when loaded: given up on the way', async t => {
  const { images, write, refOf, batches } = open(60_000)
  write('ada', [memory('x'.repeat(100_000)), memory('two'), memory('three')])
  write('bob', [memory('one')])
  t.equal(await images.get(refOf('ada')), 'too-large')
  t.equal(batches(), 1)
  t.equal(images.count, 0)
  t.same(textsOf(await images.get(refOf('bob'))), ['one'])
})

t.test('grown too large by a write', async t => {
  const { images, write, refOf } = open(60_000)
  write('ada', [memory('one')])
  await images.get(refOf('ada'))
  write('ada', [memory('x'.repeat(100_000))])
  t.equal(await images.get(refOf('ada')), 'too-large')
  t.equal(images.count, 0)
  t.ok(images.bytes < 10_000)
})

t.test('a verdict falls when everything is deleted', async t => {
  const { images, write, refOf, clear, measureAs } = open(100_000)
  write('ada', [memory('one')])
  measureAs(100_001)
  await images.get(refOf('ada'))
  clear('ada')
  measureAs(100)
  t.same(textsOf(await images.get(refOf('ada'))), [])
})

t.test('loads in progress count by their measure; what finds no room is told so', async t => {
  const { images, write, refOf, hold, measureAs } = open(100_000)
  write('ada', [memory('one')])
  write('bob', [memory('two')])
  measureAs(60_000)
  const release = hold()
  const ada = images.get(refOf('ada'))
  await new Promise(done => setImmediate(done))
  t.equal(images.bytes, 60_000)
  t.equal(await images.get(refOf('bob')), 'too-large')
  release()
  t.same(textsOf(await ada), ['one'])
  t.same(textsOf(await images.get(refOf('bob'))), ['two'], 'no verdict: there is room now')
})

t.test('a vault forgotten is loaded anew, also when it was being loaded', async t => {
  const { images, write, refOf, hold, calls } = open()
  write('ada', [memory('one')])
  write('adam', [memory('another')])
  await images.get(refOf('ada'))
  await images.get(refOf('adam'))
  images.forget('ada')
  t.equal(images.count, 1)

  const release = hold()
  const loading = images.get(refOf('ada'))
  await new Promise(done => setImmediate(done))
  images.forget('ada')
  release()
  t.same(textsOf(await loading), ['one'])
  t.equal(calls.load, 4)
  t.equal(images.count, 2)
})

t.test('core, session and space of one vault are images of their own', async t => {
  const { images, write, refOf, calls } = open()
  write('ada', [memory('one')])
  const core = await images.get(refOf('ada'))
  const session = await images.get(refOf('ada', 'core'))
  const other = await images.get({ ...refOf('ada'), space: 'other' })
  t.equal(new Set([core, session, other]).size, 3)
  t.same(textsOf(session), [])
  t.equal(calls.load, 3)
})
