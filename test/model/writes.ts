import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { memoryIdOf, mintId } from '#shared/core/ids.ts'
import { compare, same, type Pair } from '#test/model/compare.ts'
import {
  copyRows,
  hashOf,
  removeRows,
  rowOf,
  uploadRows,
  type Row,
} from '#test/model/vault-model.ts'

/** What happens to one vault, or to two of them. */
export type Command = fc.AsyncCommand<object, Pair[]>

/** A command that is always possible, and after which both vaults are what they should be. */
export function command(name: string, run: (pairs: Pair[]) => Promise<void>): Command {
  return {
    check: () => true,
    async run(_, pairs) {
      await run(pairs)
      for (const pair of pairs) await compare(pair)
    },
    toString: () => name,
  }
}

const words = ['tide', 'violin', 'Ünal', 'attic', 'oranges', 'ferry']
const begin = Date.parse('2025-03-01T08:00:00Z')

/** Few texts and few moments: what is alike should meet often. Long ones make batches of three. */
export const text = fc
  .tuple(
    fc.constantFrom(...words),
    fc.constantFrom('', ' again', `: ${'and so we waited '.repeat(75)}`),
  )
  .map(([word, end]) => `The ${word}${end}`.trim())
const moment = fc.nat({ max: 12 }).map(hour => begin + hour * 3_600_000)
export const who = fc.constantFrom(0, 0, 0, 1)
export const session = fc.constantFrom<string | null>(null, null, 'trip', 'garden')
/** Which of those that are there, round and round. */
export const pick = fc.nat({ max: 1_000 })

const inSession = (name: string | null) => (name === null ? {} : { 'x-session-id': name })
const show = (...parts: unknown[]): string =>
  parts
    .map(part => JSON.stringify(part))
    .join(' ')
    .slice(0, 160)

/** The row that a number stands for, or an id that leads nowhere. */
export const picked = ({ model }: Pair, index: number): Row | undefined =>
  model.rows.length === 0 ? undefined : model.rows[index % model.rows.length]
const idOf = (pair: Pair, index: number): string =>
  picked(pair, index)?.id ?? pair.model.gone[index % (pair.model.gone.length || 1)] ?? mintId()

type Told = { who: number; session: string | null; turns: [text: string, at: number][] }

const ingestOf = (asked: Told): Command =>
  command(`ingest ${show(asked)}`, async pairs => {
    const { client, model } = pairs[asked.who]!
    const messages = asked.turns.map(([content, timestamp], n) => ({
      role: n % 2 === 0 ? 'user' : 'assistant',
      content,
      timestamp,
    }))
    const path = '/v1/memory/ingest?wait=true'
    const { status, body } = await client.post(path, { messages }, inSession(asked.session))
    same('ingest', status, 200)
    messages.forEach(({ role, content, timestamp }, n) =>
      model.rows.push(
        rowOf({
          id: memoryIdOf(body.operation_id, n),
          role,
          text: content,
          at: timestamp,
          session: asked.session,
        }),
      ),
    )
  })

const ingest = fc
  .record({ who, session, turns: fc.array(fc.tuple(text, moment), { minLength: 1, maxLength: 3 }) })
  .map(ingestOf)

/** What the first vault begins with: some of it twice. */
export const told = ingestOf({
  who: 0,
  session: null,
  turns: words.flatMap((word, hour) =>
    ['', ' again'].map((end): [string, number] => [
      `The ${hour % 2 === 0 ? word : words[0]!}${end}`,
      begin + hour * 3_600_000,
    ]),
  ),
})

const upload = fc
  .record({ who, session, lines: fc.array(fc.tuple(text, moment), { minLength: 1, maxLength: 6 }) })
  .map(asked =>
    command(`upload ${show(asked)}`, async pairs => {
      const { client, model } = pairs[asked.who]!
      const lines = asked.lines.map(([content, timestamp]) => ({ content, timestamp }))
      const { status, body } = await client.send('POST', '/v1/memory/upload', {
        headers: { 'content-type': 'application/x-ndjson', ...inSession(asked.session) },
        body: lines.map(line => JSON.stringify(line)).join('\n'),
      })
      const stored = uploadRows(model, asked.session, lines)
      same(
        'upload',
        [status, body.stats.stored, body.stats.skipped],
        [200, stored, lines.length - stored],
      )
    }),
  )

const edit = fc.record({ who, pick, text, foreign: fc.nat({ max: 9 }) }).map(asked =>
  command(`edit ${show(asked)}`, async pairs => {
    const pair = pairs[asked.who]!
    const strange = asked.foreign === 0
    const row = strange ? undefined : picked(pair, asked.pick)
    const id = row?.id ?? (strange ? idOf(pairs[1 - asked.who]!, asked.pick) : mintId())
    const twin = pair.model.rows.some(
      other => other !== row && hashOf(other.text) === hashOf(asked.text),
    )
    const body = { memory_id: id, text: asked.text }
    const { status } = await pair.client.post('/v1/memory/edit', body)
    same('edit', status, row ? (twin ? 409 : 200) : 404)
    if (row && !twin) row.text = asked.text
  }),
)

const remove = fc
  .record({ who, picks: fc.array(pick, { minLength: 1, maxLength: 4 }), async: fc.boolean() })
  .map(asked =>
    command(`delete ${show(asked)}`, async pairs => {
      const pair = pairs[asked.who]!
      const ids = [...asked.picks.map(index => idOf(pair, index)), idOf(pairs[1 - asked.who]!, 3)]
      const different = new Set(ids)
      const { status, body } = await pair.client.post(
        '/v1/memory/delete-ids',
        { ids },
        asked.async ? { prefer: 'respond-async' } : {},
      )
      const gone = removeRows(pair.model, ({ id }) => different.has(id)).length
      if (asked.async) return same('delete-ids', status, 202)
      same(
        'delete-ids',
        [status, body.requested, body.deleted, body.not_found, body.failed],
        [200, different.size, gone, different.size - gone, []],
      )
    }),
  )

const endsInMs = 250

/** A memory gets an end, and has come to it when this is over: as if it had been deleted. */
const expire = fc.record({ who, pick }).map(asked =>
  command(`expire ${show(asked)}`, async pairs => {
    const pair = pairs[asked.who]!
    const row = picked(pair, asked.pick)
    if (!row) return
    const edit = { memory_id: row.id, text: `Not for long: ${row.id}` }
    for (let inMs = endsInMs; ; inMs *= 4) {
      const end = Date.now() + inMs
      const expires_at = new Date(end).toISOString()
      const { status, body } = await pair.client.post('/v1/memory/edit', { ...edit, expires_at })
      // A machine that stands still gets there when it is over: a later end, then.
      if (status === 400 && Date.now() >= end && inMs < 300_000) continue
      same('expire', [status, body.expires_at], [200, expires_at])
      await delay(Math.max(0, end - Date.now()) + 2)
      break
    }
    removeRows(pair.model, ({ id }) => id === row.id)
  }),
)

const clearSession = fc.record({ who, session: fc.constantFrom('trip', 'garden') }).map(asked =>
  command(`clear ${show(asked)}`, async pairs => {
    const { client, model } = pairs[asked.who]!
    const headers = inSession(asked.session)
    const { status, body } = await client.send('DELETE', '/v1/memory', { headers })
    const gone = removeRows(model, ({ session: name }) => name === asked.session)
    same('clear a session', [status, body.deleted], [200, gone.length])
  }),
)

/** Now and then: nothing is left of what a history has come to. */
const clearAll = fc.record({ who, async: fc.boolean(), now: fc.nat({ max: 3 }) }).map(asked =>
  command(`clear everything ${show(asked)}`, async pairs => {
    if (asked.now > 0) return
    const { client, model } = pairs[asked.who]!
    const headers: Record<string, string> = asked.async ? { prefer: 'respond-async' } : {}
    const { status, body } = await client.send('DELETE', '/v1/memory', { headers })
    const gone = removeRows(model, () => true)
    model.voidBatches.push(...model.batches.map(({ id }) => id))
    model.batches = []
    if (asked.async) same('clear everything', status, 202)
    else same('clear everything', [status, body.deleted], [200, gone.length])
  }),
)

const transfer = fc.record({ who, preview: fc.boolean() }).map(asked =>
  command(`transfer ${show(asked)}`, async pairs => {
    const [from, to] = [pairs[asked.who]!, pairs[1 - asked.who]!]
    const { status, body } = await from.client.post('/v1/memory/transfer', {
      destination_key: to.key,
      dry_run: asked.preview,
    })
    same('transfer', [status, body.dry_run], [200, asked.preview])
    if (asked.preview) return
    const { copied, skipped } = copyRows(from.model, to.model)
    same('transfer', [body.copied, body.deduped_or_skipped, body.failed], [copied, skipped, 0])
  }),
)

/** So often among its like. */
export const times = <One>(count: number, one: One): One[] =>
  Array.from({ length: count }, () => one)

/** Everything that changes a vault but consolidation, as often as it stands here. */
export const writes = [
  ...times(4, ingest),
  ...times(2, upload),
  ...times(3, edit),
  ...times(2, remove),
  transfer,
  expire,
  clearSession,
  clearAll,
]
