import { recallId } from '#api/proxy/recall-for-call.ts'
import type { ProxyCall } from '#api/proxy/proxy-call.ts'
import { degradedRecall, type RecallResult } from '#api/proxy/recall-result.ts'
import { saveTurn, withoutBlock } from '#api/proxy/stored-block.ts'
import type { Backend } from '#shared/backend.ts'

/**
 * The recall of a call whose prompt is too long with its blocks. The conversation goes on without them, so that
 * its next request is not refused as well and goes on from what the provider has cached of this one.
 */
export function dropBlocks(
  backend: Pick<Backend, 'recalledTurns' | 'log' | 'now'>,
  {
    caller,
    request,
    turnId,
    toTurnId,
    asOf,
    filter,
  }: Pick<ProxyCall, 'caller' | 'request' | 'turnId' | 'toTurnId' | 'asOf' | 'filter'>,
  { status, context, blockIndex, earlier, lost, persisted }: RecallResult,
): RecallResult {
  const { userTurn, earlierTurns } = request
  const view = { asOf, filter }
  const dropped = earlier.map(one => ({
    id: recallId(toTurnId(one.turn.fingerprint), view),
    place: one.blockIndex,
  }))
  if (context !== null && turnId) dropped.push({ id: recallId(turnId, view), place: blockIndex })
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
