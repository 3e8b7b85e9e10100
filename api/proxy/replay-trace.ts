import { conversationOf, sha256Of } from '#api/proxy/call-trace.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { ProxyRequest, RequestChange } from '#api/proxy/dialects/dialect.ts'
import { inPlace } from '#api/proxy/earlier-turns.ts'
import { Refusal } from '#shared/core/errors.ts'
import { blockOfLines } from '#shared/domain/context-block.ts'
import type { CallTrace, ModelCallTrace } from '#shared/vault/read/traces/call-trace.ts'
import type { ReadBlock, TracedLine } from '#shared/vault/read/traces/read-trace.ts'

/** What a call sent to its provider, rebuilt. */
export type CallReplay = {
  bytes: Buffer
  /** SHA-256 of the bytes, in hex. */
  sha256: string
  /** Whether they are those that were sent. */
  matches: boolean
  changed: string[]
  gone: string[]
  /** What of the user's last message was asked with. */
  words: string
}

/**
 * Rebuilds the bytes that a call sent, from the body of the client and the blocks as the vault has them now.
 *
 * @throws Refusal `invalid` for the trace of another call, and for a body that is not of this conversation.
 */
export async function replayCall(
  trace: CallTrace,
  blocks: readonly ReadBlock[],
  body: Buffer,
): Promise<CallReplay> {
  if (!isOfModelCall(trace)) {
    throw new Refusal(
      'invalid',
      'This trace is of a call without a model: nothing was sent to a provider',
      'GET /v1/traces?way=proxy lists the calls that can be replayed',
    )
  }
  const request = await dialects[trace.format].parseInSlices(body)
  await request.readAhead()
  if (!request.userTurn || conversationOf(request.userTurn) !== trace.conversation) {
    throw new Refusal(
      'invalid',
      'body is not that of the traced call',
      'Send the request body of that call unchanged, as one text',
    )
  }
  const bytes = request.serialize(changeOf(trace, blocks, request))
  const sha256 = await sha256Of(bytes)
  const idsIn = (state: TracedLine['state']): string[] =>
    blocks.flatMap(({ lines }) => lines.filter(one => one.state === state).map(({ id }) => id))
  return {
    bytes,
    sha256,
    matches: sha256 === trace.sentSha256,
    changed: [...new Set(idsIn('changed'))],
    gone: [...new Set(idsIn('gone'))],
    words: request.words,
  }
}

const isOfModelCall = (trace: CallTrace): trace is ModelCallTrace => trace.format !== undefined

function changeOf(
  { renamed }: ModelCallTrace,
  blocks: readonly ReadBlock[],
  { earlierTurns }: ProxyRequest,
): RequestChange {
  const contextOf = ({ block, lines }: ReadBlock): string =>
    inPlace(blockOfLines(lines.map(({ line }) => line)), block.place)
  const own = blocks.find(({ block }) => block.turn === null)
  return {
    model: renamed,
    ...(own && { context: contextOf(own), blockIndex: own.block.place }),
    earlier: blocks.flatMap(one => {
      const turn = one.block.turn === null ? undefined : earlierTurns[one.block.turn]
      return turn ? [{ turn, context: contextOf(one), blockIndex: one.block.place }] : []
    }),
  }
}
