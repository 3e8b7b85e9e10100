import type { EndpointResponse } from '#api/client/client.ts'
import { call } from '#api/console/app/api-call.ts'

export type Debt = EndpointResponse<'POST /v1/memory/date-search'>['reflection']
export type TierCounts = { raw: number; tier2: number; tier3: number }

// A range without memories: an empty response bills nothing, and still has the vault's status.
const emptyRange = { from: '2200-01-01', to: '2200-01-01' }

/** The reflection debt. */
export async function fetchDebt(signal: AbortSignal): Promise<Debt> {
  return (await call('POST /v1/memory/date-search', { body: emptyRange }, signal)).reflection
}

/** Number of memories in the core vault by tier. */
export async function fetchTierCounts(signal: AbortSignal): Promise<TierCounts> {
  const { tier_counts } = await call(
    'GET /v1/memory/list',
    { query: { ...emptyRange, limit: 1 } },
    signal,
  )
  return tier_counts ?? { raw: 0, tier2: 0, tier3: 0 }
}
