import {
  formatCost,
  formatCount,
  formatDateTime,
  formatPercent,
  pluralize,
} from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { copyButton } from '#api/console/app/parts/buttons.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView, row, rows } from '#api/console/app/parts/notes.ts'
import { legend } from '#api/console/app/parts/stacked-bars.ts'
import { useCall, useQuery } from '#api/console/app/queries.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import { partsOf, saidView } from '#api/console/app/vault/given.ts'
import { listSessions, sessionsSwitch, sumOf } from '#api/console/app/vault/session-rows.ts'
import { Nearest } from '#api/console/app/vault/nearest.ts'
import { formatMs, reasonWords, statusChip, wayNames } from '#api/console/app/vault/trace-words.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type { Trace, TraceBlock, TracedMemory } from '#api/contract/generated/types.ts'

/** A call: what was asked and answered, what was recalled for it and why, what was left out, and what it took. */
export function TraceDetail({ trace }: { trace: string }): View {
  const query = useCall('GET /v1/traces/:traceId', { params: { traceId: trace } })
  const { question } = query.answer ?? {}
  return page({
    title: question?.slice(0, titleMax) ?? 'Call',
    children: html`${queryView(query, 'the call', trace => traceView(trace, titleMax))}
      <p class="quiet chips">
        <span>Trace</span> <code>${trace}</code>
        ${copyButton('Copy', trace, { kind: 'link', about: 'the trace' })}
      </p>`,
  })
}

const titleMax = 90

export function TraceBody({ trace }: { trace: string }): View | null {
  const query = useCall('GET /v1/traces/:traceId', { params: { traceId: trace } })
  return queryView(query, 'the call', trace => traceView(trace))
}

/** @param titled characters of a question that stands above as the title */
function traceView(trace: Trace, titled = 0): View {
  const {
    memories,
    confidence,
    model,
    blocks,
    texts,
    question,
    answer,
    session_id: session,
  } = trace
  const { input_tokens: input, output_tokens: output } = trace
  return html`<div class="stack-wide">
    <p class="chips">
      ${statusChip(trace)} ${chip(wayNames[trace.way])} ${model && chip(model)}
      ${session && chip(session, 'accent', 'Session')}
      <span class="quiet">${formatDateTime(trace.created_at)}</span>
    </p>
    ${question && question.length > titled && saidView(trace.way === 'search' ? 'Searched' : 'Asked', 'user', question)}
    ${answer && saidView('Answer', 'assistant', answer)}
    ${
      trace.error &&
      html`<div class="fault stack-tight">
        <p class="fault-words">
          ${`${trace.error.from ?? 'This service'} answered ${trace.answer_status ?? 'with a failure'}.`}
        </p>
        ${trace.error.words && html`<p>${trace.error.words}</p>`}
      </div>`
    }
    ${
      !texts
        ? html`<p class="quiet">The policy of the account shows no texts here.</p>`
        : !question && html`<p class="quiet">No words of this call are kept.</p>`
    }
    <dl class="figures">
      ${figure('Memories', formatCount(memories), leftOutWords(trace))}
      ${figure('Memory tokens', formatCount(trace.tokens), trace.way === 'proxy' ? 'in the prompt' : 'returned')}
      ${confidence !== null && figure('Confidence', formatPercent(confidence), 'that the answer was among them')}
      ${
        model !== null &&
        !(trace.error && input === null) &&
        figure(
          'Model tokens',
          input === null ? 'not known' : formatCount(input),
          output === null ? 'input' : `input, and ${formatCount(output)} output`,
        )
      }
      ${trace.latency.total !== null && figure('Took', formatMs(trace.latency.total))}
      ${model !== null && !(trace.error && input === null) && figure('Cost', formatCost(trace.cost_usd), 'of the model')}
    </dl>
    ${latencyView(trace.latency)}
    ${
      blocks.length === 0 &&
      emptyNote(
        'No memory was given',
        `The call of ${formatDateTime(trace.created_at)} went without.`,
      )
    }
    ${renderComponent(UnreadSessions, { session })}
    ${blocks.map(block => blockView(block, trace.way))} ${piecesView(trace.left_out)}
    ${renderComponent(Nearest, { trace })}
  </div>`
}

/** Sessions of the vault whose memories the call did not read. */
function UnreadSessions({ session }: { session: string | null }): View | null {
  const user = useVaultUser()
  const sessions = useQuery(signal => listSessions(user, signal), [user])
  const unread = sessions.answer?.filter(({ session_id: id }) => id !== session) ?? []
  const memories = sumOf(unread)
  if (memories === 0) return null
  return html`<p class="notice">
    ${`${pluralize(memories, 'memory', 'memories')} of this vault ${memories === 1 ? 'lies' : 'lie'} in ${pluralize(unread.length, 'session')} that this call did not read. `}
    ${sessionsSwitch()}
  </p>`
}

const leftOutWords = ({ left_out_memories: count, way }: Trace): string =>
  count === 0
    ? 'all that answered had room'
    : `${pluralize(count, 'more', 'more')} ${way === 'search' || way === 'mcp' ? 'beyond the limit' : 'had no room, or stood there already'}`

/** Pieces of the turn that are not a person's words. */
function piecesView(leftOut: Trace['left_out']): View | null {
  const counts = Object.entries(leftOut).map(([reason, count]) => `${reason}: ${count}`)
  if (counts.length === 0) return null
  return html`<p class="quiet">
    Pieces of the turn that a program wrote, not asked with: ${counts.join(', ')}
  </p>`
}

/** The time of a call by its parts, as one bar with a legend; null where it is not known. */
function latencyView({ recall, provider, total }: Trace['latency']): View | null {
  if (!total || (recall === null && provider === null)) return null
  const rest = Math.max(0, total - (recall ?? 0) - (provider ?? 0))
  const parts = [
    ['Recall', recall, 'accent'],
    ['Model', provider, 'reflection'],
    ['Everything else', rest, 'line-strong'],
  ] as const
  const known = parts.flatMap(([name, ms, colour]) => (ms === null ? [] : [{ name, ms, colour }]))
  return section(
    `Where ${formatMs(total)} went`,
    html`<div class="time-bar" aria-hidden="true">
        ${known.map(
          ({ name, ms, colour }) =>
            html`<span
              key=${name}
              style=${{ flexGrow: ms, background: `var(--${colour})` }}
            ></span>`,
        )}
      </div>
      ${legend(known.map(({ name, ms, colour }) => [`${name} ${formatMs(ms)}`, colour]))}`,
  )
}

const blockView = ({ turn, memories }: TraceBlock, way: Trace['way']): View =>
  section(
    turn !== null
      ? `Still in the prompt, of message ${turn + 1}`
      : way === 'search'
        ? 'Found, best first'
        : 'Recalled',
    rows(
      memories
        .toSorted((one, other) => (other.relevance ?? 0) - (one.relevance ?? 0))
        .map(memory => [memory.memory_id, row(tracedView(memory))]),
    ),
  )

const stateWords: Record<TracedMemory['state'], string> = words.traced

const tracedView = ({ memory_id, state, line, why, relevance }: TracedMemory): View =>
  html`${
    state === 'same' &&
    line &&
    html`<p>${partsOf(line).text}</p>
      <p class="quiet">${partsOf(line).about}</p>`
  }
  ${state !== 'same' && html`<p class="quiet">${stateWords[state]}: ${memory_id}</p>`}
  ${
    why &&
    html`<p class="chips">
      <b>${relevance?.toFixed(2)}</b> <span class="quiet">found by</span>
      ${why.map(reason => chip(reasonWords[reason]))}
    </p>`
  }`
