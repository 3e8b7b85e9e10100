import { useState } from 'preact/hooks'
import { hrefTo, navigate } from '#api/console/app/address.ts'
import { formatCount, formatDateTime, formatPercent, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, buttonLink } from '#api/console/app/parts/buttons.ts'
import { timeView } from '#api/console/app/parts/chips.ts'
import { lineForm, textField } from '#api/console/app/parts/fields.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { editableList, emptyNote, queryView, row, rows } from '#api/console/app/parts/notes.ts'
import { useCall, usePages } from '#api/console/app/queries.ts'
import type {
  Trace,
  TraceBlock,
  TracedMemory,
  TraceSummary,
} from '#api/contract/generated/types.ts'

/** The latest model calls, or which memories one of them was given. */
export const Traces = ({ id }: { id: string | undefined }): View =>
  id === undefined
    ? renderComponent(TraceList, {})
    : renderComponent(TraceDetail, { trace: id, key: id })

function TraceList(): View {
  const [id, setId] = useState('')
  const list = usePages('GET /v1/traces', { query: { limit: 30 } })
  return page({
    title: 'Answers',
    description: 'Model calls with memory, and which memories each answer was given with.',
    actions: button('Refresh', list.refetch),
    children: html`${lineForm(
      textField({
        label: 'Trace of an answer',
        value: id,
        onValue: setId,
        required: true,
        maxlength: 64,
        placeholder: 'the header X-Memory-Trace',
      }),
      button('Open', undefined, { kind: 'main' }),
      () => navigate('traces', id.trim()),
    )}
    ${editableList(list, {
      what: 'the calls',
      empty: [
        'No calls',
        'A call of a model through this service is listed here for as long as the policy of the account says.',
      ],
      key: ({ trace_id }) => trace_id,
      main: summaryView,
    })}`,
  })
}

/** What a status of a call means. */
const statusWords: Record<TraceSummary['status'], string> = {
  ok: 'memories were given',
  none: 'nothing relevant was found',
  off: 'not asked for',
  degraded: 'went on without memory',
  aside: 'a call that a program made for itself',
}

function summaryView(item: TraceSummary): View {
  const { trace_id: id, created_at, model, memories, status, session_id } = item
  const given = memories > 0 ? pluralize(memories, 'memory', 'memories') : statusWords[status]
  return html`<p class="row-title">
      <a href=${hrefTo('traces', id)} aria-label=${`${model}, ${formatDateTime(created_at)}`}
        >${model}</a
      >
    </p>
    <p class="quiet">${timeView(created_at)}${session_id && `, session ${session_id}`}</p>
    <p>${`${given}, ${formatCount(item.sent_bytes)} bytes sent`}</p>`
}

/** Which memories an answer was given with, why, and what has become of them. */
function TraceDetail({ trace }: { trace: string }): View {
  const query = useCall('GET /v1/traces/:traceId', { params: { traceId: trace } })
  return page({
    title: 'Which memories were used',
    description: `Trace ${trace}`,
    actions: buttonLink('All answers', hrefTo('traces')),
    children: queryView(query, 'the trace', traceView),
  })
}

function traceView(trace: Trace): View {
  const { memories, confidence, revision, model, blocks, texts, left_out: leftOut } = trace
  const counts = Object.entries(leftOut).map(([reason, count]) => `${reason}: ${count}`)
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Memories', formatCount(memories), model)}
      ${confidence !== null && figure('Confidence', formatPercent(confidence), 'that the answer was among them')}
      ${figure('Revision', formatCount(revision), 'of the vault')}
      ${figure('Sent', formatCount(trace.sent_bytes), `bytes of ${formatCount(trace.received_bytes)} received`)}
    </dl>
    ${
      blocks.length === 0 &&
      emptyNote(
        'No memory was used',
        `The call of ${formatDateTime(trace.created_at)} went without.`,
      )
    }
    ${!texts && html`<p class="quiet">The policy of the account shows no texts here.</p>`}
    ${blocks.map(block => blockView(block))}
    ${
      counts.length > 0 &&
      html`<p class="quiet">
        Pieces of the turn that a program wrote, not asked with: ${counts.join(', ')}
      </p>`
    }
  </div>`
}

const blockView = ({ turn, memories }: TraceBlock): View =>
  section(
    turn === null ? 'Given for this message' : `Still in the prompt, of message ${turn + 1}`,
    rows(memories.map(memory => [memory.memory_id, row(tracedView(memory))])),
  )

const stateWords: Record<TracedMemory['state'], string> = {
  same: 'Still in the vault as the model saw it',
  changed: 'Edited since: its words of then are not kept',
  gone: 'Deleted since, or not to be seen with this key',
}

export const reasonWords: Record<NonNullable<TracedMemory['why']>[number], string> = {
  words: 'the same words',
  similarity: 'the same meaning',
  name: 'the name',
  time: 'the time',
  reply: 'the memory that it replies to',
}

const tracedView = ({ memory_id, state, line, why, relevance }: TracedMemory): View =>
  html`${state === 'same' && line && html`<p class="row-title">${line}</p>`}
    <p class="quiet">${stateWords[state]}: ${memory_id}</p>
    ${
      why &&
      html`<p>
        Found by ${why.map(reason => reasonWords[reason]).join(', ')}; relevance ${relevance}
      </p>`
    }`
