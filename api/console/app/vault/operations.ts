import { useEffect, useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { mayWrite } from '#api/console/app/credential.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { useListing } from '#api/console/app/listing.ts'
import { stateChip } from '#api/console/app/parts/chips.ts'
import { choiceField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, waitingNote } from '#api/console/app/parts/states.ts'
import { say } from '#api/console/app/said.ts'
import { count, isoOf, momentOf } from '#api/console/app/words.ts'

type Operation = AnswerOf<'GET /v1/operations/:id'>
type State = Operation['state']

const states: readonly (readonly [State | '', string])[] = [
  ['', 'all'],
  ['accepted', 'accepted'],
  ['running', 'running'],
  ['done', 'done'],
  ['failed', 'failed'],
  ['cancelled', 'cancelled'],
]

/** Work that was accepted: how far it is, and what came of it. */
export function Operations(): View {
  const [state, setState] = useState<State | ''>('')
  const { items, waiting, fault, more, again, change } = useListing<Operation>(
    (cursor, signal) => {
      const query = { limit: 30, ...(state && { state }), ...(cursor && { cursor }) }
      return call('GET /v1/operations', { query }, signal)
    },
    [state],
  )
  const changed = (operation: Operation): void =>
    change(all => all.map(one => (one.operation_id === operation.operation_id ? operation : one)))
  return page({
    title: 'Operations',
    words: 'Every piece of work the service promised to this account.',
    actions: html`<button type="button" class="button" onClick=${again}>Refresh</button>`,
    children: html`<div class="stack-wide">
      <div class="panel filters">
        ${choiceField({ label: 'State', value: state, onValue: setState, choices: states })}
      </div>
      ${faultNote(fault, again)}
      ${
        !waiting &&
        !fault &&
        items.length === 0 &&
        emptyNote('No operations', 'Storing, uploads, imports and deletions are listed here.')
      }
      <ul class="plain rows">
        ${items.map(
          operation =>
            html`<li key=${operation.operation_id}>${part(Row, { operation, changed })}</li>`,
        )}
      </ul>
      ${waiting && items.length === 0 ? waitingNote('operations') : moreButton(more, waiting)}
    </div>`,
  })
}

const unfinished = new Set<State>(['accepted', 'running'])
const lookMs = 2_000

type RowProps = { operation: Operation; changed: (operation: Operation) => void }

function Row({ operation, changed }: RowProps): View {
  const { operation_id: id, kind, state, progress, session_id, created_at, outcome } = operation
  const doing = useDoing()
  useEffect(() => {
    if (!unfinished.has(state)) return undefined
    const timer = setTimeout(() => {
      // What cannot be read now is looked for again by the next refresh.
      call('GET /v1/operations/:id', { params: { id } }).then(changed, () => undefined)
    }, lookMs)
    return () => clearTimeout(timer)
  }, [operation])
  const cancel = async (): Promise<void> => {
    changed(await call('DELETE /v1/operations/:id', { params: { id } }))
    say('The operation is cancelled.')
  }
  return html`<article class="row">
    <div class="row-main">
      <p class="row-title">${kind} ${stateChip(state)}</p>
      <p class="quiet">
        <time datetime=${isoOf(created_at)}>${momentOf(created_at)}</time>
        ${session_id && `, session ${session_id}`}
      </p>
      ${unfinished.has(state) && progressBar(progress, kind)}
      ${outcome && state === 'failed' && html`<p class="fault-words">${errorOf(outcome.body)}</p>`}
      ${faultNote(doing.fault)}
      ${
        outcome &&
        html`<details>
          <summary>Outcome (${outcome.status})</summary>
          <pre class="code" tabindex="0">${JSON.stringify(outcome.body, null, 2)}</pre>
        </details>`
      }
    </div>
    ${
      state === 'accepted' &&
      mayWrite() &&
      html`<button
        type="button"
        class="button"
        disabled=${doing.busy}
        aria-label=${`Cancel ${kind} of ${momentOf(created_at)}`}
        onClick=${() => doing.run(cancel)}
      >
        Cancel
      </button>`
    }
  </article>`
}

const progressBar = ({ done, total }: Operation['progress'], what: string): View =>
  html`<div class="progress">
    <progress
      max=${Math.max(1, total)}
      value=${done}
      aria-label=${`Progress of ${what}`}
    ></progress>
    <span class="quiet">${count(done)} of ${count(total)}</span>
  </div>`

const errorOf = (body: object): string =>
  'error' in body && typeof body.error === 'string' ? body.error : 'It failed'
