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
  const { redaction, create_users, traces, verbatim, tell_absence, store_response, sessions } =
    saved
  const { fields, of } = useFields({
    redaction,
    create_users,
    traces,
    verbatim,
    tell_absence,
    store_response,
    sessions,
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
      textField({
        label: 'Days that memories are kept',
        ...days,
        max: 36_500,
        ...of('retention_days'),
        placeholder: 'For good',
        hint: 'Counted from the day something is stored, whatever time it is about. Empty: for good.',
      }),
      checkboxField({
        label: 'Requests make users that are new',
        ...of('create_users'),
        hint: 'The header X-Memory-User with an id that the account does not know opens a new vault. Otherwise it is refused.',
      }),
      ...limitFields('each user', {
        requests: of('user_daily_requests'),
        tokens: of('user_daily_tokens'),
        dollars: of('user_monthly_dollars'),
      }),
      checkboxField({
        label: 'Model calls are stored as they were sent',
        ...of('verbatim'),
        hint: 'With what programs such as Claude Code write into a message: reminders, commands, files. Otherwise that is left out.',
      }),
      checkboxField({
        label: 'Models are told where nothing is remembered',
        ...of('tell_absence'),
        hint: 'In answer to a question about what was said before, or about the person, so that they do not invent it. Otherwise they are told nothing.',
      }),
      selectField({
        label: 'Answers of models are stored',
        ...of('store_response'),
        choices: [
          ['always', 'always'],
          ['with_input', 'only where the question is stored'],
        ],
        hint: 'A question may be kept out by a switch of the request or by redaction. A request decides for itself with X-Memory-Store-Response.',
      }),
      selectField({
        label: 'A session id',
        ...of('sessions'),
        choices: [
          ['apart', 'gives a conversation memories of its own'],
          ['core', 'names the conversation; a user has one memory'],
        ],
        hint: 'Apart: what is said in one session is recalled in no other. A request decides for itself with X-Memory-Sessions.',
      }),
      selectField({
        label: 'Traces of model calls',
        ...of('traces'),
        choices: [
          ['texts', 'shown with the texts that are still there'],
          ['ids', 'shown without texts'],
          ['off', 'none'],
        ],
        hint: 'Which memories each answer was given with. A trace holds no text: texts come from the vault.',
      }),
      textField({
        label: 'Days that traces are kept',
        ...days,
        max: 365,
        ...of('trace_days'),
        required: true,
      }),
    ],
  })
}
