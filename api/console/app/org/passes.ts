import { useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { useAsked } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { useLater } from '#api/console/app/later.ts'
import { chip, tagChips } from '#api/console/app/parts/chips.ts'
import { choiceField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, shown } from '#api/console/app/parts/states.ts'
import type { OfOrg } from '#api/console/app/org/own.ts'
import { count, isoOf, momentOf, percent } from '#api/console/app/words.ts'

type Trail = AnswerOf<'GET /v1/orgs/:orgId/debug/passes'>['passes'][number]
type Write = Extract<Trail, { kind: 'write' }>
type Retrieval = Extract<Trail, { kind: 'retrieval' }>

/** How turns became shared memories, and what was kept from whom. */
export function Passes({ org }: OfOrg): View {
  const [author, setAuthor] = useState('')
  const [limit, setLimit] = useState('20')
  const asked = useLater(author)
  const found = useAsked(
    signal => {
      const query = { limit: Number(limit), ...(asked && { author: asked }) }
      return call('GET /v1/orgs/:orgId/debug/passes', { params: { orgId: org }, query }, signal)
    },
    [org, asked, limit],
  )
  return page({
    title: 'Passes',
    words:
      'What was seen and decided, turn by turn: extracted, tagged, reconciled; or chosen for an answer.',
    actions: html`<button type="button" class="button" onClick=${found.again}>Refresh</button>`,
    children: html`<div class="stack">
      <div class="panel filters" role="group" aria-label="Filters">
        ${textField({ label: 'Member', value: author, onValue: setAuthor, maxlength: 320 })}
        ${choiceField({
          label: 'At most',
          value: limit,
          onValue: setLimit,
          choices: ['20', '50', '200'].map(each => [each, `${each} turns`] as const),
        })}
      </div>
      ${shown(found, 'passes', ({ passes }) =>
        passes.length === 0
          ? emptyNote('No trails', 'Turns of members leave one, and so does what they retrieve.')
          : html`<ol class="plain">
              ${passes.map(
                trail =>
                  html`<li key=${`${trail.kind} ${trail.turn_id}`} class="memory">
                    <header class="memory-head">
                      ${trail.kind === 'write' ? chip('Write', 'reflection') : chip('Retrieval', 'raw')}
                      <span class="memory-who">${trail.author}</span>
                      <time datetime=${isoOf(trail.created_at)}>${momentOf(trail.created_at)}</time>
                    </header>
                    ${trail.kind === 'write' ? writeView(trail) : retrievalView(trail)}
                  </li>`,
              )}
            </ol>`,
      )}
    </div>`,
  })
}

const writeView = ({ left_out: leftOut, pass1, pass2, pass3 }: Write): View =>
  html`<div class="passes">
    ${leftOut > 0 && html`<p class="quiet">Not looked through: ${count(leftOut)} characters</p>`}
    ${passView(
      '1 Extracted',
      pass1,
      ({ text, confidence, note }) =>
        html`${text} <span class="quiet">${percent(confidence)}${note && ', as a note'}</span>`,
    )}
    ${passView(
      '2 Tagged',
      pass2,
      ({ text, tags, confidence }) =>
        html`${text} ${tagChips(tags)} <span class="quiet">${percent(confidence)}</span>`,
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

const retrievalView = (trail: Retrieval): View =>
  html`<div class="stack">
    <p>
      ${count(trail.permitted)} permitted, ${count(trail.dropped)} kept back. Allowed:${' '}
      ${trail.wildcard ? chip('every tag', 'high') : tagChips(trail.allowed_tags)}
    </p>
    ${
      trail.dropped_sample.length > 0 &&
      html`<details>
        <summary>Some of what was kept back</summary>
        <ul>
          ${trail.dropped_sample.map(
            ({ mem_id, tags }) =>
              html`<li key=${mem_id}><code>${mem_id.slice(-8)}</code> ${tagChips(tags)}</li>`,
          )}
        </ul>
      </details>`
    }
  </div>`
