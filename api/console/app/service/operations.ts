import { useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { addressOf } from '#api/console/app/address.ts'
import { call } from '#api/console/app/call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { useLater } from '#api/console/app/later.ts'
import { useListing } from '#api/console/app/listing.ts'
import { chip, stateChip } from '#api/console/app/parts/chips.ts'
import { choiceField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, moreButton, waitingNote } from '#api/console/app/parts/states.ts'
import { count, isoOf, momentOf } from '#api/console/app/words.ts'

type Operation = AnswerOf<'GET /v1/operator/operations'>['items'][number]
type State = Operation['state']

const states: readonly (readonly [State | '', string])[] = [
  ['', 'all'],
  ['accepted', 'accepted'],
  ['running', 'running'],
  ['done', 'done'],
  ['failed', 'failed'],
  ['cancelled', 'cancelled'],
]

/** Queued work of all tenants, or of one: how far it is, never what it is about. */
export function ServiceOperations({ account }: { account: string | undefined }): View {
  const [state, setState] = useState<State | ''>('')
  const [kind, setKind] = useState('')
  const asked = useLater(kind.trim())
  const { items, waiting, fault, more, again } = useListing<Operation>(
    (cursor, signal) => {
      const query = {
        limit: 50,
        ...(state && { state }),
        ...(asked && { kind: asked }),
        ...(account && { account_id: account }),
        ...(cursor && { cursor }),
      }
      return call('GET /v1/operator/operations', { query }, signal)
    },
    [state, asked, account],
  )
  return page({
    title: 'Operations of the service',
    words: account
      ? html`Work of one tenant. <a href=${addressOf('service', 'operations')}>Show all</a>`
      : 'Work that was promised to tenants, newest first.',
    actions: html`<button type="button" class="button" onClick=${again}>Refresh</button>`,
    children: html`<div class="stack-wide">
      <div class="panel filters">
        ${choiceField({ label: 'State', value: state, onValue: setState, choices: states })}
        ${textField({ label: 'Kind', type: 'search', value: kind, onValue: setKind, maxlength: 64, placeholder: 'ingest' })}
      </div>
      ${faultNote(fault, again)}
      ${!waiting && !fault && items.length === 0 && nothing(more !== undefined)}
      <ul class="plain rows">
        ${items.map(operation => html`<li key=${operation.operation_id}>${rowOf(operation)}</li>`)}
      </ul>
      ${waiting && items.length === 0 ? waitingNote('operations') : moreButton(more, waiting)}
    </div>`,
  })
}

const nothing = (goesOn: boolean): View =>
  goesOn
    ? emptyNote('None among the newest', 'There are older ones to look through.')
    : emptyNote('No operations', 'Nothing matches.')

const rowOf = ({ kind, state, status, email, created_at, finished_at, progress }: Operation) =>
  html`<article class="row">
    <div class="row-main">
      <p class="row-title">
        ${kind} ${stateChip(state)} ${status !== null && status >= 400 && chip(status, 'bad')}
      </p>
      <p>${email}</p>
      <p class="quiet">
        <time datetime=${isoOf(created_at)}>${momentOf(created_at)}</time>${
          finished_at && `, over ${momentOf(finished_at)}`
        }${
          state === 'running' &&
          progress.total > 0 &&
          `, ${count(progress.done)} of ${count(progress.total)}`
        }
      </p>
    </div>
  </article>`
