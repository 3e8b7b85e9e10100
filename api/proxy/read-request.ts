import type { Context } from 'koa'
import { admitBody } from '#api/edge/body-budget.ts'
import { readJsonBytes } from '#api/edge/body.ts'
import { readIdempotencyKey } from '#api/edge/idempotency-claim.ts'
import type { Dialect, ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import { readJsonOrStream, type StreamedJson } from '#api/proxy/streamed-json.ts'
import {
  bodySwitches,
  isAnyAllowed,
  resolveMemoryAccess,
  resolveVerbatim,
  type ChannelSwitches,
  headerSwitches,
  querySwitches,
} from '#api/proxy/switches.ts'
import type { Caller } from '#shared/access/caller.ts'
import { idempotencyKeyNotTaken } from '#shared/core/refusals.ts'
import { SwitchQuery } from '#api/contract/contract.ts'
import type { SwitchQuery as SwitchFields } from '#api/contract/generated/types.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { parseQuery } from '#api/edge/request.ts'
import { authenticateBodyUser, type ProxyCaller } from '#api/proxy/credentials.ts'
import { setMemoryHeaders } from '#api/proxy/response-headers.ts'

type ReadRequest = {
  request: ProxyRequest
  /** The body as it came. */
  bytes: Buffer
  /** A body that was too long to be read; `request` is then empty. */
  unread: StreamedJson | undefined
}

/** Reads the body; of one over 20 MiB, which only a call without memory may have, the model alone. */
async function readRequest(
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

/** As in all endpoints, an empty body counts as an empty object. */
const emptyBody = Buffer.from('{}')

/** What is read of a request that only passes through. */
const emptyRequest: ProxyRequest = {
  model: undefined,
  stream: false,
  switches: {},
  typedFields: {},
  turns: [],
  newMessages: [],
  aside: undefined,
  isFirst: false,
  leftOut: [],
  words: '',
  userTurn: undefined,
  earlierTurns: [],
  storeVerbatim: () => {},
  readAhead: async () => {},
  forgetTexts: () => {},
  serialize: () => emptyBody,
  splicesOf: () => ({ inserted: [], removed: [], receivedBytes: 0 }),
  reusableBytes: () => 0,
}

/** A model request, its switches and its caller. */
type CallerRequest = ReadRequest & {
  query: SwitchFields
  /** Of headers, query and body, in that order. */
  switches: ChannelSwitches[]
  /** The user that the request names, else the owner of its key. */
  caller: Caller
}

/** Reads the body, and finds the caller that it may name. */
export async function readCallerRequest(
  ctx: Context,
  backend: ApiBackend,
  authenticated: ProxyCaller,
  dialect: Dialect,
): Promise<CallerRequest> {
  const query = parseQuery(ctx, SwitchQuery)
  const channels = [headerSwitches(ctx), querySwitches(query)]
  const read = await readRequest(ctx, authenticated.caller, channels, dialect)
  const switches = [...channels, bodySwitches(read.request.switches)]
  const { memory_user } = read.request.switches
  const keyCaller = await callerWithRights(ctx, authenticated, switches, memory_user)
  const caller = await authenticateBodyUser(ctx, backend, keyCaller, memory_user)
  return { ...read, query, switches, caller }
}

/** The caller as it is now, when any memory may be used, or a user is named. */
async function callerWithRights(
  ctx: Context,
  { caller, verify }: ProxyCaller,
  switches: readonly ChannelSwitches[],
  memoryUser: string | undefined,
): Promise<Caller> {
  const access = resolveMemoryAccess(caller.permissions, switches, caller.keyRow.storage)
  if (memoryUser === undefined && !isAnyAllowed(access)) return caller
  const verified = await verify()
  if (verified !== caller) setMemoryHeaders(ctx, verified)
  return verified
}
