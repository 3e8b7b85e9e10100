/** Ollama unloads a model after 5 minutes without a call (its `OLLAMA_KEEP_ALIVE`), LM Studio after more. */
const everyMs = 240_000
/** A model that was not used for so long may go. */
const usedWithinMs = 12 * 3_600_000

/**
 * Asks a self-hosted model for one word before its server unloads it, as long as it was used within 12 hours: a
 * model that must be loaded is too late for the first question, which then goes without its memories.
 */
export class KeepWarm {
  readonly #everyMs: number
  readonly #usedWithinMs: number
  readonly #models = new Map<string, { usedAt: number; timer: NodeJS.Timeout }>()

  constructor(times = { everyMs, usedWithinMs }) {
    this.#everyMs = times.everyMs
    this.#usedWithinMs = times.usedWithinMs
  }

  /** @param ask embeds one word, uncounted */
  used(model: string, ask: () => Promise<unknown>): void {
    const known = this.#models.get(model)
    if (known) {
      known.usedAt = performance.now()
      known.timer.refresh()
      return
    }
    const timer = setInterval(() => {
      const { usedAt } = this.#models.get(model)!
      if (performance.now() - usedAt > this.#usedWithinMs) this.#forget(model)
      else ask().catch(() => {})
    }, this.#everyMs).unref()
    this.#models.set(model, { usedAt: performance.now(), timer })
  }

  stop(): void {
    for (const model of this.#models.keys()) this.#forget(model)
  }

  #forget(model: string): void {
    clearInterval(this.#models.get(model)?.timer)
    this.#models.delete(model)
  }
}
