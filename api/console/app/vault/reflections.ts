import { useAddress } from '#api/console/app/address.ts'
import { formatPercent, pluralize } from '#api/console/app/format.ts'
import { html, type View, renderComponent } from '#api/console/app/html.ts'
import { bindFields, filters, selectField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { listView, queryView } from '#api/console/app/parts/notes.ts'
import { useCall } from '#api/console/app/queries.ts'
import { memoryRows } from '#api/console/app/vault/memory-card.ts'
import { useMemoryList } from '#api/console/app/vault/timeline.ts'
import type { Debt } from '#api/contract/generated/types.ts'

/** The fields of the list in the address of the page: tier, order, and how many pages are shown. */
const firstView = { tier: '2', sort: 'date', pages: '1' }

/** The reflections of the vault, and its reflection debt. */
export function Reflections(): View {
  const { fields, setFields } = useAddress(firstView)
  const { updateItems, ...list } = useMemoryList(
    {
      tier: fields.tier === '3' ? 3 : 2,
      sort: fields.sort === 'importance' ? 'importance' : 'date',
    },
    fields.pages,
    { onPages: pages => setFields({ ...fields, pages }, { replace: true }) },
  )
  const of = bindFields(fields, changed => setFields({ ...fields, ...changed, pages: '1' }))
  return page({
    title: 'Reflections',
    description:
      'Your product makes them with a model of its choice; Lineage shows what each came from.',
    children: html`${debtSection()}
    ${filters(
      selectField({
        label: 'Show',
        ...of('tier'),
        choices: { '2': 'reflections', '3': 'high-level reflections' },
      }),
      selectField({
        label: 'Order',
        ...of('sort'),
        choices: { date: 'newest first', importance: 'most important first' },
      }),
    )}
    ${listView(list, {
      what: 'reflections',
      empty: [
        'No reflections of this kind yet',
        '“npm run consolidate” makes them with a model of your choice.',
      ],
      show: items => memoryRows(items, { updateItems }),
    })}`,
  })
}

// A range without memories: an empty response bills nothing, and still has the vault's debt.
const emptyRange = { from: '2200-01-01', to: '2200-01-01' }

export const debtSection = (): View =>
  section('Waiting to be consolidated', renderComponent(DebtMeter, {}))

function DebtMeter(): View | null {
  const status = useCall('POST /v1/memory/date-search', { body: emptyRange })
  return queryView(status, 'what waits', answer => debtView(answer.reflection))
}

/** The debt of each tier, relative to the service's threshold. */
const debtView = ({ unconsolidated, threshold_importance: full, suggestion }: Debt): View => {
  const { raw, tier2 } = unconsolidated
  return html`<div class="stack">
    ${progressMeter(
      'Raw memories',
      { value: raw.importance_equiv, full },
      `${pluralize(raw.units, 'memory', 'memories')}, ${pluralize(raw.est_tokens, 'token')}`,
    )}
    ${progressMeter(
      'Reflections',
      { value: tier2.importance, full },
      `${pluralize(tier2.count, 'reflection')}, ${pluralize(tier2.est_tokens, 'token')}`,
    )}
    <p class=${suggestion ? 'notice stack-tight' : 'quiet'}>
      ${suggestion ? 'Enough waits: run “npm run consolidate”.' : 'Nothing is due: consolidation is suggested once a bar is full.'}
    </p>
  </div>`
}

const progressMeter = (
  name: string,
  { value, full }: { value: number; full: number },
  words: string,
): View =>
  html`<div class="stack-close">
    <div class="section-head">
      <b>${name}</b>
      <span class="quiet"
        >${formatPercent(Math.min(1, value / full))} of what makes a reflection due</span
      >
    </div>
    <meter
      min="0"
      max=${full}
      high=${full - 0.5}
      optimum="0"
      value=${Math.min(value, full)}
      aria-label=${`${name} waiting to be consolidated`}
    ></meter>
    <span class="quiet">${words}</span>
  </div>`
