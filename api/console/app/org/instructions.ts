import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useQuery, useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { textAreaField, checkboxField, onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { showToast } from '#api/console/app/toasts.ts'

type SavedInstructions = EndpointResponse<'GET /v1/orgs/:orgId/instructions'>
type Rule = { id?: string; match: string; note: string }

/** Edits the instructions for what is extracted, never extracted, or shortened. */
export function Instructions({ org }: OrgProps): View {
  const query = useQuery(
    signal => call('GET /v1/orgs/:orgId/instructions', { params: { orgId: org } }, signal),
    [org],
  )
  return page({
    title: 'Instructions',
    description: 'What the service looks for in what members say.',
    children: queryView(query, 'instructions', found =>
      renderComponent(InstructionsForm, {
        org,
        found,
        key: found.updated_at,
        onSaved: query.refetch,
      }),
    ),
  })
}

type FormProps = { org: string; found: SavedInstructions; onSaved: () => void }

function InstructionsForm({ org, found, onSaved }: FormProps): View {
  const [on, setOn] = useState(found.default_on)
  const [custom, setCustom] = useState(found.custom)
  const [anti, setAnti] = useState<Rule[]>(found.anti_rules)
  const [exec, setExec] = useState<Rule[]>(found.exec_rules)
  const actionState = useAction()
  const save = async (): Promise<void> => {
    const body = { default_on: on, custom, anti_rules: anti, exec_rules: exec }
    await call('PUT /v1/orgs/:orgId/instructions', { params: { orgId: org }, body })
    showToast('The instructions are saved.')
    onSaved()
  }
  return html`<form class="stack-wide" onSubmit=${onSubmit(() => actionState.run(save))}>
    <div class="panel stack">
      ${checkboxField({
        label: 'Base instructions of the service',
        value: on,
        onValue: setOn,
        hint: 'Decisions, facts and agreements that matter beyond a conversation.',
      })}
      ${textAreaField({
        label: 'Your own',
        value: custom,
        onValue: setCustom,
        rows: 5,
        maxlength: 20_000,
        hint: 'Added to the base instructions, or in their place when these are off.',
      })}
    </div>
    ${rulesField('Never store', 'salaries', anti, setAnti)}
    ${rulesField('Store as a short note', 'meetings with clients', exec, setExec)}
    ${faultNote(actionState.fault)}
    <div class="actions">
      <button class="button button-main" disabled=${actionState.isRunning}>
        ${actionState.isRunning ? 'Saving …' : 'Save'}
      </button>
    </div>
  </form>`
}

function rulesField(
  title: string,
  example: string,
  rules: readonly Rule[],
  set: (rules: Rule[]) => void,
): View {
  const change = (at: number, changed: Partial<Rule>): void =>
    set(rules.map((rule, index) => (index === at ? { ...rule, ...changed } : rule)))
  return html`<fieldset class="panel stack">
    <legend class="panel-name">${title}</legend>
    ${rules.length === 0 && html`<p class="quiet">No rules.</p>`}
    ${rules.map(
      (rule, index) =>
        html`<div key=${index} class="rule">
          ${textField({
            label: 'What it is about',
            value: rule.match,
            onValue: match => change(index, { match }),
            required: true,
            maxlength: 2000,
            placeholder: example,
          })}
          ${textField({
            label: 'Note',
            value: rule.note,
            onValue: note => change(index, { note }),
            maxlength: 2000,
          })}
          <button
            type="button"
            class="button"
            aria-label=${`Remove the rule ${rule.match}`}
            onClick=${() => set(rules.filter((_, at) => at !== index))}
          >
            Remove
          </button>
        </div>`,
    )}
    <div class="actions">
      <button
        type="button"
        class="button"
        onClick=${() => set([...rules, { match: '', note: '' }])}
      >
        Add a rule
      </button>
    </div>
  </fieldset>`
}
