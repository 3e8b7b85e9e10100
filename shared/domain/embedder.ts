import type { Refusal } from '#shared/core/errors.ts'

/** Turns texts into vectors. Vectors of two embedders are never compared. */
export type Embedder = {
  /** `local` or a provider-prefixed name such as `openai/text-embedding-3-small`. */
  readonly model: string
  /** Length of every vector. */
  readonly dimension: number
  /** The vault space of these vectors: letters, digits, `_` and `-` only, for field paths. */
  readonly space: string
  readonly calibration: Calibration
  /**
   * For each text, in order, a vector of unit length, or why the model has none for it alone.
   *
   * @throws Refusal `upstream` when the provider does not answer in time, or refuses every text.
   */
  embedEach(texts: readonly string[], signal?: AbortSignal): Promise<(Float32Array | Refusal)[]>
  /** As `embedEach`; throws where one text has no vector. */
  embedTexts(texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]>
  /** Some models embed queries unlike texts. */
  embedQuery(text: string, signal?: AbortSignal): Promise<Float32Array>
  /** The vectors of queries, in order, by one call. */
  embedQueries(texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]>
}

/** Maps cosines of an embedder to scores: unrelated texts have a cosine of 0.0 in one model and of 0.7 in another. */
export type Calibration = {
  /** Unrelated texts rarely exceed this cosine, which scores 0. */
  unrelated: number
  /** Cosine of texts of the same meaning, which scores 1. */
  same: number
  /** Lowest relevant score without shared words. */
  floor: number
  /** Median cosine of a question and an unrelated text; undefined where a vault's own are not compared with it. */
  typical?: number
  /**
   * From this cosine on a similarity is evidence without shared words: unrelated texts of any language rarely exceed it.
   * Undefined where it never is.
   */
  certain?: number
  /** Scripts, by their codes in Unicode, in which the model knows no language: there a similarity is no evidence. */
  unknownScripts?: readonly string[]
}
