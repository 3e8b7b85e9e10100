import type { Context } from 'koa'
import type { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'

const mebibyte = 1024 * 1024

/** Smaller bodies are parsed at once: together they cannot fill a heap. */
const smallBytesMax = mebibyte

/** Bytes of large bodies that are parsed and handled at once: three of the largest. */
const bytesAtOnce = 64 * mebibyte

/** Bytes of bodies that arrive, or wait for that; they stand outside of the heap. */
const bytesHeldMax = 512 * mebibyte

/** The memory that a body takes, from its first bytes until its answer. */
export type BodyShare = {
  /** Counts the bytes of the body that are in memory now. */
  hold(bytes: number): void
  /** Rejects with `unavailable` when the body has to make room for those of other tenants. */
  readonly dropped: Promise<never>
  /** Resolves when the body, which has arrived, may be parsed. */
  admit(): Promise<void>
  /** Gives back everything but the bytes that are still kept. Call as often as less is kept. */
  release(kept?: number): void
}

/** A body of which not all has arrived, or not all is on its way to a provider. */
type IncomingBody = { bytes: number; drop: (refusal: Refusal) => void }

/**
 * Admits bodies by their bytes. Those that arrive and those that wait share one bound: where it is reached, the tenant
 * that holds most loses the arriving body that has not grown for longest. So slow and silent bodies take nothing from
 * other tenants. Those that have arrived are parsed in the order of their arrival.
 */
export class BodyBudget {
  readonly #bytesMax: number
  readonly #bytesHeldMax: number
  /** By tenant; the body that has grown last is last. */
  readonly #arriving = new Map<string, Set<IncomingBody>>()
  readonly #queue: { bytes: number; start: () => void }[] = []
  #bytesHeld = 0
  #bytesInUse = 0

  constructor(bytesMax = bytesAtOnce, heldMax = bytesHeldMax) {
    this.#bytesMax = bytesMax
    this.#bytesHeldMax = heldMax
  }

  /** The share of a body that is about to arrive. */
  open(tenant: string): BodyShare {
    const { promise: dropped, reject } = Promise.withResolvers<never>()
    dropped.catch(() => {})
    // Arriving and waiting count as held; in use counts as in use; dropped and over count nowhere.
    let state: 'arriving' | 'dropped' | 'waiting' | 'in use' | 'over' = 'arriving'
    let bytesCounted = 0
    const body: IncomingBody = {
      bytes: 0,
      drop(refusal) {
        state = 'dropped'
        reject(refusal)
      },
    }
    return {
      dropped,
      hold: bytes => {
        if (state === 'arriving') this.#grow(tenant, body, bytes)
      },
      admit: async () => {
        if (state === 'dropped') await dropped
        if (state !== 'arriving') return
        state = 'waiting'
        this.#remove(tenant, body)
        await this.#start(body.bytes)
        bytesCounted = Math.min(body.bytes, this.#bytesMax)
        state = 'in use'
      },
      release: (kept = 0) => {
        if (state === 'arriving') {
          state = 'over'
          if (this.#remove(tenant, body)) this.#bytesHeld -= body.bytes
        }
        const stillKept = Math.min(bytesCounted, kept)
        this.#bytesInUse -= bytesCounted - stillKept
        bytesCounted = stillKept
        this.#startWaiting()
      },
    }
  }

  #grow(tenant: string, body: IncomingBody, bytes: number): void {
    this.#remove(tenant, body)
    this.#arriving.set(tenant, (this.#arriving.get(tenant) ?? new Set()).add(body))
    this.#bytesHeld += bytes - body.bytes
    body.bytes = bytes
    while (this.#bytesHeld > this.#bytesHeldMax && this.#arriving.size > 0) this.#dropOne()
  }

  #dropOne(): void {
    const bytesOf = (bodies: Iterable<IncomingBody>): number =>
      Iterator.from(bodies).reduce((sum, { bytes }) => sum + bytes, 0)
    const [tenant, bodies] = [...this.#arriving].reduce((most, one) =>
      bytesOf(one[1]) > bytesOf(most[1]) ? one : most,
    )
    const [silent] = bodies
    this.#remove(tenant, silent!)
    this.#bytesHeld -= silent!.bytes
    silent!.drop(refusal('unavailable', 'tooManyLargeBodies'))
  }

  /** @returns whether the body was among those that arrive */
  #remove(tenant: string, body: IncomingBody): boolean {
    const bodies = this.#arriving.get(tenant)
    const wasThere = bodies?.delete(body) ?? false
    if (bodies?.size === 0) this.#arriving.delete(tenant)
    return wasThere
  }

  #start(bytes: number): Promise<void> {
    return new Promise(start => {
      this.#queue.push({ bytes, start })
      this.#startWaiting()
    })
  }

  #startWaiting(): void {
    for (;;) {
      const [next] = this.#queue
      const bytes = Math.min(next?.bytes ?? Infinity, this.#bytesMax)
      if (!next || this.#bytesInUse + bytes > this.#bytesMax) return
      this.#queue.shift()
      this.#bytesHeld -= next.bytes
      this.#bytesInUse += bytes
      next.start()
    }
  }
}

const budget = new BodyBudget()

const tenants = new WeakMap<Context, string>()
const shares = new WeakMap<Context, BodyShare>()

/** Records the account whose share the body of a request takes; without it that is the client's address. */
export const setBodyTenant = (ctx: Context, account: string): void => void tenants.set(ctx, account)

/** The share of the body of a request; it ends with the response. */
export function bodyShareOf(ctx: Context): BodyShare {
  const known = shares.get(ctx)
  if (known) return known
  const share = budget.open(tenants.get(ctx) ?? ctx.ip)
  shares.set(ctx, share)
  ctx.res.once('close', () => share.release())
  return share
}

/**
 * Waits until a body of this size may be parsed. A large one counts until its response has ended, or
 * `releaseBody`.
 *
 * @throws Refusal `unavailable` when it had to make room for others.
 */
export async function admitBody(ctx: Context, bytes: number): Promise<void> {
  const share = shares.get(ctx)
  if (!share || bytes <= smallBytesMax) return share?.release()
  await share.admit()
  if (ctx.res.closed || ctx.res.destroyed) share.release()
}

/**
 * Gives back what a body took: what follows in its request does not hold it.
 *
 * @param kept bytes of texts that are held until the response has ended; few of them do not count
 */
export const releaseBody = (ctx: Context, kept = 0): void =>
  shares.get(ctx)?.release(kept > smallBytesMax ? kept : 0)
