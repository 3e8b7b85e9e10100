import { useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { hrefTo } from '#api/console/app/hash-route.ts'
import { formatCompact, formatCount } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { figure } from '#api/console/app/parts/frame.ts'
import { queryView } from '#api/console/app/parts/query-view.ts'

/** What the vault of this key was used for since midnight, in UTC as usage is counted. */
export function Today(): View | null {
  const usage = useQuery(signal => {
    const start = new Date().toISOString().slice(0, 10)
    return call('GET /v1/account/usage', { query: { start } }, signal)
  }, [])
  return queryView(
    usage,
    'the use of today',
    ({ total_requests, total_memory_tokens, total_input_tokens }) =>
      html`<div class="stack">
        <dl class="figures">
          ${figure('Requests', formatCount(total_requests))}
          ${figure('Memory tokens', formatCompact(total_memory_tokens), 'stored and recalled')}
          ${figure('Model input', formatCompact(total_input_tokens), 'tokens, memories included')}
        </dl>
        <p class="quiet">Days are UTC. <a href=${hrefTo('usage')}>Other days and models</a></p>
      </div>`,
  )
}
