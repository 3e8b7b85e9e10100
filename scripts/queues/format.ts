import type { DeadLetter } from '#shared/storage/queue/queue-admin.ts'
import type { QueueStats } from '#shared/storage/queue/queue-stats.ts'

const columnHeadings = [
  'queue',
  'waiting',
  'held',
  'retrying',
  'at work',
  'dead',
  'oldest',
  'longest',
  'held for',
]

/** The queues as a table; `!` marks queues with dead letters. */
export function formatQueues(queues: readonly QueueStats[]): string {
  const rows = queues.map(queue => [
    queue.dead > 0 ? `${queue.name} !` : queue.name,
    ...[queue.waiting - queue.held, queue.held, queue.retrying, queue.active, queue.dead].map(
      String,
    ),
    formatAge(queue.oldestSeconds),
    formatAge(queue.longestSeconds),
    queue.waitsFor ?? '-',
  ])
  const widths = columnHeadings.map((head, column) =>
    Math.max(head.length, ...rows.map(row => row[column]!.length)),
  )
  const lineOf = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
      .join('  ')
  return [columnHeadings, ...rows].map(row => `${lineOf(row)}\n`).join('')
}

/** Dead letters, one line each. */
export function formatDeadLetters(letters: readonly DeadLetter[]): string {
  if (letters.length === 0) return 'No dead letters\n'
  return letters
    .map(({ id, queue, diedAt, tries, error }) => {
      const reason = error.replaceAll(/\s+/g, ' ').slice(0, 200) || 'no reason given'
      return `${id}  ${queue}  ${diedAt.toISOString()}  ${tries} tries  ${reason}\n`
    })
    .join('')
}

function formatAge(seconds: number | null): string {
  if (seconds === null) return '-'
  if (seconds < 120) return `${Math.max(0, seconds)} s`
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`
  return `${Math.floor(seconds / 86_400)} days`
}
