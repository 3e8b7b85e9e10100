import type { EndpointResponse } from '#api/client/client.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { formatCount, formatPercent, formatUtcDay } from '#api/console/app/format.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { Chart } from '#api/console/app/parts/chart.ts'
import { fillMissingDays } from '#api/console/app/parts/days.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import { table } from '#api/console/app/parts/table.ts'

type Usage = EndpointResponse<'GET /v1/orgs/:orgId/usage'>
type Sums = Usage['total']

/** What the pipeline of an organization has cost in the last 30 days: by day, pass, model and member. */
export function OrgCost({ org }: OrgProps): View {
  const usage = useQuery(
    signal => call('GET /v1/orgs/:orgId/usage', { params: { orgId: org } }, signal),
    [org],
  )
  return html`<div class="panel stack">${queryView(usage, 'the cost', costView)}</div>`
}

function costView({ period, total, by_day, by_pass, by_model, by_member }: Usage): View {
  if (total.calls === 0) {
    return emptyNote('No model was called in the last 30 days', 'What members say makes the calls.')
  }
  const reported = Object.entries(by_day).map(([day, sums]) => ({ day, tokens: tokensOf(sums) }))
  const days = fillMissingDays(period, reported, ['tokens'])
  return html`<div class="stack">
    ${renderComponent(Chart, { days, metric: 'tokens', name: 'Tokens' })}
    ${table(costHead, [
      ...rowsOf('Pass', by_pass),
      ...rowsOf('Model', by_model),
      ...rowsOf('Member', by_member),
      costRow('In all', total),
    ])}
    <details>
      <summary>Days with calls</summary>
      ${table(
        ['Day', ...costHead.slice(1)],
        Object.entries(by_day).map(([day, sums]) => costRow(formatUtcDay(day), sums)),
      )}
    </details>
  </div>`
}

const tokensOf = ({ input_tokens, output_tokens }: Sums): number => input_tokens + output_tokens

const costHead = ['Of', 'Calls', 'Tokens in', 'Of these cached', 'Tokens out']

const rowsOf = (kind: string, sums: Record<string, Sums>): string[][] =>
  Object.entries(sums).map(([name, each]) => costRow(`${kind}: ${name}`, each))

const costRow = (name: string, sums: Sums): string[] => [
  name,
  formatCount(sums.calls),
  formatCount(sums.input_tokens),
  cachedShare(sums),
  formatCount(sums.output_tokens),
]

const cachedShare = ({ input_tokens: input, cached_input_tokens: cached }: Sums): string =>
  input === 0 ? '0' : `${formatCount(cached)} (${formatPercent(cached / input)})`
