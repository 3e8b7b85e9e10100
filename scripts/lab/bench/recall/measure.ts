import type { Calibration } from '#shared/domain/embedder.ts'
import { rank } from '#shared/search/ranking/rank.ts'
import type { RecallMethod } from '#scripts/lab/bench/recall/methods.ts'
import type { EvaluationVault } from '#scripts/lab/bench/recall/evaluation-vault.ts'

/** Means over the questions, each 0 to 1. */
export type RecallMeasures = {
  questions: number
  /** Share of the evidence among the first k results. */
  recall: Record<1 | 5 | 10 | 20, number>
  /** One over the position of the first evidence. */
  reciprocalRank: number
  /** Share of questions with a turn of a session with evidence among the first five results. */
  sessionRecall: number
}

const cuts = [1, 5, 10, 20] as const

/** Measures by kind of question, and under `all`. */
export function measureRecall(
  vaults: readonly EvaluationVault[],
  method: RecallMethod,
  calibration: Calibration,
): Map<string, RecallMeasures> {
  const measures = new Map<string, RecallMeasures>()
  for (const vault of vaults) {
    for (const question of vault.questions) {
      if (question.evidence.length === 0) continue
      const ids = method(vault, question, calibration)
      for (const kind of [question.kind, 'all']) {
        if (!measures.has(kind)) measures.set(kind, emptyMeasures())
        addMeasurement(measures.get(kind)!, vault, question.evidence, ids)
      }
    }
  }
  for (const measured of measures.values()) averageMeasures(measured)
  return measures
}

function emptyMeasures(): RecallMeasures {
  return { questions: 0, recall: { 1: 0, 5: 0, 10: 0, 20: 0 }, reciprocalRank: 0, sessionRecall: 0 }
}

function addMeasurement(
  measures: RecallMeasures,
  { tagByMemory, sessionByMemory }: EvaluationVault,
  evidence: readonly string[],
  ids: readonly string[],
) {
  const tags = ids.map(id => tagByMemory.get(id))
  for (const cut of cuts) {
    const retrieved = evidence.filter(tag => tags.slice(0, cut).includes(tag))
    measures.recall[cut] += retrieved.length / evidence.length
  }
  const first = tags.findIndex(tag => tag !== undefined && evidence.includes(tag))
  if (first >= 0) measures.reciprocalRank += 1 / (1 + first)
  const sessions = new Set(
    [...tagByMemory]
      .filter(([, tag]) => evidence.includes(tag))
      .map(([id]) => sessionByMemory.get(id)),
  )
  if (ids.slice(0, 5).some(id => sessions.has(sessionByMemory.get(id)))) measures.sessionRecall++
  measures.questions++
}

function averageMeasures(measures: RecallMeasures) {
  for (const cut of cuts) measures.recall[cut] /= measures.questions
  measures.reciprocalRank /= measures.questions
  measures.sessionRecall /= measures.questions
}

export type FloorMeasures = {
  /** Questions without an answer in the vault, and how many of them had no results. */
  unanswerable: number
  unanswerableEmpty: number
  /** Questions with an answer, and how many of them had no results. */
  answerable: number
  answerableEmpty: number
  /** Share of all evidence among the first 30 results with the floor. */
  evidenceKept: number
  /** Mean number of results of an answerable question. */
  rows: number
}

/** Measures what `prepare` would inject: default density, with the floor. */
export function measureRelevanceFloor(
  vaults: readonly EvaluationVault[],
  calibration: Calibration,
): FloorMeasures {
  const measures = {
    unanswerable: 0,
    unanswerableEmpty: 0,
    answerable: 0,
    answerableEmpty: 0,
    rows: 0,
  }
  let evidence = 0
  let retrieved = 0
  for (const { index, now, questions, tagByMemory } of vaults) {
    for (const { text, vector, evidence: tags } of questions) {
      const hits = rank([index], { text, vector, now, limit: 30, floor: true, calibration })
      if (tags.length === 0) {
        measures.unanswerable++
        if (hits.length === 0) measures.unanswerableEmpty++
        continue
      }
      measures.answerable++
      if (hits.length === 0) measures.answerableEmpty++
      measures.rows += hits.length
      const hitTags = new Set(hits.map(({ memory }) => tagByMemory.get(memory.id)))
      evidence += tags.length
      retrieved += tags.filter(tag => hitTags.has(tag)).length
    }
  }
  return {
    ...measures,
    evidenceKept: retrieved / evidence,
    rows: measures.rows / measures.answerable,
  }
}
