import type { Context } from 'koa'
import { ProfileQuery } from '#api/contract/generated/shapes.ts'
import type { SwitchQuery } from '#api/contract/generated/types.ts'
import type { BodySwitches } from '#api/proxy/dialects/dialect.ts'
import type { ContextBounds } from '#api/proxy/recall-with-timeout.ts'
import { Refusal } from '#shared/core/errors.ts'
import { parseAsOf } from '#shared/vault/read/search/as-of.ts'
import type { Density } from '#shared/vault/read/prepare/prepare.ts'
import type { StoredHalves } from '#shared/domain/turn/conversation.ts'
import type { StoragePolicy } from '#shared/domain/account-policies.ts'
import { permissionsByMode, type KeyMode, type Permissions } from '#shared/access/key.ts'
import { decodeHeader } from '#api/edge/request.ts'
import { tooManyFields } from '#shared/core/refusals.ts'
import {
  parseMetadata,
  parseMetadataFilter,
  parseMetadataObject,
  type Metadata,
  type MetadataFilter,
} from '#shared/domain/metadata.ts'
import { redactMetadata } from '#shared/privacy/apply-redaction.ts'
import type { Caller } from '#shared/access/caller.ts'

/** The memory switches of one channel of a request: its headers, its query or its body. */
export type ChannelSwitches = {
  /** False: no memory at all. */
  memory?: boolean | undefined
  mode?: KeyMode | undefined
  /** False: the user's messages are not stored. */
  store?: boolean | undefined
  /** False: the model's reply is not stored. */
  storeReply?: boolean | undefined
  /** True: the exchange is stored as it was sent, with what programs have written into it. */
  verbatim?: boolean | undefined
  /** False: nothing of the exchange is shared with the member's organization. */
  share?: boolean | undefined
  /** True: an aside is recalled for as a person's turn. */
  recallsAsides?: boolean | undefined
  /** How many memories at most, and by density. */
  contextLimit?: number | undefined
  density?: Density | undefined
}

/** The lowest of the bounds that the channels name. */
export function resolveContextBounds(channels: readonly ChannelSwitches[]): ContextBounds {
  const limits = channels.flatMap(({ contextLimit }) => contextLimit ?? [])
  const named = new Set(channels.map(({ density }) => density))
  return {
    limit: limits.length > 0 ? Math.min(...limits) : undefined,
    density: densities.find(density => named.has(density)),
  }
}

/** Ascending. */
const densities: readonly Density[] = ['low', 'default', 'high', 'xhigh']

/** What this call may do with memory. */
export type MemoryAccess = {
  retrieve: boolean
  store: boolean
  storeReply: boolean
}

export const noMemoryAccess: MemoryAccess = { retrieve: false, store: false, storeReply: false }

export const isAnyAllowed = (access: MemoryAccess): boolean => Object.values(access).some(Boolean)

/**
 * Combines the key's permissions with the switches of every channel. A switch only restricts: allowed is
 * what all of them allow, in any order and number; no channel overrides another. What the user says and what the
 * model replies have a switch each.
 *
 * @param responseWithInput the policy: the reply is stored only where what the user says is
 */
export function resolveMemoryAccess(
  permits: Permissions,
  channels: readonly ChannelSwitches[],
  { responseWithInput }: Pick<StoragePolicy, 'responseWithInput'>,
): MemoryAccess {
  const every = (allows: (switches: ChannelSwitches) => boolean): boolean => channels.every(allows)
  const mode = (switches: ChannelSwitches): Permissions =>
    permissionsByMode[switches.memory === false ? 'off' : (switches.mode ?? 'on')]
  const stores = permits.store && every(switches => mode(switches).store)
  const storesUser = every(({ store }) => store !== false)
  const storesReply = stores && every(({ storeReply }) => storeReply !== false)
  return {
    retrieve: permits.retrieve && every(switches => mode(switches).retrieve),
    store: stores && storesUser,
    storeReply: storesReply && (storesUser || !responseWithInput),
  }
}

/** Whether the exchange is stored as it was sent: any channel, or the policy, says so. */
export const resolveVerbatim = (
  channels: readonly ChannelSwitches[],
  policy: Pick<StoragePolicy, 'verbatim'>,
): boolean => policy.verbatim || channels.some(({ verbatim }) => verbatim === true)

/** Which halves of an ingested exchange are stored: what headers and body allow. */
export function resolveStoredHalves(
  ctx: Context,
  body: { memory_store?: boolean | undefined; memory_store_response?: boolean | undefined },
  { responseWithInput }: StoragePolicy,
): StoredHalves {
  const store = parseEnumHeader(ctx, 'X-Memory-Store', booleans)
  const storeReply = parseEnumHeader(ctx, 'X-Memory-Store-Response', booleans)
  return {
    input: store !== false && body.memory_store !== false,
    response: storeReply !== false && body.memory_store_response !== false,
    responseWithInput,
  }
}

/** Returns whether an exchange may be shared with the member's organization: not when any channel says no. */
export const resolveShares = (channels: readonly ChannelSwitches[]): boolean =>
  channels.every(({ share }) => share !== false)

/** The header `X-Memory-Share`. @throws Refusal `invalid` for anything but true or false. */
export const parseShareHeader = (ctx: Context): boolean | undefined =>
  parseEnumHeader(ctx, 'X-Memory-Share', booleans)

/** @throws Refusal `invalid` for a value that is not listed. */
export const headerSwitches = (ctx: Context): ChannelSwitches => ({
  mode: parseEnumHeader(ctx, 'X-Memory-Mode', modes),
  store: parseEnumHeader(ctx, 'X-Memory-Store', booleans),
  storeReply: parseEnumHeader(ctx, 'X-Memory-Store-Response', booleans),
  verbatim: parseEnumHeader(ctx, 'X-Memory-Verbatim', booleans),
  share: parseShareHeader(ctx),
  recallsAsides: parseEnumHeader(ctx, 'X-Memory-Asides', { none: false, recall: true }),
  contextLimit: parseLimitHeader(ctx),
  density: parseEnumHeader(
    ctx,
    'X-Memory-Density',
    Object.fromEntries(densities.map(density => [density, density])),
  ),
})

const contextLimitMax = 500

function parseLimitHeader(ctx: Context): number | undefined {
  const value = ctx.get('X-Memory-Context-Limit').trim()
  if (value === '') return undefined
  const limit = /^\d{1,3}$/.test(value) ? Number(value) : 0
  if (limit >= 1 && limit <= contextLimitMax) return limit
  throw new Refusal(
    'invalid',
    `X-Memory-Context-Limit must be a whole number from 1 to ${contextLimitMax}`,
    'It is how many memories a call is told at most; leave it out for the usual 30',
  )
}

/** A hundred years. */
const ttlMax = 3_153_600_000

/**
 * The header `X-Memory-TTL`: the lifetime, in seconds, of what a call stores; undefined without it.
 *
 * @throws Refusal `invalid` for anything but a whole number from 1 to 100 years.
 */
export function parseTtlHeader(ctx: Context): number | undefined {
  const value = ctx.get('X-Memory-TTL').trim()
  if (value === '') return undefined
  const seconds = /^\d{1,10}$/.test(value) ? Number(value) : 0
  if (seconds >= 1 && seconds <= ttlMax) return seconds
  throw new Refusal(
    'invalid',
    `X-Memory-TTL must be a whole number of seconds from 1 to ${ttlMax}`,
    'Leave it out to keep what is said',
  )
}

/**
 * The header `X-Memory-As-Of`: the last millisecond of the moment whose memories a call gets; undefined
 * without it.
 *
 * @throws Refusal `invalid` for anything but a day, a time in ISO 8601 or milliseconds since 1970.
 */
export function parseAsOfHeader(ctx: Context): number | undefined {
  const value = ctx.get('X-Memory-As-Of').trim()
  if (value === '') return undefined
  try {
    return parseAsOf(ProfileQuery.check({ as_of: value }).as_of)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new Refusal(
      'invalid',
      'X-Memory-As-Of must be a day, a time in ISO 8601 or milliseconds since 1970',
      'Send for example 2026-11-20, 2026-11-20T15:15:00Z or 1795187700000, or leave it out',
    )
  }
}

const modes = { on: 'on', off: 'off', read: 'read', write: 'write' } as const
const booleans = { true: true, false: false } as const

function parseEnumHeader<Value>(
  ctx: Context,
  header: string,
  choices: Record<string, Value>,
): Value | undefined {
  const value = ctx.get(header).trim().toLowerCase()
  if (value === '') return undefined
  if (Object.hasOwn(choices, value)) return choices[value]
  throw new Refusal(
    'invalid',
    `${header} must be one of ${Object.keys(choices).join(', ')}`,
    'Leave it out for the usual: memory is read and written',
  )
}

export const querySwitches = ({ memory, mode, store }: SwitchQuery): ChannelSwitches => ({
  memory: memory === undefined ? undefined : memory === 'on',
  mode,
  store,
})

export const bodySwitches = (body: BodySwitches): ChannelSwitches => ({
  memory: body.memory,
  mode: body.memory_mode,
  store: body.memory_store,
  storeReply: body.memory_store_response,
  verbatim: body.memory_verbatim,
  share: body.memory_share,
  contextLimit: body.context_limit,
  density: body.density,
})

export type CallMetadata = {
  /** Fields of every memory of the exchange, as they may be stored. */
  metadata: Metadata | undefined
  /** The model gets only memories with such metadata. */
  filter: MetadataFilter | undefined
}

/**
 * The headers `X-Memory-Metadata` and `X-Memory-Filter`: JSON in UTF-8, or in Latin-1.
 *
 * @throws Refusal `invalid` for anything but such metadata, and for metadata that the redaction policy of
 *   the key blocks.
 */
export function parseMetadataHeaders(
  ctx: Context,
  { keyRow }: Pick<Caller, 'keyRow'>,
): CallMetadata {
  const metadata = parseMetadata(readObject(ctx, metadataHeader), metadataHeader)
  const filter = parseMetadataFilter(readObject(ctx, filterHeader), filterHeader)
  return { metadata: redactMetadata(keyRow.redaction ?? null, metadata), filter }
}

const metadataHeader = 'X-Memory-Metadata'
const filterHeader = 'X-Memory-Filter'
/** Characters; Node takes 16 KiB of headers in all. */
const lengthMax = 8192

function readObject(ctx: Context, name: string): Record<string, unknown> | undefined {
  const text = decodeHeader(ctx.get(name)).trim()
  if (text === '') return undefined
  if (text.length <= lengthMax) return parseMetadataObject(text, name)
  throw tooManyFields(`${name} has more than ${lengthMax} characters`)
}
