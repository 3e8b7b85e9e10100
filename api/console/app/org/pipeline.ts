import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import {
  formatDateTime,
  formatCost,
  formatCount,
  formatPercent,
  formatUtcDay,
} from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { fillMissingDays, table } from '#api/console/app/parts/chart.ts'
import { dayBars } from '#api/console/app/parts/stacked-bars.ts'
import { unpricedNote } from '#api/console/app/parts/cost.ts'
import { actionButton } from '#api/console/app/parts/dialogs.ts'
import { form, textField } from '#api/console/app/parts/fields.ts'
import { queryView, emptyNote } from '#api/console/app/parts/notes.ts'
import { useCall } from '#api/console/app/queries.ts'
import { showToast } from '#api/console/app/toasts.ts'
import words from '#api/console/app/org/words.json' with { type: 'json' }
import type { Pipeline, OrgUsageAnswer, OrgUsageSums } from '#api/contract/generated/types.ts'

const states: Record<Pipeline['state'], string> = words.pipeline

/** The state and the budget of the pipeline of an organization. */
export function OrgPipeline({ org }: OrgProps): View | null {
  const params = { orgId: org }
  const query = useCall('GET /v1/orgs/:orgId', { params })
  const [budget, setBudget] = useState<string>()
  const change = async (body: {
    pipeline_paused?: boolean
    daily_token_budget?: number | null
  }): Promise<void> => {
    await call('PATCH /v1/orgs/:orgId', { params, body })
    query.refetch()
  }
  const done = 'The pipeline is changed.'
  const redrive = async (): Promise<void> => {
    const { redriven } = await call('POST /v1/orgs/:orgId/pipeline/redrive', { params })
    showToast(`${redriven} turns are tried again.`)
    query.refetch()
  }
  return queryView(
    query,
    'the pipeline',
    ({ pipeline: { state, paused, since, last_error, waiting, given_up, ...tokens } }) =>
      html`<div class="panel stack">
        <p>
          ${[
            states[state],
            last_error && `${last_error}.`,
            since && `Since ${formatDateTime(since)}.`,
            `${waiting} waiting, ${given_up} given up.`,
          ]
            .filter(Boolean)
            .join(' ')}
        </p>
        <div class="actions">
          ${actionButton(paused ? 'Resume' : 'Pause', { act: () => change({ pipeline_paused: !paused }), done })}
          ${given_up > 0 && actionButton('Try given-up turns again', { act: redrive })}
        </div>
        ${form({
          class: 'stack',
          verb: 'Set the budget',
          act: () => change({ daily_token_budget: budget ? Number(budget) : null }),
          done,
          children: textField({
            label: 'Tokens a day',
            type: 'number',
            min: 0,
            value: budget ?? String(tokens.daily_token_budget ?? ''),
            onValue: setBudget,
            hint: `Empty: no limit. Today: ${tokens.spent_today}.`,
          }),
        })}
      </div>`,
  )
}

/** What the pipeline of an organization has cost in the last 30 days: by day, pass, model and member. */
export function OrgCost({ org }: OrgProps): View {
  const usage = useCall('GET /v1/orgs/:orgId/usage', { params: { orgId: org } })
  return html`<div class="panel stack">${queryView(usage, 'the cost', costView)}</div>`
}

function costView({ period, total, by_day, by_pass, by_model, by_member }: OrgUsageAnswer): View {
  if (total.calls === 0) {
    return emptyNote('No model was called in the last 30 days', 'What members say makes the calls.')
  }
  const reported = Object.entries(by_day).map(([day, sums]) => ({
    day,
    tokens: sums.input_tokens + sums.output_tokens,
  }))
  return html`<div class="stack">
    ${dayBars(fillMissingDays(period, reported, ['tokens']), 'tokens', 'Tokens')}
    ${table(costHead, [
      ...rowsOf('Pass', by_pass),
      ...rowsOf('Model', by_model),
      ...rowsOf('Member', by_member),
      costRow('In all', total),
    ])}
    ${unpricedNote(total.unpriced_tokens)}
    <details>
      <summary>Days with calls</summary>
      ${table(
        ['Day', ...costHead.slice(1)],
        Object.entries(by_day).map(([day, sums]) => costRow(formatUtcDay(day), sums)),
      )}
    </details>
  </div>`
}

const costHead = ['Of', 'Calls', 'Tokens in', 'Of these cached', 'Tokens out', 'Cost']

const rowsOf = (kind: string, sums: Record<string, OrgUsageSums>): string[][] =>
  Object.entries(sums).map(([name, each]) => costRow(`${kind}: ${name}`, each))

const costRow = (name: string, sums: OrgUsageSums): string[] => [
  name,
  formatCount(sums.calls),
  formatCount(sums.input_tokens),
  cachedShare(sums),
  formatCount(sums.output_tokens),
  formatCost(sums.cost_usd),
]

const cachedShare = ({ input_tokens: input, cached_input_tokens: cached }: OrgUsageSums): string =>
  input === 0 ? '0' : `${formatCount(cached)} (${formatPercent(cached / input)})`
