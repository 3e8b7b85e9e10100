import { LRUCache } from 'lru-cache'
import { Breaker, type BreakerState } from '#shared/core/breaker.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Outage } from '#shared/domain/jobs.ts'
import { DimensionRefusal, ModelRefusal } from '#shared/models/model-refusal.ts'

/** Models with a breaker beside the default one. A gateway may answer to any name that clients invent. */
const modelsMax = 64

type Options = {
  defaultModel: string
  /** Models whose spaces hold memories. */
  modelsInUse: ReadonlySet<string>
  /** Embeds one word. */
  probe: (model: string) => Promise<unknown>
  onChange: (model: string, state: BreakerState, reason: string | undefined) => void
}

/** Whether the embedding models of this process answer. `local` always does, and has no breaker. */
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

  /** Undefined for a model that only requests have named and that has not answered here: it may be invented. */
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

  /**
   * Does work with a model; refuses at once while it is known not to answer.
   *
   * @param isFault whether an error of the work is a failure of the model
   */
  async run<Result>(
    model: string,
    work: () => Promise<Result>,
    isFault: (error: unknown) => boolean = isModelFault,
  ): Promise<Result> {
    const breaker = this.find(model)
    if (!breaker) return work()
    return breaker.run(work, () => noAnswerRefusal(model, breaker), isFault)
  }

  /** Models that are known not to answer. */
  away(): string[] {
    const breakers = [...this.#others.entries()]
    if (this.#ofDefault) breakers.push([this.#options.defaultModel, this.#ofDefault])
    return breakers.filter(([, { isAway }]) => isAway).map(([model]) => model)
  }

  /**
   * Whether a job has failed since its model does not answer, or refuses whatever it is asked: one word is
   * refused likewise. A rate limit is always that, and so is a fault of the server, or no answer, where one word takes
   * long too. Undefined where the fault may be the job's.
   */
  async findOutage({ model, status = 500 }: ModelRefusal): Promise<Outage | undefined> {
    // A job's model has answered when its work was accepted.
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

  /** No model is probed any more. */
  stop(): void {
    this.#ofDefault?.stop()
    this.#others.clear()
  }
}

/** A model of another dimension does answer. */
const isModelFault = (error: unknown): boolean =>
  error instanceof Refusal && error.reason === 'upstream' && !(error instanceof DimensionRefusal)

/** What is refused for good may be the text: halves of it are tried next, and a job has one word asked. */
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
