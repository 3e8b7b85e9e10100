import type { Context } from 'koa'
import { SwitchQuery } from '#api/contract/contract.ts'
import type { SwitchQuery as SwitchFields } from '#api/contract/generated/types.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { parseQuery } from '#api/edge/request.ts'
import { authenticateBodyUser, type ProxyCaller } from '#api/proxy/credentials.ts'
import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { readRequest, type ReadRequest } from '#api/proxy/read-request.ts'
import { setMemoryHeaders } from '#api/proxy/response-headers.ts'
import {
  bodySwitches,
  headerSwitches,
  isAnyAllowed,
  querySwitches,
  resolveMemoryAccess,
  type ChannelSwitches,
} from '#api/proxy/switches.ts'
import type { Caller } from '#shared/access/caller.ts'

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
