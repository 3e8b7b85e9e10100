import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { call } from '#api/console/app/api-call.ts'
import { formatCount, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { reasonChips } from '#api/console/app/vault/match-reasons.ts'
import { copyButton } from '#api/console/app/parts/copy-button.ts'
import { onSubmit, selectField, textAreaField, textField } from '#api/console/app/parts/fields.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, loadingNote } from '#api/console/app/parts/query-view.ts'
import { useAction } from '#api/console/app/use-query.ts'
import type { MatchReason } from '#api/contract/generated/types.ts'

type Prepared = EndpointResponse<'POST /v1/memory/prepare'>

const densities = [
  ['low', 'low: 12 memories'],
  ['default', 'default: 30'],
  ['high', 'high: 60'],
  ['xhigh', 'very high: 120'],
] as const

type Density = (typeof densities)[number][0]

/** Why a message gets no block, and what to try. */
const reasons: Record<NonNullable<Prepared['abstained']>, readonly [string, string]> = {
  asks_nothing: ['The message asks nothing', 'A greeting or thanks gets no memories.'],
  nothing_relevant: [
    'Nothing that is remembered has to do with it',
    'The model gets the message alone. Search shows what comes nearest.',
  ],
  off: ['The key may not read', 'The model gets the message alone.'],
  nothing_then: [
    'Nothing is remembered of the time that it names',
    'The model gets the message alone.',
  ],
}

/** Shows what a model would be given beside a message, without calling one. */
export function Prompt(): View {
  const [message, setMessage] = useState('')
  const [density, setDensity] = useState<Density>('default')
  const [session, setSession] = useState('')
  const [asOf, setAsOf] = useState('')
  const [prepared, setPrepared] = useState<Prepared>()
  const actionState = useAction()
  const prepare = async (): Promise<void> => {
    setPrepared(
      await call('POST /v1/memory/prepare', {
        body: {
          messages: [{ role: 'user', content: message }],
          density,
          ...(session && { session_id: session }),
          ...(asOf && { as_of: asOf }),
        },
      }),
    )
  }
  return page({
    title: 'What the model sees',
    description:
      'The block that a message of the user would bring into the prompt. No model is called.',
    children: html`<form class="panel stack" onSubmit=${onSubmit(() => actionState.run(prepare))}>
        ${textAreaField({
          label: 'Message of the user',
          value: message,
          onValue: setMessage,
          rows: 3,
          required: true,
          maxlength: 32_000,
        })}
        <div class="filters">
          ${selectField({ label: 'Density', value: density, onValue: setDensity, choices: densities })}
          ${textField({
            label: 'Session',
            value: session,
            onValue: setSession,
            maxlength: 256,
            placeholder: 'the core vault',
          })}
          ${textField({ label: 'As of', type: 'date', value: asOf, onValue: setAsOf })}
        </div>
        <div class="actions">
          <button class="button button-main" disabled=${actionState.isRunning}>Show</button>
        </div>
      </form>
      ${faultNote(actionState.fault)}
      ${actionState.isRunning && !prepared && loadingNote('the block')}
      <div aria-live="polite">${prepared && preparedView(prepared)}</div>`,
  })
}

function preparedView(prepared: Prepared): View {
  const { context, abstained, memories_found, memory_tokens, retrieval_tokens, confidence } =
    prepared
  if (context === null) return emptyNote(...reasons[abstained ?? 'nothing_relevant'])
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Memories', formatCount(memories_found), 'oldest first')}
      ${figure('Tokens', formatCount(memory_tokens), `${pluralize(retrieval_tokens, 'token')} of memories`)}
      ${figure('Confidence', `${Math.round(confidence * 100)} %`, 'that the answer is among them')}
      ${figure('Prepared in', `${Math.round(prepared.metrics.total_ms)} ms`)}
    </dl>
    ${section(
      'Why each memory is there',
      html`<ol class="plain rows">
        ${explainLines(context, prepared.memories).map(
          line => html`<li key=${line.id} class="row">${lineView(line)}</li>`,
        )}
      </ol>`,
    )}
    ${section(
      'The block, word for word',
      html`<pre class="code prompt-block" tabindex="0">${context}</pre>`,
      copyButton({ label: 'Copy the block', text: context }),
    )}
  </div>`
}

type ExplainedLine = {
  id: string
  /** What the line says of its time and speaker. */
  head: string
  text: string
  score: number
  why: readonly MatchReason[]
}

/** Each line of the block with what is answered beside it, in the order of the block. */
function explainLines(context: string, memories: Prepared['memories']): ExplainedLine[] {
  const lines = context.split('\n').filter(line => line.startsWith('['))
  return memories.map(({ memory_id: id, score, why }, index) => {
    const line = lines[index] ?? ''
    const end = line.indexOf('] ')
    return { id, head: line.slice(1, end), text: line.slice(end + 2), score, why }
  })
}

const lineView = ({ id, head, text, score, why }: ExplainedLine): View =>
  html`<div class="row-main">
      <p class="memory-text">${text}</p>
      <p class="quiet">${head}</p>
    </div>
    <div class="why">
      <span class="why-score">
        <meter min="0" max="1" value=${score} aria-label="Score"></meter>
        <span>${score.toFixed(2)} score</span>
      </span>
      ${reasonChips(why)}
      ${copyButton({ label: 'Copy id', text: id, title: `Copy id: ${text.slice(0, 60)}`, plain: true })}
    </div>`
