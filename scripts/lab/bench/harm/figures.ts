import type { HarmKind } from '#scripts/lab/bench/harm/harm-set.ts'
import type { Outcome } from '#scripts/lab/bench/harm/measure.ts'
import { isRight, ownAnswer } from '#scripts/lab/bench/harm/stub-agent.ts'

/** Messages that memory cannot help. */
export const unhelpedKinds: readonly HarmKind[] = [
  'unanswerable',
  'general',
  'small talk',
  'task',
  'agent turn',
  'agent question',
]

export const share = <One>(all: readonly One[], has: (one: One) => boolean): number =>
  all.filter(has).length / all.length

/** The share of messages of a kind that got a block; of answerable ones, one with the answer. */
export function blockShare(outcomes: readonly Outcome[], kind: HarmKind, wrapping: string): number {
  const asked = outcomes.filter(one => one.kind === kind && one.wrapping === wrapping)
  return share(asked, one => (kind === 'answerable' ? one.isAnswered : one.tokens > 0))
}

/**
 * Mean difference between confidence and share of answers, over ten bins of equal width, of messages
 * that got a block. Questions across languages are left out.
 */
export function calibrationError(outcomes: readonly Outcome[]): number {
  const told = outcomes.filter(({ tokens, kind }) => tokens > 0 && kind !== 'cross-language')
  const bins = Map.groupBy(told, ({ confidence }) => Math.min(9, Math.floor(confidence * 10)))
  let error = 0
  for (const bin of bins.values()) {
    const confidence = bin.reduce((sum, one) => sum + one.confidence, 0)
    const answered = bin.filter(one => one.isAnswered).length
    error += Math.abs(confidence - answered) / told.length
  }
  return error
}

/** Median of the tokens of blocks; 0 without any. */
export function medianTokens(outcomes: readonly Outcome[]): number {
  const tokens = outcomes.flatMap(one => (one.tokens > 0 ? one.tokens : [])).sort((a, b) => a - b)
  return tokens[Math.floor(tokens.length / 2)] ?? 0
}

/** Shares of right answers of the stub agent, 0 to 1. */
export type Accuracy = {
  with: number
  without: number
  /** Share of messages that need memory from which on memory does not lower the accuracy. */
  breakEven: number
}

/** How often the stub agent is right with memory and without; of all kinds together. */
export function measureAccuracy(outcomes: readonly Outcome[]): Accuracy {
  const needed = outcomes.filter(({ kind }) => !unhelpedKinds.includes(kind))
  const others = outcomes.filter(({ kind }) => unhelpedKinds.includes(kind))
  const gain = share(needed, one => isRight(one.agentAnswer, one))
  const loss = 1 - share(others, one => isRight(one.agentAnswer, one))
  return {
    with: share(outcomes, one => isRight(one.agentAnswer, one)),
    without: share(outcomes, one => isRight(ownAnswer, one)),
    breakEven: loss / (gain + loss),
  }
}
