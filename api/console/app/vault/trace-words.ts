import { formatCost, formatCount, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import type { TracedMemory, TraceSummary } from '#api/contract/generated/types.ts'

export const wayNames: Record<TraceSummary['way'], string> = {
  proxy: 'Model call',
  prepare: 'Prepare',
  search: 'Search',
  mcp: 'MCP tool',
}

const abstentions: Record<NonNullable<TraceSummary['abstained']>, readonly [string, string]> = {
  asks_nothing: ['asks nothing', 'A greeting or thanks gets no memories'],
  nothing_relevant: ['nothing relevant', 'What is remembered has nothing to do with it'],
  nothing_then: ['nothing from then', 'Nothing is remembered of the time that it names'],
  no_answer: ['no answer', 'Memories match, but none is likely to answer'],
  already_told: ['already told', 'The conversation has it already'],
}

const statuses: Record<TraceSummary['status'], readonly [string, colour: string, string]> = {
  ok: ['given', 'plain', 'Memories were given'],
  none: ['nothing relevant', 'plain', 'Nothing that is remembered fits'],
  off: ['off', 'plain', 'Memory was not asked for'],
  degraded: ['degraded', 'bad', 'Memory could not be read in time: the call went on without'],
  aside: ['aside', 'plain', 'A call that a program made for itself'],
}

/** What came of a call; one that failed, or went on without memory, is red. */
export function statusChip({ status, abstained, error, answer_status: code }: TraceSummary): View {
  if (error)
    return chip(`${code ?? 'failed'} from ${error.from ?? 'this service'}`, 'bad', error.words)
  const [words, colour, title] = statuses[status]
  if (status !== 'none' || !abstained) return chip(words, colour, title)
  const [reason, why] = abstentions[abstained]
  return chip(reason, 'plain', why)
}

/** Whether a call ended otherwise than calls should: only this wears a colour in a list. */
export const isException = ({ error, status }: TraceSummary): boolean =>
  error !== null || status === 'degraded'

/** What memory did for a call, in a word or two. */
export function outcomeWords({ status, abstained, memories, tokens }: TraceSummary): View {
  const words =
    status === 'ok'
      ? pluralize(memories, 'memory', 'memories')
      : status === 'none' && abstained
        ? abstentions[abstained][0]
        : statuses[status][0]
  return html`<span title=${status === 'ok' ? pluralize(tokens, 'token') : undefined}
    >${words}</span
  >`
}

export const givenWords = ({ memories, tokens }: TraceSummary): string =>
  memories === 0
    ? 'no memories'
    : `${pluralize(memories, 'memory', 'memories')} of ${pluralize(tokens, 'token')}`

/** `12 ms`, `1.3 s`. */
export const formatMs = (ms: number): string =>
  ms < 1_000 ? `${formatCount(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`

export const latencyWords = ({ recall, total }: TraceSummary['latency']): string =>
  [
    total === null ? '' : formatMs(total),
    recall === null || recall === total ? '' : `recall ${formatMs(recall)}`,
  ]
    .filter(Boolean)
    .join(', ')

/** What the model cost; empty where none was called. */
export const costWords = ({ model, cost_usd: cost }: TraceSummary): string =>
  model === null ? '' : formatCost(cost)

export const reasonWords: Record<NonNullable<TracedMemory['why']>[number], string> = {
  words: 'the same words',
  similarity: 'the same meaning',
  name: 'the name',
  time: 'the time',
  context: 'a memory beside it',
}
