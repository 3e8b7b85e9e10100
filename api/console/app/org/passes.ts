import { filled } from '#api/console/app/api-call.ts'
import { formatCount, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { passResults, type NamedMemories } from '#api/console/app/org/pass-results.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip, tagChips, timeView, type Labels } from '#api/console/app/parts/chips.ts'
import { filters, selectField, textField, useFilters } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { listView } from '#api/console/app/parts/notes.ts'
import { useListing } from '#api/console/app/queries.ts'
import words from '#api/console/app/org/words.json' with { type: 'json' }
import type { RetrievalTrail, TurnState, WriteTrail } from '#api/contract/generated/types.ts'

const turnStates = words.turns as Labels<TurnState>

const stateChoices: (readonly [TurnState | '', string])[] = [
  ['', 'all entries'],
  ...Object.entries(turnStates).map(([state, [label]]) => [state as TurnState, label] as const),
]

type Filters = { author: string; limit: string; state: TurnState | '' }

const unfiltered: Filters = { author: '', limit: '20', state: '' }

/** How the passes turned messages into shared memories, and what they dropped. */
export function Passes({ org }: OrgProps): View {
  const { fields, of } = useFilters(unfiltered)
  const { author, state } = fields
  const query = filled({ limit: Number(fields.limit), author, state })
  const trails = useListing(
    'GET /v1/orgs/:orgId/debug/passes',
    { params: { orgId: org }, query },
    ({ passes, memories }) => {
      const byId = new Map(memories.map(memory => [memory.mem_id, memory]))
      return passes.map(trail => [trail, byId] as const)
    },
  )
  return page({
    title: 'Passes',
    description:
      'What was seen and decided, turn by turn: extracted, tagged, reconciled; or chosen for an answer. What a member said or asked is theirs, and is not shown.',
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
          ${passes.map(([trail, memories]) => html`<li key=${`${trail.kind} ${trail.turn_id}`} class="memory stack-tight">${trailView(trail, memories)}</li>`)}
        </ol>`,
    })}`,
  })
}

const trailView = (trail: WriteTrail | RetrievalTrail, memories: NamedMemories): View =>
  html`<header class="memory-head chips">
      ${trail.kind === 'write' ? chip('Said', 'reflection') : chip('Asked', 'raw')}
      ${trail.kind === 'write' && chip(...turnStates[trail.state])}
      <span class="memory-who">${trail.author}</span>
      ${timeView(trail.created_at)}
    </header>
    ${trail.kind === 'write' ? writeView(trail, memories) : retrievalView(trail, memories)}`

/** Why a turn without facts has none. */
const emptyTexts: Record<TurnState, string> = words.without_facts

const writeView = (trail: WriteTrail, memories: NamedMemories): View => {
  const { left_out: leftOut, withheld, pass1, state } = trail
  return html`${leftOut > 0 && html`<p class="quiet">Not looked through: ${formatCount(leftOut)} characters</p>`}
  ${withheld && html`<p class="quiet">An anti-rule kept the ${withheld} from the model</p>`}
  ${
    pass1 === null || pass1.length === 0
      ? withheld !== 'turn' && html`<p class="quiet">${emptyTexts[pass1 ? 'done' : state]}</p>`
      : passResults(trail, memories)
  }`
}

function retrievalView(trail: RetrievalTrail, memories: NamedMemories): View {
  const { request, returned, returned_ids, denied, denied_memories, dropped } = trail
  const given = returned === 0 ? 'nothing shared' : pluralize(returned, 'memory', 'memories')
  const kept =
    denied === null
      ? ''
      : `, ${denied === 0 ? 'nothing' : formatCount(denied)} relevant kept from it`
  return html`<div class="stack">
    <p>${`${words.requests[request]}: given ${given}${kept}.`}</p>
    ${memoryList(
      'What it was given',
      returned_ids.map(mem_id => ({ mem_id, tags: memories.get(mem_id)?.tags ?? null })),
      memories,
    )}
    ${memoryList('What was kept from it', denied_memories ?? [], memories)}
    ${
      dropped > 0 &&
      html`<p>
          ${trail.wildcard ? chip('every tag', 'high') : tagChips(trail.allowed_tags)}
          ${` Of all: ${formatCount(trail.permitted)} permitted, ${formatCount(dropped)} kept back.`}
        </p>
        ${memoryList('Some of what their roles do not allow', trail.dropped_sample, memories)}`
    }
  </div>`
}

const excerptMax = 300

const memoryList = (
  title: string,
  named: readonly { mem_id: string; tags: readonly string[] | null }[],
  memories: NamedMemories,
): View | false =>
  named.length > 0 &&
  html`<details>
    <summary>${title}</summary>
    <ul>
      ${named.map(({ mem_id, tags }) => {
        const text = memories.get(mem_id)?.text
        return html`<li key=${mem_id}>
          ${text === undefined ? html`<span class="quiet">A memory that is deleted</span>` : text.slice(0, excerptMax)}
          ${text !== undefined && text.length > excerptMax && ' …'} ${tags && tagChips(tags)}
        </li>`
      })}
    </ul>
  </details>`
