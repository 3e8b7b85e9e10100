import type { Context } from 'koa'
import { bodyShareOf } from '#api/edge/body-budget.ts'
import { BodyBytes, collectBody } from '#api/edge/body-stream.ts'
import { bodyLimits, streamJsonBytes } from '#api/edge/body.ts'
import {
  createStreamedBody,
  limitBytes,
  uploadBytesMax,
  type StreamedBody,
  type StreamedBodyParts,
} from '#api/proxy/streamed-body.ts'
import {
  createNameMatcher,
  forEachMember,
  kindAt,
  parseValue,
  skipByteOrderMark,
  valueEnd,
} from '#shared/core/json-walk.ts'
import { invalidJson } from '#shared/core/refusals.ts'

/**
 * Reads a JSON body; of one over 20 MiB only the beginning, for the model that it names.
 *
 * @throws Refusal `unsupported` as `readJsonBytes`; `invalid` when the model it names is no JSON; `too-large`
 *   beyond 512 MiB, also while it is sent
 */
export async function readJsonOrStream(ctx: Context): Promise<Buffer | StreamedBody> {
  const { chunks: source, byteLength } = streamJsonBytes(ctx)
  const share = bodyShareOf(ctx)
  let length = 0
  const count = (chunk: Uint8Array): void => share.hold((length += chunk.length))
  if (byteLength !== undefined && byteLength <= bodyLimits.large)
    return collectBody(ctx, count, share.dropped)
  const chunks = limitBytes(source, byteLength, uploadBytesMax)
  const parts = new BodyBytes()
  while (length <= bodyLimits.large) {
    const { done, value } = await chunks.next()
    if (done) return parts.toBuffer()
    parts.push(value)
    count(value)
  }
  const head = parts.toBuffer()
  try {
    const model = findModel(head)
    return createStreamedBody({ head, model, write: JSON.stringify, chunks, byteLength, share })
  } catch {
    await chunks.return(undefined)
    throw invalidJson()
  }
}

const matchModel = createNameMatcher(['model'])

/**
 * Finds the first `model` that is a text in the beginning of a JSON object, whose grammar has not been checked.
 *
 * @throws SyntaxError when that is no JSON
 */
function findModel(head: Buffer): StreamedBodyParts['model'] {
  const start = skipByteOrderMark(head)
  let model: StreamedBodyParts['model']
  if (kindAt(head, start) !== 'object') return undefined
  forEachMember(head, start, (name, nameEnd, at) => {
    const end = valueEnd(head, at)
    if (end > head.length || !matchModel(head, name, nameEnd) || kindAt(head, at) !== 'string')
      return end
    model = { name: parseValue(head, at, end) as string, at, end }
    return head.length
  })
  return model
}
