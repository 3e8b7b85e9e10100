import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { useDebounced } from '#api/console/app/use-debounced.ts'
import { chip, tagChips } from '#api/console/app/parts/chips.ts'
import { selectField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { formatCount, toIsoString, formatDateTime, formatPercent } from '#api/console/app/format.ts'

type PassRecord = EndpointResponse<'GET /v1/orgs/:orgId/debug/passes'>['passes'][number]
type WriteRecord = Extract<PassRecord, { kind: 'write' }>
type TurnState = WriteRecord['state']
type RetrievalRecord = Extract<PassRecord, { kind: 'retrieval' }>

/** How the passes turned messages into shared memories, and what they dropped. */
export function Passes({ org }: OrgProps): View {
  const [author, setAuthor] = useState('')
  const [limit, setLimit] = useState('20')
  const [state, setState] = useState<'' | TurnState>('')
  const debouncedAuthor = useDebounced(author)
  const passesQuery = useQuery(
    signal => {
      const query = {
        limit: Number(limit),
        ...(debouncedAuthor && { author: debouncedAuthor }),
        ...(state && { state }),
      }
      return call('GET /v1/orgs/:orgId/debug/passes', { params: { orgId: org }, query }, signal)
    },
    [org, debouncedAuthor, limit, state],
  )
  return page({
    title: 'Passes',
    description:
      'What was seen and decided, turn by turn: extracted, tagged, reconciled; or chosen for an answer.',
    actions: html`<button type="button" class="button" onClick=${passesQuery.refetch}>
      Refresh
    </button>`,
    children: html`<div class="stack">
      <div class="panel filters" role="group" aria-label="Filters">
        ${textField({ label: 'Member', value: author, onValue: setAuthor, maxlength: 320 })}
        ${selectField({
          label: 'Show',
          value: state,
          onValue: setState,
          choices: [['', 'all entries'], ...Object.entries(turnStates)] as [
            '' | TurnState,
            string,
          ][],
        })}
        ${selectField({
          label: 'At most',
          value: limit,
          onValue: setLimit,
          choices: ['20', '50', '200'].map(each => [each, `${each} turns`] as const),
        })}
      </div>
      ${queryView(passesQuery, 'passes', ({ passes }) =>
        passes.length === 0
          ? emptyNote('No trails', 'Turns of members leave one, and so does what they retrieve.')
          : html`<ol class="plain">
              ${passes.map(
                trail =>
                  html`<li key=${`${trail.kind} ${trail.turn_id}`} class="memory">
                    <header class="memory-head">
                      ${trail.kind === 'write' ? chip('Write', 'reflection') : chip('Retrieval', 'raw')}
                      ${trail.kind === 'write' && chip(turnStates[trail.state], stateKinds[trail.state])}
                      <span class="memory-who">${trail.author}</span>
                      <time datetime=${toIsoString(trail.created_at)}
                        >${formatDateTime(trail.created_at)}</time
                      >
                    </header>
                    ${trail.kind === 'write' ? writeView(trail) : retrievalView(trail)}
                  </li>`,
              )}
            </ol>`,
      )}
    </div>`,
  })
}

const turnStates: Record<TurnState, string> = {
  waiting: 'waiting',
  done: 'done',
  given_up: 'given up',
}
const stateKinds = { waiting: 'busy', done: 'plain', given_up: 'bad' } as const

const writeView = ({ left_out: leftOut, withheld, pass1, pass2, pass3 }: WriteRecord): View =>
  html`<div class="passes">
    ${leftOut > 0 && html`<p class="quiet">Not looked through: ${formatCount(leftOut)} characters</p>`}
    ${withheld && html`<p class="quiet">An anti-rule kept the ${withheld} from the model</p>`}
    ${passView(
      '1 Extracted',
      pass1,
      ({ text, confidence, note }) =>
        html`${text}
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
    <h3>${title}</h3>
    ${
      facts === null
        ? html`<p class="quiet">Not yet</p>`
        : facts.length === 0
          ? html`<p class="quiet">Nothing</p>`
          : html`<ul>
              ${facts.map((fact, index) => html`<li key=${index}>${show(fact)}</li>`)}
            </ul>`
    }
  </section>`

const retrievalView = (trail: RetrievalRecord): View =>
  html`<div class="stack">
    ${
      trail.request &&
      html`<p>
        ${trail.request}: given ${formatCount(trail.returned)},${' '}
        ${trail.denied === null ? 'not known what was kept from it' : `${formatCount(trail.denied)} relevant kept from it`}.
      </p>`
    }
    ${
      trail.denied_memories &&
      trail.denied_memories.length > 0 &&
      html`<details>
        <summary>What was kept from this request</summary>
        ${hiddenList(trail.denied_memories)}
      </details>`
    }
    <p>
      Of all: ${formatCount(trail.permitted)} permitted, ${formatCount(trail.dropped)} kept back.
      Allowed:${' '} ${trail.wildcard ? chip('every tag', 'high') : tagChips(trail.allowed_tags)}
    </p>
    ${
      trail.dropped_sample.length > 0 &&
      html`<details>
        <summary>Some of what was kept back</summary>
        ${hiddenList(trail.dropped_sample)}
      </details>`
    }
  </div>`

const hiddenList = (memories: RetrievalRecord['dropped_sample']): View =>
  html`<ul>
    ${memories.map(
      ({ mem_id, tags }) =>
        html`<li key=${mem_id}><code>${mem_id.slice(-8)}</code> ${tagChips(tags)}</li>`,
    )}
  </ul>`
