import type { Embedder } from '#shared/domain/embedder.ts'
import { measureCalibration } from '#shared/models/calibration/calibrate-embedder.ts'
import { toUnitLength } from '#shared/models/split-text.ts'

/** How the vectors of another model lie. */
export type Shift = {
  /** Cosine of unrelated texts: contrastive models put all texts into a narrow cone. */
  unrelated: number
  /** Share of each vector that is chance, 0 to 1: so far the cosines of unrelated texts differ. */
  scatter: number
  /** Length of the vectors; at least 64. */
  dimension: number
}

/** Few, so that a share of chance of 0.3 spreads the cosines by 0.06, as those of real models are. */
const chanceDimensions = 24

/**
 * An embedder whose cosines are those of another one, moved towards 1 and scattered: what it finds similar
 * stays in order but for the scatter. A model of how real ones behave, not a real one. Its calibration is
 * measured as that of any model.
 */
export async function shiftEmbedder(base: Embedder, shift: Shift): Promise<Embedder> {
  const move = (vectors: Float32Array[], texts: readonly string[]) =>
    vectors.map((vector, i) => shiftVector(vector, texts[i]!, shift))
  const embedTexts: Embedder['embedTexts'] = async (texts, signal) =>
    move(await base.embedTexts(texts, signal), texts)
  const embedQueries: Embedder['embedQueries'] = async (texts, signal) =>
    move(await base.embedQueries(texts, signal), texts)
  return {
    model: base.model,
    dimension: shift.dimension,
    space: `${base.space}_shifted`,
    calibration: await measureCalibration({ embedTexts, embedQueries }),
    embedEach: embedTexts,
    embedTexts,
    embedQueries,
    embedQuery: async (text, signal) => (await embedQueries([text], signal))[0]!,
  }
}

function shiftVector(vector: Float32Array, text: string, shift: Shift): Float32Array {
  const { unrelated, scatter, dimension } = shift
  const shifted = new Float32Array(dimension)
  shifted[0] = Math.sqrt(unrelated)
  addFolded(shifted, vector, Math.sqrt((1 - unrelated) * (1 - scatter)))
  const chance = toUnitLength(randomVector(text, chanceDimensions))
  addFolded(shifted, chance, Math.sqrt((1 - unrelated) * scatter))
  return toUnitLength(shifted)
}

/** Adds a vector to all numbers but the first; of a longer one several numbers to one, with signs by chance. */
function addFolded(sum: Float32Array, vector: Float32Array, weight: number): void {
  const room = sum.length - 1
  for (const [i, value] of vector.entries()) {
    const isNegative = i >= room && (Math.imul(i, 0x9e_37_79_b1) >>> 31) & 1
    sum[1 + (i % room)]! += isNegative ? -weight * value : weight * value
  }
}

/** Normally distributed numbers that follow from a text alone. */
function randomVector(text: string, length: number): Float32Array {
  let state = 2_166_136_261
  for (const sign of text) state = Math.imul(state ^ sign.codePointAt(0)!, 16_777_619) >>> 0
  const random = (): number => {
    state = (state + 0x6d_2b_79_f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 1) / 4_294_967_297
  }
  return Float32Array.from(
    { length },
    () => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random()),
  )
}

/** From a model that spreads texts over the whole space to one that keeps them all near to each other. */
export const shifts: readonly Shift[] = [
  { unrelated: 0, scatter: 0.3, dimension: 256 },
  { unrelated: 0.15, scatter: 0.3, dimension: 1_536 },
  { unrelated: 0.3, scatter: 0.3, dimension: 768 },
  { unrelated: 0.5, scatter: 0.3, dimension: 3_072 },
  { unrelated: 0.7, scatter: 0.3, dimension: 1_024 },
]
