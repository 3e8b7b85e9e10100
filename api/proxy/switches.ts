import type { Context } from 'koa'
import type { SwitchQuery } from '#api/contract/types.ts'
import type { BodySwitches } from '#api/proxy/dialects/dialect.ts'
import { Refusal } from '#shared/core/errors.ts'
import { permitsOf, type Mode, type Permits } from '#shared/access/key.ts'

/** What one channel of a request (its headers, its query, its body) says about memory. */
export type Switches = {
  /** False: no memory at all. */
  memory?: boolean | undefined
  mode?: Mode | undefined
  /** False: nothing of what the user says is stored. */
  store?: boolean | undefined
  /** False: nothing of what the model answers is stored. */
  storeReply?: boolean | undefined
}

/** What this call may do with memory. */
export type Decision = { retrieve: boolean; store: boolean; storeReply: boolean }

/**
 * One decision out of the key's suffix and every channel. A switch takes away and never gives, so what
 * is allowed is what all of them allow: neither their order nor their number matters, and no channel
 * overrules another.
 */
export function decide(permits: Permits, channels: readonly Switches[]): Decision {
  const every = (allows: (switches: Switches) => boolean): boolean => channels.every(allows)
  const mode = (switches: Switches): Permits =>
    permitsOf[switches.memory === false ? 'off' : (switches.mode ?? 'on')]
  const stores = permits.store && every(switches => mode(switches).store)
  return {
    retrieve: permits.retrieve && every(switches => mode(switches).retrieve),
    store: stores && every(({ store }) => store !== false),
    storeReply: stores && every(({ storeReply }) => storeReply !== false),
  }
}

/** @throws Refusal `invalid` for a value that is none. */
export const headerSwitches = (ctx: Context): Switches => ({
  mode: choiceIn(ctx, 'X-Memory-Mode', modes),
  store: choiceIn(ctx, 'X-Memory-Store', truths),
  storeReply: choiceIn(ctx, 'X-Memory-Store-Response', truths),
})

/** A hundred years. */
const ttlMax = 3_153_600_000

/**
 * For how long what is stored of a call is kept, in seconds: the header `X-Memory-TTL`.
 *
 * @throws Refusal `invalid` for a value that is none.
 */
export function secondsToLive(ctx: Context): number | undefined {
  const said = ctx.get('X-Memory-TTL').trim()
  if (said === '') return undefined
  const seconds = /^\d{1,10}$/.test(said) ? Number(said) : 0
  if (seconds >= 1 && seconds <= ttlMax) return seconds
  throw new Refusal(
    'invalid',
    `X-Memory-TTL must be a whole number of seconds from 1 to ${ttlMax}`,
    'Leave it out to keep what is said',
  )
}

const modes = { on: 'on', off: 'off', read: 'read', write: 'write' } as const
const truths = { true: true, false: false } as const

function choiceIn<Value>(
  ctx: Context,
  header: string,
  choices: Record<string, Value>,
): Value | undefined {
  const said = ctx.get(header).trim().toLowerCase()
  if (said === '') return undefined
  if (Object.hasOwn(choices, said)) return choices[said]
  throw new Refusal(
    'invalid',
    `${header} must be one of ${Object.keys(choices).join(', ')}`,
    'Leave it out for the usual: memory is read and written',
  )
}

export const querySwitches = ({ memory, mode, store }: SwitchQuery): Switches => ({
  memory: memory === undefined ? undefined : memory === 'on',
  mode,
  store: store === undefined ? undefined : store === 'true',
})

export const bodySwitches = (body: BodySwitches): Switches => ({
  memory: body.memory,
  mode: body.memory_mode,
  store: body.memory_store,
  storeReply: body.memory_store_response,
})
