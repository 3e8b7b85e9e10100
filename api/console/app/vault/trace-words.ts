import { formatCost, formatCount, formatSeconds, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import table from '#api/console/app/vault/trace-words.json' with { type: 'json' }
import type { TracedMemory, TraceSummary } from '#api/contract/generated/types.ts'

type Words = readonly [words: string, title: string]

const words = table as unknown as {
  ways: Record<TraceSummary['way'], string>
  abstentions: Record<NonNullable<TraceSummary['abstained']>, Words>
  statuses: Record<TraceSummary['status'], Words>
  reasons: Record<NonNullable<TracedMemory['why']>[number], string>
  filters: Record<
    'of' | 'user' | 'status' | 'way' | 'session' | 'model' | 'since' | 'until',
    string
  >
  outcomes: [TraceSummary['status'] | 'failed' | '', string][]
}
export const wayNames = words.ways
export const reasonWords = words.reasons
export const filterNames = words.filters
export const statusChoices = words.outcomes
const { abstentions, statuses } = words

/** `429 from openai`: what a call that failed was answered, and by whom. */
export const failureOf = (call: Pick<TraceSummary, 'error' | 'answer_status'>): string =>
  `${call.answer_status ?? 'failed'} from ${call.error?.from ?? 'this service'}`

/** What came of a call; one that failed, or went on without memory, is red. */
export function statusChip({ status, abstained, error, answer_status: code }: TraceSummary): View {
  if (error) return chip(failureOf({ error, answer_status: code }), 'bad', error.words)
  const [words, title] = statuses[status]
  const colour = status === 'degraded' ? 'bad' : 'plain'
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
    : `${pluralize(memories, 'memory', 'memories')}, ${pluralize(tokens, 'token')}`

/** `12 ms`, `1.3 s`, `3 min`. */
export function formatMs(ms: number): string {
  if (ms >= 60_000) return formatSeconds(ms / 1_000)
  return ms < 1_000 ? `${formatCount(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}

export const latencyWords = ({ recall, total }: TraceSummary['latency']): string =>
  [
    total === null ? '' : formatMs(total),
    recall === null || recall === total ? '' : `recall ${formatMs(recall)}`,
  ]
    .filter(Boolean)
    .join(', ')

/** What the model cost; empty where none was called, or none answered. */
export const costWords = ({ model, cost_usd: cost, error }: TraceSummary): string =>
  model === null || (error && cost === null) ? '' : formatCost(cost)
