import fc from 'fast-check'
import { memoryIdOf } from '#shared/core/ids.ts'
import type { Backend } from '#shared/backend.ts'
import { same, type Pair } from '#test/model/compare.ts'
import { batchOf, rowOf, spanOf, waitingOf, type Batch } from '#test/model/vault-model.ts'
import { command, pick, times, who, type Command } from '#test/model/writes.ts'
import { expireLease } from '#test/support/start/consolidation.ts'

/** A budget that three of the long texts fill. */
const budget = 1_000

const checkoutOf = (asked: { who: number; tier: 1 | 2 }): Command =>
  command(`check out ${JSON.stringify(asked)}`, async pairs => {
    const { client, model } = pairs[asked.who]!
    const { tier } = asked
    const { status, body } = await client.post('/v1/memory/consolidate/checkout', {
      tier,
      max_tokens: budget,
    })
    const taken = batchOf(waitingOf(model, tier), budget)
    const sources = taken.map(({ id }) => id)
    same('checkout', [status, body.count], [200, taken.length])
    if (taken.length === 0) return same('an empty checkout', body.batch_id, null)
    same(
      'the batch',
      [body.source_ids, body.memories.map((row: { text: string }) => row.text)],
      [sources, taken.map(({ text }) => text)],
    )
    const covers = spanOf(taken)
    const state = 'lent' as const
    const batch = { id: body.batch_id as string, tier, sources, covers, state }
    model.batches.push({ ...batch, created: [], consolidated: 0 })
  })

const checkout = fc.record({ who, tier: fc.constantFrom<1 | 2>(1, 1, 2) }).map(checkoutOf)

/** The newest more often than the others. */
const latest = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: pick })

const picked = <Item>(items: readonly Item[], index: number): Item | undefined =>
  items.at(-1 - (index % (items.length || 1)))

const entries = fc.array(
  fc.tuple(fc.constantFrom('calm', 'storm', 'music'), fc.constantFrom(2, 5, 9)),
  {
    minLength: 1,
    maxLength: 3,
  },
)

type Entry = [word: string, importance: number]

const textOf = (word: string, batch: string): string =>
  `A time of ${word}, says ${batch.slice(-12)}`

const commitOf = (asked: { who: number; pick: number; entries: Entry[] }): Command =>
  command(`commit ${JSON.stringify(asked)}`, async pairs => {
    const pair = pairs[asked.who]!
    const { client, model } = pair
    const batch = picked(model.batches, asked.pick)
    const id = batch?.id ?? picked(model.voidBatches, asked.pick)
    if (id === undefined) return
    const { status, body } = await client.post('/v1/memory/consolidate/commit', {
      batch_id: id,
      entries: asked.entries.map(([word, importance]) => ({ text: textOf(word, id), importance })),
    })
    if (!batch) return same('a commit of a cleared vault', status, 404)
    if (batch.state === 'over') return same('a commit after its time', status, 409)
    const again = batch.state === 'committed'
    if (!again) settle(pair, batch, asked.entries)
    const { already_committed, created, sources_consolidated } = body
    const ids = created.map((one: { id: string }) => one.id)
    same(
      'commit',
      [status, already_committed, ids, sources_consolidated],
      [200, again, batch.created, batch.consolidated],
    )
  })

const commit = fc.record({ who, pick: latest, entries }).map(commitOf)

/** A first batch of the first vault, and what became of it. */
export const consolidated = [
  checkoutOf({ who: 0, tier: 1 }),
  commitOf({
    who: 0,
    pick: 0,
    entries: [
      ['calm', 5],
      ['storm', 5],
      ['music', 2],
      ['calm', 9],
    ],
  }),
]

function settle({ model }: Pair, batch: Batch, made: Entry[]): void {
  const sources = model.rows.filter(({ id }) => batch.sources.includes(id))
  for (const row of sources) row.consolidated = true
  batch.state = 'committed'
  batch.consolidated = sources.length
  batch.created = made.map((_, n) => memoryIdOf(batch.id, n))
  made.forEach(([word, importance], n) =>
    model.rows.push(
      rowOf({
        id: batch.created[n]!,
        tier: batch.tier === 1 ? 2 : 3,
        role: 'system',
        text: textOf(word, batch.id),
        at: batch.covers.to,
        importance,
        batch: batch.id,
        sources: batch.sources,
        covers: batch.covers,
      }),
    ),
  )
}

const expiry = (backend: Backend) =>
  fc.record({ who, pick: latest }).map(asked =>
    command(`run out ${JSON.stringify(asked)}`, async pairs => {
      const batch = picked(pairs[asked.who]!.model.batches, asked.pick)
      if (!batch) return
      await expireLease(backend, batch.id)
      if (batch.state === 'lent') batch.state = 'over'
    }),
  )

/** What a client that consolidates does, in any order, and leases that run out. */
export const consolidation = (backend: Backend) => [
  ...times(4, checkout),
  ...times(4, commit),
  expiry(backend),
]
