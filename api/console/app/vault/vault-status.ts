import type { EndpointResponse } from '#api/client/client.ts'
import { call } from '#api/console/app/api-call.ts'

export type Debt = EndpointResponse<'POST /v1/memory/date-search'>['reflection']
export type TierCounts = { raw: number; tier2: number; tier3: number }

// A time with nothing in it: an empty answer bills nothing, and tells how the vault stands all the same.
const emptyRange = { from: '2200-01-01', to: '2200-01-01' }

/** What waits to be consolidated. */
export async function fetchDebt(signal: AbortSignal): Promise<Debt> {
  return (await call('POST /v1/memory/date-search', { body: emptyRange }, signal)).reflection
}

/** How much the core vault holds of each tier. */
export async function fetchTierCounts(signal: AbortSignal): Promise<TierCounts> {
  const { tier_counts } = await call(
    'GET /v1/memory/list',
    { query: { ...emptyRange, limit: 1 } },
    signal,
  )
  return tier_counts ?? { raw: 0, tier2: 0, tier3: 0 }
}
