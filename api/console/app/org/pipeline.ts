import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import { useOrg, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { formatDateTime } from '#api/console/app/format.ts'
import { showToast } from '#api/console/app/toasts.ts'

type Pipeline = EndpointResponse<'GET /v1/orgs/:orgId'>['pipeline']

const states: Record<Pipeline['state'], string> = {
  running: 'Running.',
  paused: 'Paused: what members say waits.',
  over_budget: 'The budget of today is spent: the rest waits for tomorrow (UTC).',
  faulty: 'The provider could not be used. It is tried again every minute.',
}

/** The state and the budget of the pipeline of an organization. */
export function OrgPipeline({ org }: OrgProps): View | null {
  const found = useOrg(org)
  const actionState = useAction()
  const [budget, setBudget] = useState<string>()
  const params = { orgId: org }
  const change = (body: { pipeline_paused?: boolean; daily_token_budget?: number | null }) =>
    actionState.run(async () => {
      await call('PATCH /v1/orgs/:orgId', { params, body })
      showToast('The pipeline is changed.')
      found.refetch()
    })
  const redrive = () =>
    actionState.run(async () => {
      const { redriven } = await call('POST /v1/orgs/:orgId/pipeline/redrive', { params })
      showToast(`${redriven} turns are tried again.`)
      found.refetch()
    })
  return queryView(
    found,
    'the pipeline',
    ({ pipeline }) =>
      html`<div class="panel stack">
        ${pipelineFacts(pipeline)}
        <div class="actions">
          <button
            type="button"
            class="button"
            onClick=${() => change({ pipeline_paused: !pipeline.paused })}
          >
            ${pipeline.paused ? 'Resume' : 'Pause'}
          </button>
          ${
            pipeline.given_up > 0 &&
            html`<button type="button" class="button" onClick=${redrive}>
              Try given-up turns again
            </button>`
          }
        </div>
        <form
          class="stack"
          onSubmit=${onSubmit(() => change({ daily_token_budget: budget ? Number(budget) : null }))}
        >
          ${textField({
            label: 'Tokens a day',
            type: 'number',
            min: 0,
            value: budget ?? String(pipeline.daily_token_budget ?? ''),
            onValue: setBudget,
            hint: `Empty: no limit. Today: ${pipeline.spent_today}.`,
          })}
          <div class="actions"><button class="button">Set the budget</button></div>
        </form>
        ${faultNote(actionState.fault)}
      </div>`,
  )
}

const pipelineFacts = ({ state, since, last_error, waiting, given_up }: Pipeline): View =>
  html`<p>
    ${states[state]} ${last_error !== null && `${last_error}.`}
    ${since !== null && ` Since ${formatDateTime(since)}.`} ${waiting} waiting, ${given_up} given
    up.
  </p>`
