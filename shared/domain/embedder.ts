/** Turns texts into vectors. Vectors of two embedders are never compared. */
export type Embedder = {
  /** The name clients use: `local` or a provider-prefixed model such as `openai/text-embedding-3-small`. */
  readonly model: string
  /** Length of every vector. */
  readonly dimension: number
  /** The vault space these vectors live in: letters, digits, `_` and `-` only, since it is part of field paths. */
  readonly space: string
  readonly calibration: Calibration
  /**
   * Vectors of unit length, one per text, in order.
   *
   * @throws Refusal `upstream` when the provider does not answer in time.
   */
  embedTexts(texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]>
  /** The vector of a question; some models embed questions unlike texts. */
  embedQuery(text: string, signal?: AbortSignal): Promise<Float32Array>
}

/**
 * How cosines of an embedder read as scores. Embedders differ: unrelated texts
 * meet at 0.0 in one model and at 0.7 in another.
 */
export type Calibration = {
  /** Cosine that unrelated texts rarely pass: scores 0 at or below it. */
  unrelated: number
  /** Cosine of texts that say the same: scores 1 at or above it. */
  same: number
  /** Lowest score that counts as relevant when no word is shared. */
  floor: number
}
