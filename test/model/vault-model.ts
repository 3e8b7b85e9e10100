import { contentHash } from '#shared/vault/base/memories.mongo.ts'
import { countTokens } from '#shared/core/tokens.ts'

/** A memory as the contract says it must be. */
export type Row = {
  /** Empty until the service has told it. */
  id: string
  tier: 1 | 2 | 3
  role: string
  text: string
  /** Epoch milliseconds. */
  at: number
  session: string | null
  importance: number | null
  consolidated: boolean
  /** For a reflection: its batch, what that was made of, and the time of it. */
  batch: string | null
  sources: string[]
  covers: { from: number; to: number } | null
  /** What an uploaded line was when it was uploaded, whatever it was edited to. */
  line: string | null
}

export type Batch = {
  id: string
  tier: 1 | 2
  sources: string[]
  covers: { from: number; to: number }
  state: 'lent' | 'over' | 'committed'
  created: string[]
  /** What its commit answered. */
  consolidated: number
}

/** A vault in memory: the simplest thing that does what the contract says. */
export type VaultModel = {
  rows: Row[]
  batches: Batch[]
  /** Batches of the vault before it was cleared: they lead nowhere. */
  voidBatches: string[]
  /** Ids that led to something once. */
  gone: string[]
}

export const emptyVault = (): VaultModel => ({ rows: [], batches: [], voidBatches: [], gone: [] })

export const rowOf = (row: Partial<Row> & Pick<Row, 'text' | 'at'>): Row => ({
  id: '',
  tier: 1,
  role: 'user',
  session: null,
  importance: null,
  consolidated: false,
  batch: null,
  sources: [],
  covers: null,
  line: null,
  ...row,
})

export const hashOf = (text: string): string => contentHash(text).toString('hex')

/** In the order of the event. */
export const byTime = (one: Pick<Row, 'at' | 'id'>, other: Pick<Row, 'at' | 'id'>): number =>
  one.at - other.at || (one.id < other.id ? -1 : 1)

export const coreOf = ({ rows }: VaultModel): Row[] =>
  rows.filter(({ session }) => session === null)

/** What waits for consolidation and is not lent, oldest first. */
export function waitingOf(model: VaultModel, tier: 1 | 2): Row[] {
  const lent = new Set(
    model.batches.filter(({ state }) => state === 'lent').flatMap(({ sources }) => sources),
  )
  return coreOf(model)
    .filter(row => row.tier === tier && !row.consolidated && !lent.has(row.id))
    .toSorted(byTime)
}

/** The batch that a checkout takes: whole memories up to a budget of tokens, at least one. */
export function batchOf(waiting: readonly Row[], budget: number): Row[] {
  const taken: Row[] = []
  let tokens = 0
  for (const row of waiting) {
    const next = countTokens(row.text)
    if (taken.length > 0 && tokens + next > budget) break
    taken.push(row)
    tokens += next
  }
  return taken
}

/** What a batch of these is about. */
export const spanOf = (rows: readonly Row[]): { from: number; to: number } => ({
  from: Math.min(...rows.map(({ covers, at }) => covers?.from ?? at)),
  to: Math.max(...rows.map(({ covers, at }) => covers?.to ?? at)),
})

/** Adds what a transfer copies. @returns how many of the source's memories were there already. */
export function copyRows(from: VaultModel, to: VaultModel): { copied: number; skipped: number } {
  const known = new Set(coreOf(to).map(({ text }) => hashOf(text)))
  const raw = coreOf(from)
    .filter(({ tier }) => tier === 1)
    .toSorted(byTime)
  const fresh = raw.filter(({ text }) => {
    const hash = hashOf(text)
    return !known.has(hash) && known.add(hash)
  })
  to.rows.push(...fresh.map(({ text, at, role }) => rowOf({ text, at, role })))
  return { copied: fresh.length, skipped: raw.length - fresh.length }
}

/** Adds the lines that the vault has not. @returns how many were new. */
export function uploadRows(
  model: VaultModel,
  session: string | null,
  lines: readonly { content: string; timestamp: number }[],
): number {
  let stored = 0
  for (const { content, timestamp } of lines) {
    const line = `${hashOf(content)} ${timestamp}`
    const known = model.rows.some(
      row =>
        row.session === session &&
        (row.line === line || (row.at === timestamp && hashOf(row.text) === hashOf(content))),
    )
    if (known) continue
    stored++
    model.rows.push(rowOf({ text: content, at: timestamp, session, line }))
  }
  return stored
}

/** Takes rows away; what was made of them stays, and what they were the last reflections of waits again. */
export function removeRows(model: VaultModel, isGone: (row: Row) => boolean): Row[] {
  const gone = model.rows.filter(isGone)
  model.rows = model.rows.filter(row => !isGone(row))
  model.gone.push(...gone.map(({ id }) => id))
  const emptied = gone.filter(
    ({ batch }) => batch !== null && !model.rows.some(row => row.batch === batch),
  )
  const released = new Set(emptied.flatMap(({ sources }) => sources))
  for (const row of model.rows) if (released.has(row.id)) row.consolidated = false
  return gone
}

/** The debt block that every answer shows. */
export function debtOf(model: VaultModel) {
  const waiting = coreOf(model).filter(({ consolidated }) => !consolidated)
  const raw = waiting.filter(({ tier }) => tier === 1)
  const tier2 = waiting.filter(({ tier }) => tier === 2)
  const tokens = (rows: Row[]): number => rows.reduce((sum, { text }) => sum + countTokens(text), 0)
  return {
    raw: { units: raw.length, est_tokens: tokens(raw) },
    tier2: {
      count: tier2.length,
      importance: tier2.reduce((sum, { importance }) => sum + (importance ?? 0), 0),
      est_tokens: tokens(tier2),
    },
  }
}

export type ListAsked = {
  tier?: 1 | 2 | 3
  sort: 'date' | 'importance'
  order: 'newest_first' | 'oldest_first'
  min_importance?: number
  /** Epoch milliseconds. */
  from?: number
  to?: number
  search?: string
}

/** Unrated rows stand last in both orders. */
const byImportance = (one: Row, other: Row, direction: number): number =>
  Number(!one.importance) - Number(!other.importance) ||
  direction * ((one.importance ?? 0) - (other.importance ?? 0))

/** A whole list, in its order. */
export function listOf(model: VaultModel, asked: ListAsked): Row[] {
  const { tier, sort, order, min_importance: least, from, to, search } = asked
  const direction = order === 'newest_first' ? -1 : 1
  return coreOf(model)
    .filter(
      row =>
        (tier === undefined || row.tier === tier) &&
        (least === undefined || (row.importance ?? 0) >= least) &&
        (from === undefined || row.at >= from) &&
        (to === undefined || row.at <= to) &&
        (search === undefined || row.text.toLowerCase().includes(search.toLowerCase())),
    )
    .toSorted(
      (one, other) =>
        (sort === 'importance' ? byImportance(one, other, direction) : 0) ||
        direction * byTime(one, other),
    )
}
