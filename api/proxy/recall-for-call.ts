import { createHash } from 'node:crypto'
import type { ProxyCall } from '#api/proxy/proxy-call.ts'
import { disabledRecall, type RecallResult } from '#api/proxy/recall-result.ts'
import { recallForAside, recallWithTimeout } from '#api/proxy/recall-with-timeout.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'

/**
 * What memory gives a call: nothing where it may not be read, or the user says nothing; to an aside inside a
 * conversation what the turns before it had.
 */
export async function recallForCall(
  backend: ApiBackend,
  {
    caller,
    request,
    retrieves,
    contextBounds,
    asOf,
    filter,
    aside,
    session,
    space,
    turnId,
    toTurnId,
  }: ProxyCall,
): Promise<RecallResult> {
  const nothing = {
    ...disabledRecall,
    status: aside ? 'aside' : retrieves ? 'none' : 'off',
  } as const
  // Before `turns` and `earlierTurns`, which read every message: a call without memory pays for neither.
  if (!retrieves || !turnId || !request.userTurn) return nothing
  const { userTurn, turns, earlierTurns } = request
  const view = { asOf, filter }
  const recall = aside ? recallForAside : recallWithTimeout
  return recall(backend, caller, {
    turns,
    turn: userTurn,
    turnId: recallId(turnId, view),
    earlierTurns,
    toTurnId: fingerprint => recallId(toTurnId(fingerprint), view),
    session,
    space,
    bounds: contextBounds,
    asOf,
    filter,
  })
}

/**
 * Blocks of another moment or filter are of another recall: an earlier turn may have been told what came
 * later, or what the filter leaves out.
 */
export function recallId(
  turnId: Buffer,
  { asOf, filter }: Pick<ProxyCall, 'asOf' | 'filter'>,
): Buffer {
  if (asOf === undefined && !filter) return turnId
  const hash = createHash('sha256').update(turnId)
  if (asOf !== undefined) hash.update(`as of ${asOf}`)
  if (filter) hash.update(`filter ${JSON.stringify(filter)}`)
  return hash.digest()
}
