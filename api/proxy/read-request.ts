import type { Context } from 'koa'
import { admitBody } from '#api/edge/body-budget.ts'
import { readJsonBytes } from '#api/edge/body.ts'
import { readIdempotencyKey } from '#api/edge/idempotency-claim.ts'
import type { Dialect, ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import { emptyBody, emptyRequest } from '#api/proxy/empty-request.ts'
import { readJsonOrStream, type StreamedJson } from '#api/proxy/streamed-json.ts'
import {
  bodySwitches,
  isAnyAllowed,
  resolveMemoryAccess,
  resolveVerbatim,
  type ChannelSwitches,
} from '#api/proxy/switches.ts'
import type { Caller } from '#shared/access/caller.ts'
import { idempotencyKeyNotTaken } from '#shared/core/refusals.ts'

export type ReadRequest = {
  request: ProxyRequest
  /** The body as it came. */
  bytes: Buffer
  /** A body that was too long to be read; `request` is then empty. */
  unread: StreamedJson | undefined
}

/** Reads the body; of one over 20 MiB, which only a call without memory may have, the model alone. */
export async function readRequest(
  ctx: Context,
  { permissions, keyRow }: Caller,
  channels: readonly ChannelSwitches[],
  dialect: Dialect,
): Promise<ReadRequest> {
  const usesMemory = isAnyAllowed(resolveMemoryAccess(permissions, channels, keyRow.storage))
  const body = usesMemory ? await readJsonBytes(ctx) : await readJsonOrStream(ctx)
  if (Buffer.isBuffer(body)) {
    await admitBody(ctx, body.length)
    const request = await parseAndValidateBody(body, dialect)
    if (resolveVerbatim([...channels, bodySwitches(request.switches)], keyRow.storage))
      request.storeVerbatim()
    if (usesMemory && isLarge(body)) await request.readAhead()
    return { request, bytes: body, unread: undefined }
  }
  if (readIdempotencyKey(ctx) !== undefined) {
    await body.discard()
    throw idempotencyKeyNotTaken('with a body over 20 MiB')
  }
  return { request: { ...emptyRequest, model: body.model }, bytes: emptyBody, unread: body }
}

/** Large bodies are read in slices of the event loop: some 3 ms per MiB for each step. */
const isLarge = (bytes: Buffer): boolean => bytes.length >= 1024 * 1024

async function parseAndValidateBody(bytes: Buffer, dialect: Dialect): Promise<ProxyRequest> {
  const body = bytes.length > 0 ? bytes : emptyBody
  const request = isLarge(body) ? await dialect.parseInSlices(body) : dialect.parseRequest(body)
  dialect.bodyShape.check(request.typedFields)
  return request
}
