import { LRUCache } from 'lru-cache'
import { Breaker, type BreakerState } from '#shared/core/breaker.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Outage } from '#shared/domain/jobs.ts'
import { DimensionRefusal, ModelRefusal } from '#shared/models/model-refusal.ts'

/** Without the default one. A gateway may answer to any name that clients invent. */
const modelsMax = 64

type Options = {
  defaultModel: string
  /** Models whose spaces hold memories. */
  modelsInUse: ReadonlySet<string>
  /** Embeds one word. */
  probe: (model: string) => Promise<unknown>
  onChange: (model: string, state: BreakerState, reason: string | undefined) => void
}

/** Whether the embedding models of this process answer. `local` has no breaker. */
export class ModelBreakers {
  readonly #options: Options
  #ofDefault: Breaker | undefined
  readonly #others = new LRUCache<string, Breaker>({
    max: modelsMax,
    dispose: breaker => breaker.stop(),
  })

  constructor(options: Options) {
    this.#options = options
  }

  /** Undefined for a model that only requests have named and that has not answered here. */
  find(model: string): Breaker | undefined {
    const { defaultModel, modelsInUse } = this.#options
    if (model === 'local') return undefined
    const known = model === defaultModel ? this.#ofDefault : this.#others.get(model)
    if (known) return known
    return model === defaultModel || modelsInUse.has(model) ? this.add(model) : undefined
  }

  /** The breaker of a model that has answered. */
  add(model: string): Breaker | undefined {
    const { defaultModel, modelsInUse, probe, onChange } = this.#options
    if (model === 'local') return undefined
    const known = model === defaultModel ? this.#ofDefault : this.#others.get(model)
    if (known) return known
    const breaker = new Breaker({
      name: model,
      probe: () => probe(model),
      isRefusal: error => error instanceof ModelRefusal && error.isPermanent,
      reasonOf: error => (error instanceof ModelRefusal ? error.words : (error as Error).message),
      onChange: (state, reason) => onChange(model, state, reason),
      isListed: model === defaultModel || modelsInUse.has(model),
    })
    if (model === defaultModel) this.#ofDefault = breaker
    else this.#others.set(model, breaker)
    return breaker
  }

  /** Does work with a model; refuses at once while it does not answer. */
  async run<Result>(
    model: string,
    work: () => Promise<Result>,
    isFault: (error: unknown) => boolean = isModelFault,
  ): Promise<Result> {
    const breaker = this.find(model)
    if (!breaker) return work()
    return breaker.run(work, () => noAnswerRefusal(model, breaker), isFault)
  }

  away(): string[] {
    const breakers = [...this.#others.entries()]
    if (this.#ofDefault) breakers.push([this.#options.defaultModel, this.#ofDefault])
    return breakers.filter(([, { isAway }]) => isAway).map(([model]) => model)
  }

  /**
   * Finds out by a call of one word whether a job failed because its model does not answer or refuses everything. A rate
   * limit is always an outage, as is a fault of the server while one word takes long. Undefined where the fault may be
   * the job's.
   */
  async findOutage({ model, status = 500 }: ModelRefusal): Promise<Outage | undefined> {
    // The model answered when the job was accepted.
    const breaker = this.add(model)
    const state = await breaker?.check()
    const name = { dependency: model }
    if (breaker?.isAway)
      return { ...name, reason: breaker.reason ?? 'it does not answer', isAway: true }
    if (status === 429) return { ...name, reason: 'status 429: too many requests', isAway: false }
    if (state === 'slow' && status >= 500)
      return { ...name, reason: 'too slow: more than 1.5 s for one word', isAway: false }
    return undefined
  }

  stop(): void {
    this.#ofDefault?.stop()
    this.#others.clear()
  }
}

/** A model with another dimension does answer. */
const isModelFault = (error: unknown): boolean =>
  error instanceof Refusal && error.reason === 'upstream' && !(error instanceof DimensionRefusal)

/** A permanent refusal may be about the text, which is tried in halves next. */
export const isTextsFault = (error: unknown): boolean =>
  isModelFault(error) && !(error instanceof ModelRefusal && error.isPermanent)

function noAnswerRefusal(model: string, breaker: Breaker): ModelRefusal {
  const isRefused = breaker.state === 'refused'
  return new ModelRefusal(
    'upstream',
    isRefused
      ? `The embedding model ${model} ${breaker.reason}`
      : `The embedding model ${model} has not answered lately`,
    isRefused
      ? 'The operator should check the provider, its key and the name of the model; it is tried again every 30 seconds'
      : 'It is tried again every few seconds; if it lasts, the operator should check the provider and its key',
    { model },
  )
}
