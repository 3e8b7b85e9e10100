import type { Calibration } from '#shared/domain/embedder.ts'
import { rank } from '#shared/search/ranking/rank.ts'
import type { Method } from '#scripts/bench/recall/methods.ts'
import type { Vault } from '#scripts/bench/recall/vault.ts'

/** Means over questions, 0 to 1. */
export type Measures = {
  questions: number
  /** Share of the evidence among the first k. */
  recall: Record<1 | 5 | 10 | 20, number>
  /** One over the place of the first evidence. */
  reciprocal: number
  /** Share of questions with a turn of the right session among the first five. */
  session: number
}

const cuts = [1, 5, 10, 20] as const

/** Measures by kind of question, and under `all`. */
export function measure(
  vaults: readonly Vault[],
  method: Method,
  calibration: Calibration,
): Map<string, Measures> {
  const measures = new Map<string, Measures>()
  for (const vault of vaults) {
    for (const question of vault.questions) {
      if (question.evidence.length === 0) continue
      const ids = method(vault, question, calibration)
      for (const kind of [question.kind, 'all']) {
        if (!measures.has(kind)) measures.set(kind, nothingMeasured())
        addTo(measures.get(kind)!, vault, question.evidence, ids)
      }
    }
  }
  for (const measured of measures.values()) divide(measured)
  return measures
}

function nothingMeasured(): Measures {
  return { questions: 0, recall: { 1: 0, 5: 0, 10: 0, 20: 0 }, reciprocal: 0, session: 0 }
}

function addTo(
  measures: Measures,
  { tagOf, sessionOf }: Vault,
  evidence: readonly string[],
  ids: readonly string[],
) {
  const tags = ids.map(id => tagOf.get(id))
  for (const cut of cuts) {
    const found = evidence.filter(tag => tags.slice(0, cut).includes(tag))
    measures.recall[cut] += found.length / evidence.length
  }
  const first = tags.findIndex(tag => tag !== undefined && evidence.includes(tag))
  if (first >= 0) measures.reciprocal += 1 / (1 + first)
  const sessions = new Set(
    [...tagOf].filter(([, tag]) => evidence.includes(tag)).map(([id]) => sessionOf.get(id)),
  )
  if (ids.slice(0, 5).some(id => sessions.has(sessionOf.get(id)))) measures.session++
  measures.questions++
}

function divide(measures: Measures) {
  for (const cut of cuts) measures.recall[cut] /= measures.questions
  measures.reciprocal /= measures.questions
  measures.session /= measures.questions
}

export type FloorMeasures = {
  /** Questions nothing in the vault answers, and how many of them got nothing. */
  unanswerable: number
  refused: number
  /** Questions that are answered, and how many of them got nothing. */
  answerable: number
  emptyHanded: number
  /** Share of all evidence that passed the floor among the first 30. */
  evidenceKept: number
  /** Mean number of rows for an answerable question. */
  rows: number
}

/** What `prepare` would inject: default density, with the floor. */
export function measureFloor(vaults: readonly Vault[], calibration: Calibration): FloorMeasures {
  const measures = { unanswerable: 0, refused: 0, answerable: 0, emptyHanded: 0, rows: 0 }
  let evidence = 0
  let kept = 0
  for (const { image, now, questions, tagOf } of vaults) {
    for (const { text, vector, evidence: tags } of questions) {
      const found = rank([image], { text, vector, now, limit: 30, floor: true, calibration })
      if (tags.length === 0) {
        measures.unanswerable++
        if (found.length === 0) measures.refused++
        continue
      }
      measures.answerable++
      if (found.length === 0) measures.emptyHanded++
      measures.rows += found.length
      const held = new Set(found.map(({ memory }) => tagOf.get(memory.id)))
      evidence += tags.length
      kept += tags.filter(tag => held.has(tag)).length
    }
  }
  return { ...measures, evidenceKept: kept / evidence, rows: measures.rows / measures.answerable }
}
