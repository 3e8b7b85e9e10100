import type { IncomingHttpHeaders } from 'node:http'
import { ProfileQuery } from '#api/contract/generated/shapes.ts'
import type { CallSwitchesQuery } from '#api/contract/generated/types.ts'
import { parseFilterHeader } from '#api/edge/memory-filter.ts'
import { decodeHeader } from '#api/edge/request.ts'
import type { BodySwitches, ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import type { Caller } from '#shared/access/caller.ts'
import { permissionsByMode, type KeyMode, type Permissions } from '#shared/access/key.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { tooManyFields } from '#shared/core/refusals.ts'
import type { StoragePolicy } from '#shared/domain/account-policies.ts'
import type { Condition } from '#shared/domain/condition.ts'
import { parseMetadata, parseMetadataObject, type Metadata } from '#shared/domain/metadata.ts'
import type { StoredHalves } from '#shared/domain/turn/conversation.ts'
import { redactMetadata } from '#shared/privacy/apply-redaction.ts'
import type { Density } from '#shared/vault/read/prepare/prepare.ts'
import { parseAsOf } from '#shared/vault/read/search/as-of.ts'

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
  /** True: a question to memory without an answer is told so. */
  tellsAbsence?: boolean | undefined
  /** False: nothing of the exchange is shared with the member's organization. */
  share?: boolean | undefined
  /** True: an aside is recalled for as a person's turn. */
  recallsAsides?: boolean | undefined
  /** How many memories at most, and by density. */
  contextLimit?: number | undefined
  density?: Density | undefined
}

const storeSwitches = (headers: IncomingHttpHeaders): ChannelSwitches => ({
  mode: parseEnum(headers, 'X-Memory-Mode', modes),
  store: parseEnum(headers, 'X-Memory-Store', booleans),
  storeReply: parseEnum(headers, 'X-Memory-Store-Response', booleans),
  tellsAbsence: parseEnum(headers, 'X-Memory-Tell-Absence', booleans),
})

/** @throws Refusal `invalid` for a value that is not listed. */
export const headerSwitches = (headers: IncomingHttpHeaders): ChannelSwitches => ({
  ...storeSwitches(headers),
  verbatim: parseEnum(headers, 'X-Memory-Verbatim', booleans),
  share: parseShareHeader(headers),
  recallsAsides: parseEnum(headers, 'X-Memory-Asides', { none: false, recall: true }),
  contextLimit: parseWhole(headers, 'X-Memory-Context-Limit', {
    max: 500,
    of: '',
    hint: 'It is how many memories a call is told at most; leave it out for the usual 30',
  }),
  density: parseEnum(headers, 'X-Memory-Density', densities),
})

export const querySwitches = ({
  memory,
  mode,
  store,
  store_response: storeReply,
}: CallSwitchesQuery): ChannelSwitches => ({
  memory: memory === undefined ? undefined : memory === 'on' || memory === 'true',
  mode,
  store,
  storeReply,
})

/**
 * The switches of `ingest` and `prepare`, by which no model is called.
 *
 * @throws Refusal `invalid` for the value of a header that is not listed.
 */
export const callSwitches = (
  headers: IncomingHttpHeaders,
  query: CallSwitchesQuery,
  body: BodySwitches,
): ChannelSwitches[] => [
  storeSwitches(headers),
  querySwitches(query),
  { mode: query.memory_mode },
  ...bodySwitches(body),
]

/** What a key may do with memory, narrowed by switches. */
export const narrowPermissions = (
  permits: Permissions,
  channels: readonly ChannelSwitches[],
): Permissions =>
  channels.reduce(({ retrieve, store }, { memory, mode = 'on' }) => {
    const allowed = permissionsByMode[memory === false ? 'off' : mode]
    return { retrieve: retrieve && allowed.retrieve, store: store && allowed.store }
  }, permits)

export const bodySwitches = (body: BodySwitches): ChannelSwitches[] => [
  {
    memory: body.memory,
    mode: body.memory_mode,
    store: body.memory_store,
    storeReply: body.memory_store_response,
    verbatim: body.memory_verbatim,
    tellsAbsence: body.memory_tell_absence,
    share: body.memory_share,
    contextLimit: body.context_limit,
    density: body.density,
  },
  { store: body.store, storeReply: body.store_response },
]

/** What this call may do with memory. */
export type MemoryAccess = { retrieve: boolean; store: boolean; storeReply: boolean }

export const noMemoryAccess: MemoryAccess = { retrieve: false, store: false, storeReply: false }

export const isAnyAllowed = ({ retrieve, store, storeReply }: MemoryAccess): boolean =>
  retrieve || store || storeReply

/**
 * Combines the key's permissions with the switches of every channel. A switch only restricts: allowed is what all of
 * them allow, in any order and number; no channel overrides another. What the user says and what the model replies
 * have a switch each.
 *
 * @param responseWithInput the policy: the reply is stored only where what the user says is
 */
export function resolveMemoryAccess(
  permits: Permissions,
  channels: readonly ChannelSwitches[],
  { responseWithInput }: Pick<StoragePolicy, 'responseWithInput'>,
): MemoryAccess {
  const { retrieve, store: stores } = narrowPermissions(permits, channels)
  const storesUser = channels.every(({ store }) => store !== false)
  const storesReply = channels.every(({ storeReply }) => storeReply !== false)
  return {
    retrieve,
    store: stores && storesUser,
    storeReply: stores && storesReply && (storesUser || !responseWithInput),
  }
}

/** Whether the exchange is stored as it was sent: any channel, or the policy, asks for it. */
export const resolveVerbatim = (
  channels: readonly ChannelSwitches[],
  policy: Pick<StoragePolicy, 'verbatim'>,
): boolean => policy.verbatim || channels.some(({ verbatim }) => verbatim === true)

/** Whether a question to memory without an answer is told so: a channel or the policy asks for it, and no channel forbids it. */
export const resolveTellsAbsence = (
  channels: readonly ChannelSwitches[],
  policy: Pick<StoragePolicy, 'tellAbsence'>,
): boolean =>
  channels.every(({ tellsAbsence }) => tellsAbsence !== false) &&
  (policy.tellAbsence || channels.some(({ tellsAbsence }) => tellsAbsence))

/** Whether an exchange may be shared with the member's organization: not when any channel forbids it. */
export const resolveShares = (channels: readonly ChannelSwitches[]): boolean =>
  channels.every(({ share }) => share !== false)

/** How many memories a block may have; undefined for the default. */
export type ContextBounds = { density: Density | undefined; limit: number | undefined }

/** The lowest of the bounds that the channels name. */
export function resolveContextBounds(channels: readonly ChannelSwitches[]): ContextBounds {
  const limit = Math.min(...channels.map(({ contextLimit = Infinity }) => contextLimit))
  return {
    limit: limit === Infinity ? undefined : limit,
    density: allDensities.find(one => channels.some(({ density }) => density === one)),
  }
}

/** Which halves of an ingested exchange are stored: what all channels allow. */
export const resolveStoredHalves = (
  channels: readonly ChannelSwitches[],
  { responseWithInput }: StoragePolicy,
): StoredHalves => ({
  input: channels.every(({ store }) => store !== false),
  response: channels.every(({ storeReply }) => storeReply !== false),
  responseWithInput,
})

/** The header `X-Memory-Share`. @throws Refusal `invalid` for anything but true or false. */
export const parseShareHeader = (headers: IncomingHttpHeaders): boolean | undefined =>
  parseEnum(headers, 'X-Memory-Share', booleans)

/** The shortest lifetime, in seconds, that header, query and body name; undefined without one. */
export function resolveTtl(
  headers: IncomingHttpHeaders,
  query: Pick<CallSwitchesQuery, 'ttl'>,
  body: Pick<BodySwitches, 'ttl' | 'memory_ttl'>,
): number | undefined {
  const named = [parseTtlHeader(headers), query.ttl, body.ttl, body.memory_ttl].filter(
    ttl => ttl !== undefined,
  )
  return named.length > 0 ? Math.min(...named) : undefined
}

const parseTtlHeader = (headers: IncomingHttpHeaders): number | undefined =>
  parseWhole(headers, 'X-Memory-TTL', {
    // A hundred years.
    max: 3_153_600_000,
    of: ' of seconds',
    hint: 'Leave it out to keep what is said',
  })

/**
 * The header `X-Memory-As-Of`: the last millisecond of the moment whose memories a call gets; undefined without it.
 *
 * @throws Refusal `invalid` for anything but a day, a time in ISO 8601 or milliseconds since 1970.
 */
export function parseAsOfHeader(headers: IncomingHttpHeaders): number | undefined {
  const value = textOf(headers, 'X-Memory-As-Of')
  if (value === '') return undefined
  try {
    return parseAsOf(ProfileQuery.check({ as_of: value }).as_of)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw refusal('invalid', 'badAsOf')
  }
}

export type CallMetadata = {
  /** Fields of every memory of the exchange, as they may be stored. */
  metadata: Metadata | undefined
  /** The model gets only memories that meet it. */
  filter: Condition | undefined
}

/**
 * The headers `X-Memory-Metadata` and `X-Memory-Filter`: JSON in UTF-8, or in Latin-1.
 *
 * @throws Refusal `invalid` for anything but such metadata, and for metadata that the redaction policy of the key
 *   blocks.
 */
export function parseMetadataHeaders(
  headers: IncomingHttpHeaders,
  { keyRow }: Pick<Caller, 'keyRow'>,
): CallMetadata {
  const [forAll, wanted] = ['X-Memory-Metadata', 'X-Memory-Filter'] as const
  const metadata = parseMetadata(parseObject(headers, forAll), forAll)
  const filter = parseFilterHeader(parseObject(headers, wanted), wanted)
  return { metadata: redactMetadata(keyRow.redaction ?? null, metadata), filter }
}

/**
 * Headers by which programs mark a call that no person makes, and the values that mark one: Claude Code its subagents
 * and kinds of request, Codex its subagents, reviews, compactions and memories, opencode its subagents.
 */
const asideHeaders: readonly [name: string, values: RegExp][] = [
  ['X-Claude-Code-Agent-Id', /./],
  ['X-Claude-Code-Request-Class', /^(?:subagent|workflow|compaction|auxiliary)$/i],
  ['X-OpenAI-Subagent', /^(?!(?:0|false)$)./i],
  ['X-OpenAI-Memgen-Request', /^true$/i],
  ['X-Parent-Session-Id', /./],
]

/** A summary that the conversation goes on from: it has the prompt of the conversation. */
const compaction = /^compact(?:ion)?$/i

/**
 * How a program marks a call that it makes for itself. A model wrote the prompt of a subagent, and gets its answer.
 */
export function asideOfHeaders(headers: IncomingHttpHeaders): ProxyRequest['aside'] {
  const marks = asideHeaders.flatMap(([name, values]) => {
    const value = textOf(headers, name)
    return values.test(value) ? [value] : []
  })
  if (marks.length === 0) return undefined
  return marks.every(value => compaction.test(value)) ? 'inside' : 'apart'
}

const modes = { on: 'on', off: 'off', read: 'read', write: 'write' } as const
const booleans = { true: true, false: false } as const
/** Ascending. */
const densities = { low: 'low', default: 'default', high: 'high', xhigh: 'xhigh' } as const
const allDensities = Object.values(densities)

const textOf = (headers: IncomingHttpHeaders, name: string): string => {
  const value = headers[name.toLowerCase()]
  return value === undefined ? '' : String(value).trim()
}

function parseEnum<Value>(
  headers: IncomingHttpHeaders,
  name: string,
  choices: Record<string, Value>,
): Value | undefined {
  const value = textOf(headers, name).toLowerCase()
  if (value === '') return undefined
  if (Object.hasOwn(choices, value)) return choices[value]
  throw new Refusal(
    'invalid',
    `${name} must be one of ${Object.keys(choices).join(', ')}`,
    'Leave it out for the usual: memory is read and written',
  )
}

/** @throws Refusal `invalid` for anything but a whole number from 1 to `max`. */
function parseWhole(
  headers: IncomingHttpHeaders,
  name: string,
  { max, of, hint }: { max: number; of: string; hint: string },
): number | undefined {
  const value = textOf(headers, name)
  if (value === '') return undefined
  const number = /^\d+$/.test(value) && value.length <= String(max).length ? Number(value) : 0
  if (number >= 1 && number <= max) return number
  throw new Refusal('invalid', `${name} must be a whole number${of} from 1 to ${max}`, hint)
}

/** Characters of a header with JSON; Node takes 16 KiB of headers in all. */
const jsonLengthMax = 8192

function parseObject(
  headers: IncomingHttpHeaders,
  name: string,
): Record<string, unknown> | undefined {
  const value = headers[name.toLowerCase()]
  const text = value === undefined ? '' : decodeHeader(String(value)).trim()
  if (text === '') return undefined
  if (text.length <= jsonLengthMax) return parseMetadataObject(text, name)
  throw tooManyFields(`${name} has more than ${jsonLengthMax} characters`)
}
