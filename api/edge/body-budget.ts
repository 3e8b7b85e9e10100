import type { Context } from 'koa'
import { Refusal } from '#shared/core/errors.ts'

const mebibyte = 1024 * 1024

/** Smaller bodies are parsed at once: together they cannot fill a heap. */
const smallBytesMax = mebibyte

/** Bytes of large bodies that are parsed and handled at once: three of the largest. */
const bytesAtOnce = 64 * mebibyte

/** Bytes of large bodies that wait for that; they wait outside of the heap. */
const bytesWaitingMax = 512 * mebibyte

type Waiting = { bytes: number; start: () => void }

/** Admits work by its bytes, in the order of its arrival. */
export class BodyBudget {
  readonly #bytesMax: number
  readonly #bytesWaitingMax: number
  readonly #queue: Waiting[] = []
  #bytesInUse = 0
  #bytesWaiting = 0

  constructor(bytesMax = bytesAtOnce, waitingMax = bytesWaitingMax) {
    this.#bytesMax = bytesMax
    this.#bytesWaitingMax = waitingMax
  }

  /**
   * Resolves when these bytes may be used, with a function that gives them back, all but those still kept.
   *
   * @throws Refusal `unavailable` when too many wait.
   */
  async acquire(bytes: number): Promise<(kept?: number) => void> {
    let weight = Math.min(bytes, this.#bytesMax)
    if (this.#queue.length > 0 || this.#bytesInUse + weight > this.#bytesMax)
      await this.#wait(weight)
    else this.#bytesInUse += weight
    return (kept = 0) => {
      const less = Math.min(weight, kept)
      this.#bytesInUse -= weight - less
      weight = less
      this.#admit()
    }
  }

  #wait(bytes: number): Promise<void> {
    if (this.#bytesWaiting + bytes > this.#bytesWaitingMax) {
      throw new Refusal(
        'unavailable',
        'Too many large bodies at once',
        'Try again in some seconds, or send smaller ones',
      )
    }
    this.#bytesWaiting += bytes
    return new Promise(start => this.#queue.push({ bytes, start }))
  }

  #admit(): void {
    for (
      let next = this.#queue[0];
      next && this.#bytesInUse + next.bytes <= this.#bytesMax;
      next = this.#queue[0]
    ) {
      this.#queue.shift()
      this.#bytesWaiting -= next.bytes
      this.#bytesInUse += next.bytes
      next.start()
    }
  }
}

const budget = new BodyBudget()

const releases = new WeakMap<Context, (kept?: number) => void>()

/**
 * Waits until a body of this size may be parsed. A large one counts until its response has ended, or
 * `releaseBody`.
 *
 * @throws Refusal `unavailable` when too many wait.
 */
export async function admitBody(ctx: Context, bytes: number): Promise<void> {
  if (bytes <= smallBytesMax) return
  const release = await budget.acquire(bytes)
  if (ctx.res.closed || ctx.res.destroyed) release()
  else ctx.res.once('close', () => release())
  releases.set(ctx, release)
}

/**
 * Gives back what a body took: what follows in its request does not hold it.
 *
 * @param kept bytes of texts that are held until the response has ended; few of them do not count
 */
export const releaseBody = (ctx: Context, kept = 0): void =>
  releases.get(ctx)?.(kept > smallBytesMax ? kept : 0)
