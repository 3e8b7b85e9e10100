import { dependencyState } from '#shared/core/metrics.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'

/**
 * `closed`: the dependency answers; `slow`: it answers, too late for callers that go on without it;
 * `open`: it does not answer; `refused`: it answers, and will refuse until an operator changes something.
 */
export type BreakerState = 'closed' | 'slow' | 'open' | 'refused'

export type BreakerOptions = {
  /** As metrics name the dependency. */
  name: string
  /** A small call of the dependency; rejects when it does not answer. */
  probe: () => Promise<unknown>
  /** Whether a probe with this error will be refused until an operator changes something. */
  isRefusal?: (error: unknown) => boolean
  /** The reason that operators read; the error's message by default. */
  reasonOf?: (error: unknown) => string
  /** @param reason why the last probe failed; undefined after one that did not */
  onChange?: (state: BreakerState, reason: string | undefined) => void
  /** False: the metric has the dependency as a label only while it does not answer. */
  isListed?: boolean
  /** A longer probe is `slow`, one longer than `openMs` is `open`. */
  slowMs?: number
  openMs?: number
  /** Time between a failed probe and the next. */
  intervalMs?: number
  /** The same after a refusal. */
  refusedIntervalMs?: number
}

const stateNumbers: Record<BreakerState, number> = { closed: 0, slow: 1, open: 2, refused: 3 }

/** Failures in a row after which the dependency is probed. */
const failuresMax = 2
/** A check within this time of a probe takes its result. */
const probeAgeMaxMs = 1_000

/**
 * Whether a dependency answers, by its last probe. Failures that callers report start the first probe; while the
 * breaker is not closed, further probes run in the background, so that callers need not wait to find out.
 */
export class Breaker {
  #state: BreakerState = 'closed'
  #reason: string | undefined
  #failures = 0
  #probing: Promise<void> | undefined
  #probedAt = Number.NEGATIVE_INFINITY
  #stopped = false
  #timer: NodeJS.Timeout | undefined
  readonly #options: Required<BreakerOptions>

  constructor(options: BreakerOptions) {
    this.#options = {
      isRefusal: () => false,
      reasonOf: error => (error as Error).message,
      onChange: () => {},
      isListed: true,
      slowMs: 1_500,
      openMs: 7_000,
      intervalMs: 3_000,
      refusedIntervalMs: 30_000,
      ...options,
    }
    this.#updateMetric()
  }

  get state(): BreakerState {
    return this.#state
  }

  /** Whether callers are refused at once. */
  get isAway(): boolean {
    return this.#state === 'open' || this.#state === 'refused'
  }

  /** Why the last probe failed; undefined after one that did not. */
  get reason(): string | undefined {
    return this.#reason
  }

  /** Notes that the dependency has failed a caller, or was too late for one. */
  failed(): void {
    this.#failures++
    const isDue = this.#failures >= failuresMax
    if (isDue && this.#state === 'closed') void this.#probe()
  }

  /** The state, by a probe where the last one is older than a second. Never rejects. */
  async check(): Promise<BreakerState> {
    const isKnown = this.isAway || performance.now() - this.#probedAt < probeAgeMaxMs
    if (!isKnown) await this.#probe()
    return this.#state
  }

  /**
   * Does work with the dependency.
   *
   * @param refuse makes the error that is thrown while callers are refused
   * @param isFault whether an error of the work is a failure of the dependency
   */
  async run<Result>(
    work: () => Promise<Result>,
    refuse: () => Error,
    isFault: (error: unknown) => boolean,
  ): Promise<Result> {
    if (this.isAway) throw refuse()
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

  /** Ends the probes and removes the dependency from the metric. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    dependencyState.remove({ dependency: this.#options.name })
  }

  /** Joins the probe that runs. */
  #probe(): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    this.#probing ??= this.#runProbe().finally(() => {
      this.#probing = undefined
      this.#probedAt = performance.now()
      this.#scheduleNext()
    })
    return this.#probing
  }

  async #runProbe(): Promise<void> {
    const { probe, slowMs, openMs, isRefusal, reasonOf } = this.#options
    clearTimeout(this.#timer)
    const slowTimer = setTimeout(() => this.#state === 'closed' && this.#change('slow'), slowMs)
    slowTimer.unref()
    const startedAt = performance.now()
    try {
      await withTimeout(probe(), openMs, () => {
        throw new Error(`no answer within ${openMs} ms`)
      })
      this.#change(performance.now() - startedAt < slowMs ? 'closed' : 'slow')
    } catch (error) {
      this.#change(isRefusal(error) ? 'refused' : 'open', reasonOf(error))
    } finally {
      clearTimeout(slowTimer)
    }
  }

  #scheduleNext(): void {
    if (this.#state === 'closed' || this.#stopped) return
    const { intervalMs, refusedIntervalMs } = this.#options
    const waitMs = this.#state === 'refused' ? refusedIntervalMs : intervalMs
    this.#timer = setTimeout(() => void this.#probe(), waitMs)
    this.#timer.unref()
  }

  #change(state: BreakerState, reason?: string): void {
    if (state === 'closed') this.#failures = 0
    this.#reason = reason
    if (state === this.#state || this.#stopped) return
    this.#state = state
    this.#updateMetric()
    this.#options.onChange(state, reason)
  }

  #updateMetric(): void {
    const { name: dependency, isListed } = this.#options
    if (isListed || this.#state !== 'closed')
      dependencyState.set({ dependency }, stateNumbers[this.#state])
    else dependencyState.remove({ dependency })
  }
}
