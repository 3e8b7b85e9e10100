import type { EndpointResponse } from '#api/client/client.ts'
import { call } from '#api/console/app/api-call.ts'

export type Debt = EndpointResponse<'POST /v1/memory/date-search'>['reflection']

// A range without memories: an empty response bills nothing, and still has the vault's status.
const emptyRange = { from: '2200-01-01', to: '2200-01-01' }

/** The reflection debt. */
export async function fetchDebt(signal: AbortSignal): Promise<Debt> {
  return (await call('POST /v1/memory/date-search', { body: emptyRange }, signal)).reflection
}
