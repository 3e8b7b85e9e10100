import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import {
  bindFields,
  checkboxField,
  form,
  textAreaField,
  textField,
  useFields,
} from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { queryView } from '#api/console/app/parts/notes.ts'
import { useCall } from '#api/console/app/queries.ts'
import type { OrgInstructions } from '#api/contract/generated/types.ts'

type Rule = { id?: string; match: string; note: string }
type Draft = Pick<OrgInstructions, 'default_on' | 'custom'> &
  Record<'anti_rules' | 'exec_rules', Rule[]>

/** Edits the instructions for what is extracted, never extracted, or shortened. */
export function Instructions({ org }: OrgProps): View {
  const query = useCall('GET /v1/orgs/:orgId/instructions', { params: { orgId: org } })
  return page({
    title: 'Instructions',
    description: 'What the service looks for in what members say.',
    children: queryView(query, 'instructions', saved =>
      renderComponent(InstructionsForm, {
        org,
        saved,
        key: saved.updated_at,
        onSaved: query.refetch,
      }),
    ),
  })
}

type FormProps = { org: string; saved: OrgInstructions; onSaved: () => void }

function InstructionsForm({ org, saved, onSaved }: FormProps): View {
  const { default_on, custom, anti_rules, exec_rules } = saved
  const { fields, of } = useFields<Draft>({ default_on, custom, anti_rules, exec_rules })
  return form({
    class: 'stack-wide',
    verb: 'Save',
    kind: 'main',
    act: () => call('PUT /v1/orgs/:orgId/instructions', { params: { orgId: org }, body: fields }),
    onDone: onSaved,
    done: 'The instructions are saved.',
    children: html`<div class="panel stack">
        ${checkboxField({
          label: 'Base instructions of the service',
          ...of('default_on'),
          hint: 'Decisions, facts and agreements that matter beyond a conversation.',
        })}
        ${textAreaField({
          label: 'Your own',
          ...of('custom'),
          rows: 5,
          maxlength: 20_000,
          hint: 'Added to the base instructions, or in their place when these are off.',
        })}
      </div>
      ${rulesField({ title: 'Never store', example: 'salaries', ...of('anti_rules') })}
      ${rulesField({ title: 'Store as a short note', example: 'meetings with clients', ...of('exec_rules') })}`,
  })
}

type RulesProps = {
  title: string
  example: string
  value: readonly Rule[]
  onValue: (rules: Rule[]) => void
}

const rulesField = ({ title, example, value: rules, onValue }: RulesProps): View =>
  html`<fieldset class="panel stack">
    <legend class="panel-name">${title}</legend>
    ${rules.length === 0 && html`<p class="quiet">No rules.</p>`}
    ${rules.map((rule, index) => {
      const of = bindFields(rule, changed => onValue(rules.with(index, { ...rule, ...changed })))
      return html`<div key=${index} class="search-line">
        ${textField({
          label: 'What it is about',
          ...of('match'),
          required: true,
          maxlength: 2000,
          placeholder: example,
        })}
        ${textField({ label: 'Note', ...of('note'), maxlength: 2000 })}
        ${button('Remove', () => onValue(rules.toSpliced(index, 1)), { about: `rule ${rule.match}` })}
      </div>`
    })}
    <div class="actions">
      ${button('Add a rule', () => onValue([...rules, { match: '', note: '' }]))}
    </div>
  </fieldset>`
