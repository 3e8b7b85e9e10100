import { useEffect, useState } from 'preact/hooks'
import { call, filled } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { formatCount, formatDateTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { stateChip, timeView } from '#api/console/app/parts/chips.ts'
import { actionButton } from '#api/console/app/parts/dialogs.ts'
import { filters, selectField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList, progressBar } from '#api/console/app/parts/notes.ts'
import { usePages } from '#api/console/app/queries.ts'
import type { Operation } from '#api/contract/generated/types.ts'

export type OperationState = Operation['state']

const states = ['accepted', 'running', 'done', 'failed', 'cancelled'] as const
export const stateChoices: readonly (readonly [OperationState | '', string])[] = [
  ['', 'all'],
  ...states.map(state => [state, state] as const),
]

/** Accepted operations with their progress and outcome. */
export function Operations(): View {
  const [state, setState] = useState<OperationState | ''>('failed')
  const { updateItems, ...list } = usePages('GET /v1/operations', {
    query: filled({ limit: 30, state }),
  })
  const changed = (operation: Operation): void =>
    updateItems(all =>
      all.map(one => (one.operation_id === operation.operation_id ? operation : one)),
    )
  return page({
    title: 'Work',
    description: 'What failed of the work that was accepted; other states show the rest.',
    actions: button('Refresh', list.refetch),
    children: html`${filters(selectField({ label: 'State', value: state, onValue: setState, choices: stateChoices }))}
    ${editableList(list, {
      what: 'operations',
      empty:
        state === 'failed'
          ? ['Nothing failed', 'Every piece of work was done, or is under way.']
          : ['No operations', 'Storing, uploads, imports and deletions are listed here.'],
      key: ({ operation_id }) => operation_id,
      main: operation => renderComponent(OperationView, { operation, changed }),
      actions: ({ operation_id: id, kind, state, created_at }) =>
        state === 'accepted' &&
        canWrite() &&
        actionButton('Cancel', {
          act: async () => changed(await call('DELETE /v1/operations/:id', { params: { id } })),
          done: 'The operation is cancelled.',
          about: `${kind} of ${formatDateTime(created_at)}`,
        }),
    })}`,
  })
}

const unfinished = new Set<OperationState>(['accepted', 'running'])
const pollIntervalMs = 2_000

type ViewProps = { operation: Operation; changed: (operation: Operation) => void }

function OperationView({ operation, changed }: ViewProps): View {
  const { operation_id: id, kind, state, progress, session_id, created_at, outcome } = operation
  const words = `${formatCount(progress.done)} of ${formatCount(progress.total)}`
  useEffect(() => {
    if (!unfinished.has(state)) return undefined
    const timer = setTimeout(() => {
      // The next refresh retries a poll that fails.
      call('GET /v1/operations/:id', { params: { id } }).then(changed, () => undefined)
    }, pollIntervalMs)
    return () => clearTimeout(timer)
  }, [operation])
  return html`<p class="row-title">${kind} ${stateChip(state)}</p>
    <p class="quiet">${timeView(created_at)}${session_id && `, session ${session_id}`}</p>
    ${unfinished.has(state) && progressBar(`Progress of ${kind}`, { ...progress, words })}
    ${state === 'failed' && html`<p class="fault-words">${errorMessage(outcome?.body)}</p>`}
    ${
      outcome &&
      html`<details>
        <summary>Outcome (${outcome.status})</summary>
        <pre class="code" tabindex="0">${JSON.stringify(outcome.body, null, 2)}</pre>
      </details>`
    }`
}

const errorMessage = (body: object | undefined): string =>
  body && 'error' in body && typeof body.error === 'string'
    ? body.error
    : 'All tries failed. The operator of the service finds the error among the dead jobs of its queue.'
