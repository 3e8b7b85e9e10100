import { isDeepStrictEqual } from 'node:util'
import { countTokens } from '#shared/core/tokens.ts'
import { debtOf, type Row, type VaultModel } from '#test/model/vault-model.ts'
import type { TestClient } from '#test/support/start/api.ts'

/** A vault of the service beside what it should be. */
export type Pair = { client: TestClient; key: string; model: VaultModel }

/** @throws Error that says what differs, when the service and the model do. */
export function same(what: string, actual: unknown, expected: unknown): void {
  if (isDeepStrictEqual(actual, expected)) return
  const shown = (value: unknown): string => JSON.stringify(value, null, 1)?.slice(0, 3_000) ?? ''
  throw new Error(`${what}\nthe service: ${shown(actual)}\nthe model: ${shown(expected)}`)
}

type ExportedRow = {
  id: string
  tier: Row['tier']
  role: string
  content: string
  timestamp: number
  session_id: string | null
  importance?: number
  consolidated: boolean
  batch_id?: string
  sources?: string[]
  covers?: { from: string; to: string }
}

/**
 * Reads the whole vault and holds it against the model, row by row; ids that the model does not know yet
 * are learned here. Then what is said of the whole: stats, counts of the tiers, the debt.
 */
export async function compare({ client, model }: Pair): Promise<void> {
  const { body } = await client.get('/v1/memory/export')
  const rows = (body as ExportedRow[]).map(rowOfLine)
  learnIds(model, rows)
  const inOrder = (some: readonly Row[]) =>
    some.map(row => ({ ...row, line: null })).toSorted((one, other) => (one.id < other.id ? -1 : 1))
  same('the export', inOrder(rows), inOrder(model.rows))

  const times = model.rows.map(({ at }) => at).toSorted((one, other) => one - other)
  const iso = (at: number | undefined) => (at === undefined ? null : new Date(at).toISOString())
  const { key: _, ...stats } = (await client.get('/v1/memory/stats')).body
  same('stats', stats, {
    memories: model.rows.length,
    total_tokens: model.rows.reduce((sum, { text }) => sum + countTokens(text), 0),
    oldest: iso(times[0]),
    newest: iso(times.at(-1)),
    feedback: { right: 0, wrong: 0, outdated: 0, not_mine: 0 },
  })
  const page = (await client.get('/v1/memory/list?limit=1')).body
  const count = (tier: number): number =>
    model.rows.filter(row => row.session === null && row.tier === tier).length
  same('tier_counts', page.tier_counts, { raw: count(1), tier2: count(2), tier3: count(3) })
  const found = await client.post('/v1/memory/search', { query: 'x', limit: 1 })
  const { raw, tier2 } = found.body.reflection.unconsolidated
  const { importance_equiv: __, ...units } = raw
  same('the debt', { raw: units, tier2 }, debtOf(model))
}

const rowOfLine = (line: ExportedRow): Row => ({
  id: line.id,
  tier: line.tier,
  role: line.role,
  text: line.content,
  at: line.timestamp,
  session: line.session_id,
  importance: line.importance ?? null,
  consolidated: line.consolidated,
  batch: line.batch_id ?? null,
  sources: line.sources ?? [],
  covers: line.covers
    ? { from: Date.parse(line.covers.from), to: Date.parse(line.covers.to) }
    : null,
  line: null,
})

/** A row without an id is one of those that are new and look like it. */
function learnIds(model: VaultModel, rows: readonly Row[]): void {
  const known = new Set(model.rows.map(({ id }) => id))
  const fresh = rows.filter(({ id }) => !known.has(id))
  for (const row of model.rows.filter(({ id }) => id === '')) {
    const index = fresh.findIndex(
      ({ text, at, session, tier }) =>
        text === row.text && at === row.at && session === row.session && tier === row.tier,
    )
    if (index < 0) throw new Error(`stored and not there: ${JSON.stringify(row)}`)
    row.id = fresh.splice(index, 1)[0]!.id
  }
  same('never stored, or gone, and yet there', fresh, [])
}
