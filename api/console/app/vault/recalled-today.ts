import { call } from '#api/console/app/api-call.ts'
import { formatRelativeTime, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import { avatar } from '#api/console/app/parts/speaker.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import type { MemoryRecall } from '#api/contract/generated/types.ts'

const shown = 5

/** The memories that model calls were given most since midnight, in UTC as usage is counted. Bills nothing. */
export function RecalledToday(): View | null {
  const recalled = useQuery(signal => {
    const since = new Date().toISOString().slice(0, 10)
    return call('GET /v1/traces/memories', { query: { since, limit: shown } }, signal)
  }, [])
  return queryView(recalled, 'what was recalled', ({ items }) =>
    items.length === 0
      ? emptyNote('No memory was recalled today', 'What a model call is given appears here.')
      : html`<ul class="plain latest recalled">
          ${items.map(item => html`<li key=${item.memory_id}>${recalledRow(item)}</li>`)}
        </ul>`,
  )
}

const recalledRow = ({ text, role, name, tier, turns, last_recalled_at }: MemoryRecall): View =>
  html`<article class="latest-row">
    ${avatar({ role: role ?? 'user', ...(name && { name }), ...(tier && { tier }) })}
    <div class="row-main">
      <p class="latest-text">${text ?? 'Deleted since, or not to be shown with this key.'}</p>
      <p class="quiet">
        For ${pluralize(turns, 'message')}, last${' '}
        <time datetime=${last_recalled_at}>${formatRelativeTime(last_recalled_at)}</time>
      </p>
    </div>
  </article>`
