import { formatPercent } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip, tagChips, type Labels } from '#api/console/app/parts/chips.ts'
import words from '#api/console/app/org/words.json' with { type: 'json' }
import type { NamedMemory, ReconciledFact, WriteTrail } from '#api/contract/generated/types.ts'

/** Shared memories by their id; one that was deleted is not among them. */
export type NamedMemories = ReadonlyMap<string, NamedMemory>

type PassResults = Pick<WriteTrail, 'pass1' | 'pass2' | 'pass3'>

/** What each pass made of an exchange. */
export const passResults = (
  { pass1, pass2, pass3 }: PassResults,
  memories: NamedMemories = new Map(),
): View =>
  html`<div class="passes">
    ${passView(
      '1 Found',
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
    ${passView('3 Compared with what is known', pass3, fact => decisionView(fact, memories))}
  </div>`

const actions = words.reconciled as Labels<ReconciledFact['action']>

const decisionView = (
  { text, action, mem_id, replaces }: ReconciledFact,
  memories: NamedMemories,
): View => {
  const known = action === 'NONE' && mem_id !== null ? memories.get(mem_id) : undefined
  const replaced = replaces === undefined ? undefined : memories.get(replaces)
  return html`${chip(...actions[action])} ${text}
  ${known && known.text !== text && html`<p class="quiet">Known as: ${known.text}</p>`}
  ${replaced && html`<p class="quiet">Would replace: ${replaced.text}</p>`}`
}

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
