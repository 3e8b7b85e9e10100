import type { Context } from 'koa'
import type { SwitchQuery } from '#api/contract/types.ts'
import type { BodySwitches } from '#api/proxy/dialects/dialect.ts'
import { Refusal } from '#shared/core/errors.ts'
import { permissionsByMode, type KeyMode, type Permissions } from '#shared/access/key.ts'

/** The memory switches of one channel of a request: its headers, its query or its body. */
export type ChannelSwitches = {
  /** False: no memory at all. */
  memory?: boolean | undefined
  mode?: KeyMode | undefined
  /** False: the user's messages are not stored. */
  store?: boolean | undefined
  /** False: the model's reply is not stored. */
  storeReply?: boolean | undefined
}

/** What this call may do with memory. */
export type MemoryAccess = { retrieve: boolean; store: boolean; storeReply: boolean }

/**
 * Combines the key's permissions with the switches of every channel. A switch only restricts: allowed is
 * what all of them allow, in any order and number; no channel overrides another.
 */
export function resolveMemoryAccess(
  permits: Permissions,
  channels: readonly ChannelSwitches[],
): MemoryAccess {
  const every = (allows: (switches: ChannelSwitches) => boolean): boolean => channels.every(allows)
  const mode = (switches: ChannelSwitches): Permissions =>
    permissionsByMode[switches.memory === false ? 'off' : (switches.mode ?? 'on')]
  const stores = permits.store && every(switches => mode(switches).store)
  return {
    retrieve: permits.retrieve && every(switches => mode(switches).retrieve),
    store: stores && every(({ store }) => store !== false),
    storeReply: stores && every(({ storeReply }) => storeReply !== false),
  }
}

/** @throws Refusal `invalid` for a value that is not listed. */
export const headerSwitches = (ctx: Context): ChannelSwitches => ({
  mode: parseEnumHeader(ctx, 'X-Memory-Mode', modes),
  store: parseEnumHeader(ctx, 'X-Memory-Store', booleans),
  storeReply: parseEnumHeader(ctx, 'X-Memory-Store-Response', booleans),
})

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
  store: store === undefined ? undefined : store === 'true',
})

export const bodySwitches = (body: BodySwitches): ChannelSwitches => ({
  memory: body.memory,
  mode: body.memory_mode,
  store: body.memory_store,
  storeReply: body.memory_store_response,
})
