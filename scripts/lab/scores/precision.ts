import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { VaultClient } from '#api/client/client.ts'
import { repeat, uploadWhole, withVault } from '#scripts/lab/scores/measure.ts'
import type { ServiceConnection } from '#scripts/service-connection.ts'

/** A belief of PrecisionMemBench (`fixtures/beliefs.seed.json`). */
type Belief = {
  _id: string
  user_id: string
  type: string
  canonical_name: string
  aliases?: string[]
  content: string
  why_it_matters?: string
  scope: string[]
  pinned?: boolean
  superseded_by?: string | null
  resolved_at?: string | null
  participants?: string[]
}

/** A case of it (`fixtures/retrieval.cases.json`). */
type Case = {
  userId?: string
  scope: string[]
  query: string
  budget?: { maxBeliefs?: number }
  expect: {
    relevantBeliefs?: {
      mustInclude?: string[]
      mustExclude?: string[]
      shouldInclude?: string[]
      shouldOnlyInclude?: string[]
      orderedBefore?: [string, string][]
      maxCount?: number
      minCount?: number
    }
  }
}

export type PrecisionOutcome = {
  /** Null where nothing is expected and nothing was found. */
  precision: number | null
  recall: number | null
  passed: boolean
  searchMs: number
}

const userDefault = 'test-user'
const beliefsMax = 20

/** Asks the cases of a folder of PrecisionMemBench, as its harness asks a service by HTTP. */
export async function measurePrecision(
  connection: ServiceConnection,
  folder: string,
): Promise<PrecisionOutcome[]> {
  const read = <Rows>(name: string): Rows =>
    JSON.parse(readFileSync(join(folder, 'fixtures', name), 'utf8')) as Rows
  const beliefs = read<Belief[]>('beliefs.seed.json')
  const cases = read<Case[]>('retrieval.cases.json')
  const outcomes: PrecisionOutcome[] = []
  for (const user of new Set(cases.map(({ userId = userDefault }) => userId))) {
    await withVault(connection, async vault => {
      const own = beliefs.filter(belief => belief.user_id === user)
      if (own.length > 0) await uploadWhole(vault, own.map(toLine).join('\n'))
      for (const one of cases.filter(({ userId = userDefault }) => userId === user)) {
        outcomes.push(await askCase(vault, own, one))
      }
    })
  }
  return outcomes
}

/** The harness stores name, aliases, content and reason as one text, with the first scope. */
function toLine(belief: Belief): string {
  const { canonical_name: name, aliases = [], content, why_it_matters: reason } = belief
  return JSON.stringify({
    content: [name, ...aliases, content, reason].filter(Boolean).join(' '),
    metadata: { belief: belief._id, scope: belief.scope[0] },
  })
}

async function askCase(
  vault: VaultClient,
  beliefs: readonly Belief[],
  { query, scope, budget = {}, expect }: Case,
): Promise<PrecisionOutcome> {
  const max = budget.maxBeliefs ?? beliefsMax
  const isInScope = (belief: Belief): boolean => belief.scope.some(name => scope.includes(name))
  const isPinned = (belief: Belief): boolean =>
    belief.pinned === true &&
    belief.type !== 'open_question' &&
    !belief.superseded_by &&
    !belief.resolved_at
  const pinned = beliefs.filter(one => isPinned(one) && isInScope(one)).map(({ _id }) => _id)
  let searchMs = 0
  const found: string[] = []
  if (query.trim() !== '' && max > 0) {
    const metadata = scope[0] === undefined ? {} : { metadata: { scope: scope[0] } }
    const { memories } = await repeat(() => {
      const start = performance.now()
      const body = { query, limit: max, ...metadata }
      const answer = vault.call('POST /v1/memory/search', { body })
      return answer.finally(() => (searchMs = performance.now() - start))
    })
    for (const memory of memories) found.push(String(memory.metadata?.belief))
  }
  const byId = new Map(beliefs.map(belief => [belief._id, belief]))
  const hits = [...new Set(found)].filter(id => !pinned.includes(id))
  const joined = hits.flatMap(id => {
    const belief = byId.get(id)
    return belief?.type === 'relation' ? (belief.participants ?? []) : []
  })
  const expanded = joined.filter(
    id => !hits.includes(id) && !pinned.includes(id) && byId.has(id) && isInScope(byId.get(id)!),
  )
  const shownPinned = pinned.slice(0, max)
  const relevant = [...new Set([...hits, ...expanded])].slice(
    0,
    Math.max(0, max - shownPinned.length),
  )
  return { ...judge(relevant, shownPinned, beliefs, expect.relevantBeliefs ?? {}), searchMs }
}

function judge(
  relevant: readonly string[],
  pinned: readonly string[],
  beliefs: readonly Belief[],
  wanted: NonNullable<Case['expect']['relevantBeliefs']>,
): Omit<PrecisionOutcome, 'searchMs'> {
  const union = new Set([...pinned, ...relevant])
  const { shouldOnlyInclude: only, mustInclude = [], mustExclude = [], shouldInclude = [] } = wanted
  const isBefore = ([first, second]: [string, string]): boolean =>
    relevant.includes(first) && relevant.indexOf(first) < relevant.indexOf(second)
  const passed =
    [...mustInclude, ...shouldInclude].every(id => union.has(id)) &&
    !mustExclude.some(id => union.has(id)) &&
    (!only ||
      (only.every(id => relevant.includes(id)) && relevant.every(id => only.includes(id)))) &&
    relevant.length <= (wanted.maxCount ?? Infinity) &&
    relevant.length >= (wanted.minCount ?? 0) &&
    (wanted.orderedBefore ?? []).every(isBefore)
  const everPinned = new Set(beliefs.flatMap(one => (one.pinned === true ? one._id : [])))
  const expected = [...new Set(only ?? mustInclude.filter(id => !everPinned.has(id)))]
  const right = expected.filter(id => relevant.includes(id)).length
  return {
    precision: relevant.length > 0 ? right / relevant.length : expected.length === 0 ? null : 0,
    recall: expected.length === 0 ? null : right / expected.length,
    passed,
  }
}
