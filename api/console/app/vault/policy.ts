import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useQuery, useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { checkboxField, onSubmit, selectField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { redactionFields } from '#api/console/app/parts/redaction-fields.ts'
import { faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'

type SavedPolicy = EndpointResponse<'GET /v1/account/policy'>

/** The redaction and retention policy of the account. */
export function Policy(): View {
  const query = useQuery(signal => call('GET /v1/account/policy', {}, signal), [])
  return page({
    title: 'Policy',
    description: 'What the account keeps out of memory, and for how long it keeps the rest.',
    children: queryView(query, 'the policy', saved =>
      renderComponent(PolicyForm, { saved, key: JSON.stringify(saved), onSaved: query.refetch }),
    ),
  })
}

const traceModes: readonly (readonly [SavedPolicy['traces'], string])[] = [
  ['texts', 'shown with the texts that are still there'],
  ['ids', 'shown without texts'],
  ['off', 'none'],
]

const responseChoices: readonly (readonly [SavedPolicy['store_response'], string])[] = [
  ['always', 'unless a switch says otherwise'],
  ['with_input', 'only where their input is'],
]

function PolicyForm({ saved, onSaved }: { saved: SavedPolicy; onSaved: () => void }): View {
  const [redaction, setRedaction] = useState(saved.redaction)
  const [days, setDays] = useState(String(saved.retention_days ?? ''))
  const [createUsers, setCreateUsers] = useState(saved.create_users)
  const [traces, setTraces] = useState(saved.traces)
  const [traceDays, setTraceDays] = useState(String(saved.trace_days))
  const [verbatim, setVerbatim] = useState(saved.verbatim)
  const [storeResponse, setStoreResponse] = useState(saved.store_response)
  const actionState = useAction()
  const save = async (): Promise<void> => {
    const { mode, kinds } = redaction
    const body = {
      redaction: { mode, ...(mode !== 'off' && { kinds }) },
      retention_days: days.trim() === '' ? null : Number(days),
      create_users: createUsers,
      traces,
      trace_days: Number(traceDays),
      verbatim,
      store_response: storeResponse,
    }
    const { operation_id } = await call('PUT /v1/account/policy', { body })
    showToast(operation_id ? 'Saved: what is stored already follows.' : 'The policy is saved.')
    onSaved()
  }
  return html`<form class="panel stack" onSubmit=${onSubmit(() => actionState.run(save))}>
    ${redactionFields(redaction, setRedaction)}
    ${textField({
      label: 'Days that memories are kept',
      type: 'number',
      min: 1,
      max: 36_500,
      step: 1,
      value: days,
      onValue: setDays,
      placeholder: 'For good',
      hint: 'Counted from the day something is stored, whatever time it tells of. Empty: for good.',
    })}
    ${checkboxField({
      label: 'Requests make users that are new',
      value: createUsers,
      onValue: setCreateUsers,
      hint: 'The header X-Memory-User with an id that the account does not know opens a new vault. Otherwise it is refused.',
    })}
    ${checkboxField({
      label: 'Model calls are stored as they were sent',
      value: verbatim,
      onValue: setVerbatim,
      hint: 'With what programs such as Claude Code write into a message: reminders, commands, files. Otherwise that is left out.',
    })}
    ${selectField({
      label: 'Answers are stored',
      value: storeResponse,
      onValue: setStoreResponse,
      choices: responseChoices,
      hint: 'Input that is kept out by a switch or by redaction keeps its answer out, or does not.',
    })}
    ${selectField({
      label: 'Traces of model calls',
      value: traces,
      onValue: setTraces,
      choices: traceModes,
      hint: 'Which memories each answer was given with. A trace holds no text: texts come from the vault.',
    })}
    ${textField({
      label: 'Days that traces are kept',
      type: 'number',
      min: 1,
      max: 365,
      step: 1,
      value: traceDays,
      onValue: setTraceDays,
      required: true,
    })}
    ${faultNote(actionState.fault)}
    <div class="actions">
      <button class="button button-main" disabled=${actionState.isRunning}>
        ${actionState.isRunning ? 'Saving …' : 'Save'}
      </button>
    </div>
  </form>`
}
