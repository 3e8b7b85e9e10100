import { call } from '#api/console/app/api-call.ts'
import { renderComponent, type View } from '#api/console/app/html.ts'
import {
  checkboxField,
  form,
  selectField,
  textField,
  useFields,
} from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { queryView } from '#api/console/app/parts/notes.ts'
import { redactionFields, toRedactionBody } from '#api/console/app/parts/redaction-fields.ts'
import { limitFields, limitOf, limitText } from '#api/console/app/vault/budget.ts'
import { useCall } from '#api/console/app/queries.ts'
import { showToast } from '#api/console/app/toasts.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type { AccountPolicy } from '#api/contract/generated/types.ts'

/** The redaction and retention policy of the account. */
export function Policy(): View {
  const query = useCall('GET /v1/account/policy')
  return page({
    title: 'Policy',
    description: 'What the account keeps out of memory, and for how long it keeps the rest.',
    children: queryView(query, 'the policy', saved =>
      renderComponent(PolicyForm, { saved, key: JSON.stringify(saved), onSaved: query.refetch }),
    ),
  })
}

const days = { type: 'number', min: 1, step: 1 } as const

function PolicyForm({ saved, onSaved }: { saved: AccountPolicy; onSaved: () => void }): View {
  const { decided_by: _, ...own } = saved
  const { fields, of } = useFields({
    ...own,
    retention_days: String(saved.retention_days ?? ''),
    trace_days: String(saved.trace_days),
    user_daily_requests: limitText(saved.user_daily_requests),
    user_daily_tokens: limitText(saved.user_daily_tokens),
    user_monthly_dollars: limitText(saved.user_monthly_dollars),
  })
  const save = async (): Promise<void> => {
    const body = {
      ...fields,
      redaction: toRedactionBody(fields.redaction),
      retention_days: fields.retention_days.trim() === '' ? null : Number(fields.retention_days),
      trace_days: Number(fields.trace_days),
      user_daily_requests: limitOf(fields.user_daily_requests),
      user_daily_tokens: limitOf(fields.user_daily_tokens),
      user_monthly_dollars: limitOf(fields.user_monthly_dollars),
    }
    const { operation_id } = await call('PUT /v1/account/policy', { body })
    showToast(operation_id ? 'Saved: it applies to older memories soon.' : 'The policy is saved.')
    onSaved()
  }
  return form({
    verb: 'Save',
    kind: 'main',
    act: save,
    children: [
      redactionFields(of('redaction')),
      textField({ ...words.policy.retention_days, ...days, max: 36_500, ...of('retention_days') }),
      checkboxField({ ...words.policy.create_users, ...of('create_users') }),
      ...limitFields('each user', {
        requests: of('user_daily_requests'),
        tokens: of('user_daily_tokens'),
        dollars: of('user_monthly_dollars'),
      }),
      checkboxField({ ...words.policy.verbatim, ...of('verbatim') }),
      checkboxField({ ...words.policy.tell_absence, ...of('tell_absence') }),
      checkboxField({ ...words.policy.keep_files, ...of('keep_files') }),
      selectField({
        ...words.policy.store_response,
        ...of('store_response'),
        choices: { always: 'always', with_input: 'only where the question is stored' },
      }),
      selectField({
        ...words.policy.sessions,
        ...of('sessions'),
        choices: {
          apart: 'gives a conversation memories of its own',
          core: 'names the conversation; a user has one memory',
        },
      }),
      selectField({
        ...words.policy.traces,
        ...of('traces'),
        choices: {
          texts: 'shown with the texts that are still there',
          ids: 'shown without texts',
          off: 'none',
        },
      }),
      textField({
        ...words.policy.trace_days,
        ...days,
        max: 365,
        ...of('trace_days'),
        required: true,
      }),
    ],
  })
}
