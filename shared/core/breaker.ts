import { dependencyState } from '#shared/core/metrics.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'

/**
 * `closed`: the dependency answers; `slow`: it answers, too late for callers that go on without it;
 * `open`: it does not answer.
 */
export type BreakerState = 'closed' | 'slow' | 'open'

export type BreakerOptions = {
  /** As metrics name the dependency. */
  name: string
  /** Asks the dependency for little; rejects when it does not answer. */
  probe: () => Promise<unknown>
  onChange?: (state: BreakerState) => void
  /** A probe that takes longer is `slow`, one that takes longer than `openMs` is `open`. */
  slowMs?: number
  openMs?: number
  /** Between a probe that found a fault and the next one. */
  intervalMs?: number
  /** Reports of failures without an answer between them after which it is probed. */
  failuresMax?: number
}

const stateNumbers: Record<BreakerState, number> = { closed: 0, slow: 1, open: 2 }

/**
 * Whether a dependency answers, as its last probe found. The first is made when callers report failures, or
 * that they have waited too long; while the breaker is not closed they follow each other in the background, so that
 * callers need not wait for the dependency to find out.
 */
export class Breaker {
  #state: BreakerState = 'closed'
  #failures = 0
  #probing = false
  #stopped = false
  #timer: NodeJS.Timeout | undefined
  readonly #options: Required<BreakerOptions>

  constructor(options: BreakerOptions) {
    this.#options = {
      onChange: () => {},
      slowMs: 1_500,
      openMs: 7_000,
      intervalMs: 3_000,
      failuresMax: 2,
      ...options,
    }
    dependencyState.set({ dependency: options.name }, stateNumbers.closed)
  }

  get state(): BreakerState {
    return this.#state
  }

  /** The dependency has failed a caller, or a caller has waited too long for it. */
  failed(): void {
    this.#failures++
    const isDue = this.#failures >= this.#options.failuresMax
    if (isDue && this.#state === 'closed' && !this.#probing && !this.#stopped) void this.#probe()
  }

  /**
   * Does work with the dependency, unless it does not answer.
   *
   * @param refuse makes the error for an open breaker
   * @param isFault whether an error of the work is a failure of the dependency
   */
  async run<Result>(
    work: () => Promise<Result>,
    refuse: () => Error,
    isFault: (error: unknown) => boolean,
  ): Promise<Result> {
    if (this.#state === 'open') throw refuse()
    const startedAt = performance.now()
    try {
      const result = await work()
      if (performance.now() - startedAt < this.#options.slowMs) this.#failures = 0
      return result
    } catch (error) {
      if (isFault(error)) this.failed()
      throw error
    }
  }

  /** No probe begins any more. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #probe(): Promise<void> {
    const { probe, slowMs, openMs, intervalMs } = this.#options
    this.#probing = true
    const slowTimer = setTimeout(() => this.#state === 'closed' && this.#change('slow'), slowMs)
    slowTimer.unref()
    const startedAt = performance.now()
    try {
      await withTimeout(probe(), openMs, () => {
        throw new Error(`no answer within ${openMs} ms`)
      })
      this.#change(performance.now() - startedAt < slowMs ? 'closed' : 'slow')
    } catch {
      this.#change('open')
    } finally {
      clearTimeout(slowTimer)
      this.#probing = false
    }
    if (this.#state === 'closed' || this.#stopped) return
    this.#timer = setTimeout(() => void this.#probe(), intervalMs)
    this.#timer.unref()
  }

  #change(state: BreakerState): void {
    if (state === 'closed') this.#failures = 0
    if (state === this.#state) return
    this.#state = state
    dependencyState.set({ dependency: this.#options.name }, stateNumbers[state])
    this.#options.onChange(state)
  }
}
