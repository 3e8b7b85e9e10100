import { createHash } from 'node:crypto'
import type { MemoryUse, ProxyCall } from '#api/proxy/proxy-call.ts'
import { disabledRecall, type RecallResult, degradedRecall } from '#api/proxy/recall-result.ts'
import { recallForAside, recallWithTimeout } from '#api/proxy/recall-with-timeout.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import type { Backend } from '#shared/backend.ts'
import { saveTurn, withoutBlock } from '#api/proxy/recall-earlier-turns.ts'

/**
 * What memory gives a call: nothing where it may not be read, or the user says nothing; to an aside inside a
 * conversation what the turns before it had.
 */
export async function recallForCall(
  backend: ApiBackend,
  { caller, request, memoryUse }: ProxyCall,
): Promise<RecallResult> {
  const { retrieves, aside, turnId, toTurnId, session, space } = memoryUse
  const { contextBounds: bounds, asOf, filter } = memoryUse
  const nothing = {
    ...disabledRecall,
    status: aside ? 'aside' : retrieves ? 'none' : 'off',
  } as const
  // Before `turns` and `earlierTurns`, which read every message: a call without memory pays for neither.
  if (!retrieves || !turnId || !request.userTurn) return nothing
  const { userTurn, turns, earlierTurns } = request
  const recall = aside ? recallForAside : recallWithTimeout
  return recall(backend, caller, {
    turns,
    turn: userTurn,
    turnId: recallId(turnId, memoryUse),
    earlierTurns,
    toTurnId: fingerprint => recallId(toTurnId(fingerprint), memoryUse),
    session,
    space,
    bounds,
    asOf,
    filter,
  })
}

/**
 * Blocks of another moment or filter are of another recall: an earlier turn may have a block with what came
 * later, or what the filter leaves out.
 */
function recallId(turnId: Buffer, { asOf, filter }: Pick<MemoryUse, 'asOf' | 'filter'>): Buffer {
  if (asOf === undefined && !filter) return turnId
  const hash = createHash('sha256').update(turnId)
  if (asOf !== undefined) hash.update(`as of ${asOf}`)
  if (filter) hash.update(`filter ${JSON.stringify(filter)}`)
  return hash.digest()
}

/**
 * The recall of a call whose prompt is too long with its blocks. The conversation goes on without them, so that
 * its next request is not refused as well and goes on from what the provider has cached of this one.
 */
export function dropBlocks(
  backend: Pick<Backend, 'recalledTurns' | 'log' | 'now'>,
  { caller, request, memoryUse }: Pick<ProxyCall, 'caller' | 'request' | 'memoryUse'>,
  { status, context, blockIndex, earlier, lost, persisted }: RecallResult,
): RecallResult {
  const { userTurn, earlierTurns } = request
  const { turnId, toTurnId } = memoryUse
  const dropped = earlier.map(one => ({
    id: recallId(toTurnId(one.turn.fingerprint), memoryUse),
    place: one.blockIndex,
  }))
  if (context !== null && turnId)
    dropped.push({ id: recallId(turnId, memoryUse), place: blockIndex })
  const { vault } = caller.scope
  const save = ({ id, place }: (typeof dropped)[number]): Promise<void> =>
    saveTurn(backend, caller, { vault, turn: id }, withoutBlock(backend.now(), place))
  const lostEarlier = earlierTurns.find(turn => turn === lost || turn === earlier[0]?.turn)
  const isOwnLost = context !== null && userTurn?.isToolContinuation
  return {
    ...degradedRecall,
    ...(status === 'aside' && { status }),
    lost: lostEarlier ?? (isOwnLost ? userTurn : lost),
    persisted: persisted.then(() => Promise.all(dropped.map(save))).then(() => {}),
  }
}
