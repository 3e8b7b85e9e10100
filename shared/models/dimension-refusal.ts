import { Refusal } from '#shared/core/errors.ts'

/**
 * A model answers with vectors of another length than before: another one answers under its name. Its vectors
 * cannot be compared with the stored ones, so nothing is found or stored with them.
 */
export class DimensionRefusal extends Refusal {
  /** The vault space of the vectors that it answers with now. */
  readonly space: string

  constructor(model: string, known: number, answered: number, space: string) {
    super(
      'upstream',
      `The embedding model ${model} answers with vectors of ${answered} numbers now, of ${known} before`,
      'The operator should put the former model back, which needs no restart; for a model that was meant ' +
        'to change: restart, then POST /v1/memory/reembed moves each vault to its vectors',
    )
    this.space = space
  }
}
