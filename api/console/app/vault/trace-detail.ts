import type { EndpointResponse } from '#api/client/client.ts'
import { call } from '#api/console/app/api-call.ts'
import { formatCount, formatDateTime } from '#api/console/app/format.ts'
import { hrefTo } from '#api/console/app/hash-route.ts'
import { html, type View } from '#api/console/app/html.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import { useQuery } from '#api/console/app/use-query.ts'

type Trace = EndpointResponse<'GET /v1/traces/:traceId'>
type Block = Trace['blocks'][number]
type Told = Block['memories'][number]

/** Which memories an answer was given with, why, and what has become of them. */
export function TraceDetail({ trace }: { trace: string }): View {
  const query = useQuery(
    signal => call('GET /v1/traces/:traceId', { params: { traceId: trace } }, signal),
    [trace],
  )
  return page({
    title: 'Which memories were used',
    description: `Trace ${trace}`,
    actions: html`<a class="button" href=${hrefTo('traces')}>All answers</a>`,
    children: queryView(query, 'the trace', traceView),
  })
}

function traceView(trace: Trace): View {
  const { memories, confidence, revision, model, blocks, texts } = trace
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Memories', formatCount(memories), model)}
      ${confidence !== null && figure('Confidence', `${Math.round(confidence * 100)} %`, 'that the answer was among them')}
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
    ${blocks.map(block => blockView(block))} ${leftOutView(trace.left_out)}
  </div>`
}

const blockView = (block: Block): View =>
  section(
    block.turn === null
      ? 'Given for this message'
      : `Still in the prompt, of message ${block.turn + 1}`,
    html`<ul class="plain rows">
      ${block.memories.map(
        memory =>
          html`<li key=${memory.memory_id}><article class="row">${toldView(memory)}</article></li>`,
      )}
    </ul>`,
  )

const stateWords: Record<Told['state'], string> = {
  same: 'Still in the vault as it was told',
  changed: 'Edited since: its words of then are not kept',
  gone: 'Deleted since, or not to be seen with this key',
}

const reasonWords: Record<NonNullable<Told['why']>[number], string> = {
  words: 'the same words',
  similarity: 'the same meaning',
  name: 'the name',
  time: 'the time',
  reply: 'what was said beside it',
}

const toldView = ({ memory_id, state, line, why, relevance }: Told): View =>
  html`<div class="row-main">
    ${state === 'same' && line && html`<p class="row-title">${line}</p>`}
    <p class="quiet">${stateWords[state]}: ${memory_id}</p>
    ${why && html`<p>Found by ${why.map(reason => reasonWords[reason]).join(', ')}; relevance ${relevance}</p>`}
  </div>`

function leftOutView(leftOut: Trace['left_out']): View | false {
  const counts = Object.entries(leftOut)
  if (counts.length === 0) return false
  const words = counts.map(([reason, count]) => `${reason}: ${count}`).join(', ')
  return html`<p class="quiet">
    Pieces of the turn that a program wrote, not asked with: ${words}
  </p>`
}
