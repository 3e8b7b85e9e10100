import { useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { useAsked } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { useLater } from '#api/console/app/later.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { choiceField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, shown } from '#api/console/app/parts/states.ts'
import type { OfOrg } from '#api/console/app/org/own.ts'
import { SharedHistory } from '#api/console/app/org/shared-history.ts'
import { isoOf, momentOf } from '#api/console/app/words.ts'

type Event = AnswerOf<'GET /v1/orgs/:orgId/audit'>['events'][number]
type Action = Event['action']

const actions: readonly (readonly [Action | '', string])[] = [
  ['', 'all'],
  ['create', 'created'],
  ['update', 'changed'],
  ['retag', 'tagged anew'],
  ['delete', 'deleted'],
]
const kinds: Record<Action, string> = {
  create: 'good',
  update: 'busy',
  retag: 'tag',
  delete: 'bad',
}

/** What happened to the shared memories, and whose doing it was. */
export function Audit({ org }: OfOrg): View {
  const [actor, setActor] = useState('')
  const [action, setAction] = useState<Action | ''>('')
  const [since, setSince] = useState('')
  const [limit, setLimit] = useState(50)
  const [opened, setOpened] = useState<string>()
  const asked = useLater(actor)
  const found = useAsked(
    signal => {
      const query = {
        limit,
        ...(asked && { actor: asked }),
        ...(action && { action }),
        ...(since && { since: Date.parse(since) }),
      }
      return call('GET /v1/orgs/:orgId/audit', { params: { orgId: org }, query }, signal)
    },
    [org, asked, action, since, limit],
  )
  return page({
    title: 'Audit',
    words: 'Every change of a shared memory, newest first.',
    children: html`<div class="stack">
      <div class="panel filters" role="group" aria-label="Filters">
        ${textField({ label: 'Actor', value: actor, onValue: setActor, maxlength: 320 })}
        ${choiceField({ label: 'What', value: action, onValue: setAction, choices: actions })}
        ${textField({ label: 'Since', type: 'date', value: since, onValue: setSince })}
      </div>
      ${shown(found, 'the audit', ({ events }) =>
        events.length === 0
          ? emptyNote('Nothing happened', 'Changes of shared memories appear here.')
          : html`<ol class="plain rows">
              ${events.map(event => html`<li key=${event.event_id}>${eventRow(event, setOpened)}</li>`)}
            </ol>`,
      )}
      ${
        found.answer &&
        found.answer.count === limit &&
        limit < 500 &&
        html`<div class="more">
          <button type="button" class="button" onClick=${() => setLimit(500)}>
            Show up to 500
          </button>
        </div>`
      }
      ${
        opened !== undefined &&
        part(SharedHistory, {
          org,
          id: opened,
          onClose: () => setOpened(undefined),
          onRestored: found.again,
        })
      }
    </div>`,
  })
}

const eventRow = ({ action, actor, mem_id, created_at }: Event, open: (id: string) => void): View =>
  html`<article class="row">
    <div class="row-main">
      <p>${chip(actions.find(([name]) => name === action)![1], kinds[action])} <b>${actor}</b></p>
      <p class="quiet">
        <time datetime=${isoOf(created_at)}>${momentOf(created_at)}</time>, memory
        <code>${mem_id.slice(-8)}</code>
      </p>
    </div>
    <button
      type="button"
      class="button"
      aria-label=${`History of memory ${mem_id.slice(-8)}`}
      onClick=${() => open(mem_id)}
    >
      History
    </button>
  </article>`
