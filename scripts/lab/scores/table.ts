import type { QuestionResult, Ranking } from '#scripts/lab/scores/measure.ts'
import type { PrecisionOutcome } from '#scripts/lab/scores/precision.ts'

const columns = ['R@5', 'R@10', 'any@5', 'NDCG@10'] as const

/** The table of a set: a row for each kind of question and one for all, by lines and by sessions. */
export function scoresTable(name: string, answered: readonly QuestionResult[]): string {
  const kinds = [...new Set(answered.map(({ kind }) => kind))]
  const heads = [name, 'questions', ...columns.map(column => `line ${column}`)]
  heads.push(...columns.map(column => `session ${column}`), 'search p50 ms', 'block tokens p50')
  const rows = [...kinds.map(kind => answered.filter(one => one.kind === kind)), answered]
  return toTable(
    heads,
    rows.map((row, at) => [
      kinds[at] ?? 'all',
      String(row.length),
      ...rankingCells(row.flatMap(({ lines }) => lines ?? [])),
      ...rankingCells(row.map(({ sessions }) => sessions)),
      median(row.map(({ searchMs }) => searchMs)).toFixed(1),
      String(median(row.map(({ blockTokens }) => blockTokens))),
    ]),
  )
}

/** The columns of PrecisionMemBench's own table. */
export function precisionTable(outcomes: readonly PrecisionOutcome[]): string {
  const active = outcomes.filter(({ precision, recall }) => precision !== null && recall !== null)
  const passed = (some: readonly PrecisionOutcome[]) =>
    `${some.filter(one => one.passed).length}/${some.length}`
  const heads = [
    'cases',
    'passed',
    'passed, with an answer',
    'mean precision',
    'mean recall',
    'p50 ms',
  ]
  return toTable(heads, [
    [
      String(outcomes.length),
      passed(outcomes),
      passed(active),
      mean(outcomes.flatMap(({ precision }) => precision ?? [])).toFixed(2),
      mean(outcomes.flatMap(({ recall }) => recall ?? [])).toFixed(2),
      median(outcomes.flatMap(({ searchMs }) => (searchMs > 0 ? searchMs : []))).toFixed(1),
    ],
  ])
}

function rankingCells(rankings: readonly Ranking[]): string[] {
  const names = ['recall5', 'recall10', 'any5', 'ndcg10'] as const
  if (rankings.length === 0) return names.map(() => '')
  return names.map(name => (mean(rankings.map(one => one[name])) * 100).toFixed(1))
}

/** A table in Markdown, as results are published. */
export function toTable(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [heads, heads.map((_, at) => (at === 0 ? '---' : '---:')), ...rows]
  return lines.map(cells => `| ${cells.join(' | ')} |`).join('\n')
}

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, one) => sum + one, 0) / numbers.length

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
