import fc from 'fast-check'
import { same } from '#test/model/compare.ts'
import { byTime, coreOf, listOf, type ListAsked } from '#test/model/vault-model.ts'
import { command, pick, picked, session, text, who } from '#test/model/writes.ts'

const begin = Date.parse('2025-03-01T08:00:00Z')
const optional = <Value>(arbitrary: fc.Arbitrary<Value>) =>
  fc.option(arbitrary, { nil: undefined, freq: 1 })

const list = fc
  .record({
    who,
    limit: fc.integer({ min: 1, max: 9 }),
    tier: optional(fc.constantFrom(1, 2, 3)),
    sort: fc.constantFrom('date', 'importance'),
    order: fc.constantFrom('newest_first', 'oldest_first'),
    min_importance: optional(fc.integer({ min: 1, max: 10 })),
    from: optional(fc.nat({ max: 6 }).map(hour => begin + hour * 3_600_000)),
    to: optional(fc.integer({ min: 7, max: 12 }).map(hour => begin + hour * 3_600_000)),
    search: optional(fc.constantFrom('the', 'ÜNAL', 'AGAIN', 'waited', '.*', 'music')),
  })
  .map(({ who: index, limit, ...asked }) =>
    command(`list ${JSON.stringify(asked)}`, async pairs => {
      const { client, model } = pairs[index]!
      const query = new URLSearchParams({ limit: String(limit) })
      for (const [name, value] of Object.entries(asked)) {
        const isTime = name === 'from' || name === 'to'
        if (value !== undefined) {
          query.set(name, isTime ? new Date(value).toISOString() : String(value))
        }
      }
      const ids: string[] = []
      for (;;) {
        const { body } = await client.get(`/v1/memory/list?${query.toString()}`)
        same('pages are no longer than asked', body.items.length <= limit, true)
        ids.push(...body.items.map((item: { memory_id: string }) => item.memory_id))
        same('has_more', body.has_more, body.next_cursor !== null)
        if (!body.has_more) break
        query.set('cursor', body.next_cursor)
      }
      const expected = listOf(model, asked as ListAsked).map(({ id }) => id)
      same('the list', ids, expected)
    }),
  )

const search = fc.record({ who, session, text }).map(asked =>
  command(`search ${JSON.stringify(asked).slice(0, 120)}`, async pairs => {
    const { client, model } = pairs[asked.who]!
    const { body } = await client.post(
      '/v1/memory/search',
      { query: asked.text, limit: 200 },
      asked.session === null ? {} : { 'x-session-id': asked.session },
    )
    const place = model.rows.filter(row => row.session === asked.session)
    const rows = body.memories as { id: string; content: string }[]
    const strays = rows.filter(
      ({ id, content }) => !place.some(row => row.id === id && row.text === content),
    )
    same('found, and not there', strays, [])
    same('a text is shown once', new Set(rows.map(({ content }) => content)).size, rows.length)
    if (!place.some(row => row.text === asked.text)) return
    const isFound = rows.some(({ content }) => content === asked.text)
    same('its own text is found', isFound, true)
  }),
)

const inspect = fc.record({ who, pick }).map(asked =>
  command(`inspect ${JSON.stringify(asked)}`, async pairs => {
    const pair = pairs[asked.who]!
    const row = picked(pair, asked.pick)
    if (!row) return
    const { status, body } = await pair.client.post('/v1/memory/inspect', { memory_id: row.id })
    same('inspect', [status, body.tier], [200, row.tier])
    if (row.tier === 1) return
    const living = row.sources.filter(id => coreOf(pair.model).some(other => other.id === id))
    const shown = body.sources.map((source: { id: string }) => source.id)
    same(
      'lineage',
      [shown, body.sources_total, body.sources_deleted],
      [living, row.sources.length, row.sources.length - living.length],
    )
  }),
)

const timeline = fc.record({ who, oldestFirst: fc.boolean() }).map(asked =>
  command(`date-search ${JSON.stringify(asked)}`, async pairs => {
    const { client, model } = pairs[asked.who]!
    const order = asked.oldestFirst ? 'oldest_first' : 'newest_first'
    const told: string[] = []
    let [from, to] = ['2025-01-01', '2025-12-31']
    for (;;) {
      const question = { from, to, order, max_tokens: 1_000 }
      const { body } = await client.post('/v1/memory/date-search', question)
      told.push(...body.memories.map((row: { id: string }) => row.id))
      if (!body.truncated) break
      if (asked.oldestFirst) from = body.returned.to
      else to = body.returned.from
    }
    // A reflection follows its period in the direction of reading.
    const placed = coreOf(model).map(row => ({
      id: row.id,
      at: asked.oldestFirst ? row.at : (row.covers?.from ?? row.at),
    }))
    const rows = placed.toSorted((one, other) => byTime(one, other) * (asked.oldestFirst ? 1 : -1))
    const ids = rows.map(({ id }) => id)
    same('the time told page by page', told, ids)
  }),
)

/** Everything that shows a vault; what changes it is read back after every step anyway. */
export const reads = [list, list, search, inspect, timeline]
