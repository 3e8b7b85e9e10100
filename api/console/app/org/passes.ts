import { filled } from '#api/console/app/api-call.ts'
import { formatCount, formatPercent } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip, tagChips, timeView } from '#api/console/app/parts/chips.ts'
import { filters, selectField, textField, useFields } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { listView } from '#api/console/app/parts/notes.ts'
import { useDebounced, useListing } from '#api/console/app/queries.ts'
import type {
  DroppedMemory,
  RetrievalTrail,
  TurnState,
  WriteTrail,
} from '#api/contract/generated/types.ts'

const turnStates: Record<TurnState, [label: string, kind: string]> = {
  waiting: ['waiting', 'busy'],
  done: ['done', 'plain'],
  given_up: ['given up', 'bad'],
}

const stateChoices: (readonly [TurnState | '', string])[] = [
  ['', 'all entries'],
  ...Object.entries(turnStates).map(([state, [label]]) => [state as TurnState, label] as const),
]

type Filters = { author: string; limit: string; state: TurnState | '' }

/** How the passes turned messages into shared memories, and what they dropped. */
export function Passes({ org }: OrgProps): View {
  const { fields, of } = useFields<Filters>({ author: '', limit: '20', state: '' })
  const author = useDebounced(fields.author)
  const query = filled({ limit: Number(fields.limit), author, state: fields.state })
  const trails = useListing(
    'GET /v1/orgs/:orgId/debug/passes',
    { params: { orgId: org }, query },
    ({ passes }) => passes,
  )
  return page({
    title: 'Passes',
    description:
      'What was seen and decided, turn by turn: extracted, tagged, reconciled; or chosen for an answer.',
    actions: button('Refresh', trails.refetch),
    children: html`${filters(
      textField({ label: 'Member', ...of('author'), maxlength: 320 }),
      selectField({ label: 'Show', ...of('state'), choices: stateChoices }),
      selectField({
        label: 'At most',
        ...of('limit'),
        choices: ['20', '50', '200'].map(each => [each, `${each} turns`] as const),
      }),
    )}
    ${listView(trails, {
      what: 'passes',
      empty: ['No trails', 'Turns of members leave one, and so does what they retrieve.'],
      show: passes =>
        html`<ol class="plain">
          ${passes.map(trail => html`<li key=${`${trail.kind} ${trail.turn_id}`} class="memory stack-tight">${trailView(trail)}</li>`)}
        </ol>`,
    })}`,
  })
}

const trailView = (trail: WriteTrail | RetrievalTrail): View =>
  html`<header class="memory-head chips">
      ${trail.kind === 'write' ? chip('Write', 'reflection') : chip('Retrieval', 'raw')}
      ${trail.kind === 'write' && chip(...turnStates[trail.state])}
      <span class="memory-who">${trail.author}</span>
      ${timeView(trail.created_at)}
    </header>
    ${trail.kind === 'write' ? writeView(trail) : retrievalView(trail)}`

const writeView = ({ left_out: leftOut, withheld, pass1, pass2, pass3 }: WriteTrail): View =>
  html`<div class="passes">
    ${leftOut > 0 && html`<p class="quiet">Not looked through: ${formatCount(leftOut)} characters</p>`}
    ${withheld && html`<p class="quiet">An anti-rule kept the ${withheld} from the model</p>`}
    ${passView(
      '1 Extracted',
      pass1,
      ({ text, confidence, note }) =>
        html`${text}${' '}
          <span class="quiet">${formatPercent(confidence)}${note && ', as a note'}</span>`,
    )}
    ${passView(
      '2 Tagged',
      pass2,
      ({ text, tags, confidence }) =>
        html`${text} ${tagChips(tags)} <span class="quiet">${formatPercent(confidence)}</span>`,
    )}
    ${passView('3 Reconciled', pass3, ({ text, action }) => html`${chip(action, actionKinds[action])} ${text}`)}
  </div>`

const actionKinds = { ADD: 'good', UPDATE: 'busy', NONE: 'plain' }

const passView = <Fact>(title: string, facts: Fact[] | null, show: (fact: Fact) => View): View =>
  html`<section>
    <h2 class="quiet">${title}</h2>
    ${
      facts === null || facts.length === 0
        ? html`<p class="quiet">${facts === null ? 'Not yet' : 'Nothing'}</p>`
        : html`<ul>
            ${facts.map((fact, index) => html`<li key=${index}>${show(fact)}</li>`)}
          </ul>`
    }
  </section>`

function retrievalView(trail: RetrievalTrail): View {
  const denied =
    trail.denied === null
      ? 'not known what was kept from it'
      : `${formatCount(trail.denied)} relevant kept from it`
  return html`<div class="stack">
    ${trail.request && html`<p>${`${trail.request}: given ${formatCount(trail.returned)}, ${denied}.`}</p>`}
    ${hiddenList('What was kept from this request', trail.denied_memories)}
    <p>
      ${`Of all: ${formatCount(trail.permitted)} permitted, ${formatCount(trail.dropped)} kept back. Allowed: `}
      ${trail.wildcard ? chip('every tag', 'high') : tagChips(trail.allowed_tags)}
    </p>
    ${hiddenList('Some of what was kept back', trail.dropped_sample)}
  </div>`
}

const hiddenList = (title: string, memories: DroppedMemory[] | null | undefined): View | false =>
  memories !== null &&
  memories !== undefined &&
  memories.length > 0 &&
  html`<details>
    <summary>${title}</summary>
    <ul>
      ${memories.map(
        ({ mem_id, tags }) =>
          html`<li key=${mem_id}><code>${mem_id.slice(-8)}</code> ${tagChips(tags)}</li>`,
      )}
    </ul>
  </details>`
