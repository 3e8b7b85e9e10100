import { useEffect } from 'preact/hooks'
import { call, filled } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { formatCount, formatDateTime } from '#api/console/app/format.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { agoView, chip, stateChip } from '#api/console/app/parts/chips.ts'
import { actionButton } from '#api/console/app/parts/dialogs.ts'
import { filterBar, selectField, useFilters } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList, line } from '#api/console/app/parts/notes.ts'
import { useCall, usePages } from '#api/console/app/queries.ts'
import { formatMs } from '#api/console/app/vault/trace-words.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type { ListOperationsQuery, Operation } from '#api/contract/generated/types.ts'

type Query = Pick<ListOperationsQuery, 'state' | 'kind'>
type State = NonNullable<Query['state']> | ''
type Filters = { state: State; kind: string }

/** What operators and owners look for first: what still is to be done, or was not. */
const open: Filters = { state: 'open', kind: '' }
/** What a page that is about one tenant begins with. */
const any: Filters = { state: '', kind: '' }

const kinds: Partial<Record<string, string>> = words.operations
/** The first four have a button each. */
const states = words.work as [State, string][]

/** What asks for the operations that failed, to count them. */
export const failedOperations = { query: { state: 'failed', limit: 100 } } as const

/** How many a page has: `4`, `100+`, or nothing while it loads. */
export const countOf = (page: { items: unknown[]; has_more: boolean } | undefined): string =>
  page ? `${page.items.length}${page.has_more ? '+' : ''}` : '–'

/**
 * The filters of a list of operations, which the service applies, with presets.
 *
 * @param failed how many failed
 * @param ofAll begins with all of them
 */
export function useOperationFilters(failed: string, ofAll = false): { query: Query; view: View } {
  const unfiltered = ofAll ? any : open
  const { fields, form, set, of } = useFilters(unfiltered)
  const view = filterBar({
    fields: form,
    unfiltered,
    set,
    presets: states
      .slice(0, 4)
      .map(
        ([state, name]) => [state === 'failed' ? `${name} ${failed}` : name, { state }] as const,
      ),
    names: { kind: 'Kind' },
    words: (_, value) => kinds[value],
    children: [
      selectField({ label: 'State', ...of('state'), choices: states }),
      selectField({
        label: 'Kind',
        ...of('kind'),
        choices: [['', 'all'], ...(Object.entries(kinds) as [string, string][])],
      }),
    ],
  })
  return { query: filled(fields), view }
}

/** What an empty list says, by the state that was asked for. */
export const noOperations = ({ state }: Query): readonly [string, string] =>
  words.noWork[state === 'open' || state === 'failed' ? state : 'other'] as [string, string]

const unfinished = new Set<Operation['state']>(['accepted', 'running'])

type Work = Pick<Operation, 'kind' | 'state' | 'progress' | 'created_at' | 'finished_at'>

/** The heads of the columns of `operationLine`. */
export const operationHeads = (): View =>
  html`<div class="heads" aria-hidden="true">
    ${line(html`<span class="quiet">Work</span>`, ['Progress', 'Took', 'Accepted'], 'line-work')}
  </div>`

/** An operation in a line: its state and kind in plain words, how far it is, how long it took, and when it came. */
export function operationLine(work: Work, about: Children): View {
  const { kind, state, progress, created_at: at, finished_at: end } = work
  const { done, total } = progress
  const name = kinds[kind] ?? kind
  return line(
    html`${stateChip(state)} <b title=${kind}>${name}</b> <span class="quiet">${about}</span>`,
    [
      total > 1 &&
        html`<span class="share">
          ${state === 'running' && html`<progress max=${total} value=${done} aria-hidden="true"></progress>`}
          ${`${formatCount(done)} of ${formatCount(total)}`}
        </span>`,
      end && formatMs(Date.parse(end) - Date.parse(at)),
      agoView(at),
    ],
    'line-work',
  )
}

/** When an operation failed, and why. */
const failureView = (at: string | null, words: string): View =>
  html`<p class="fault-words">${at !== null && html`${agoView(at)}: `}${words}</p>`

/** The work that was accepted for a vault, for an owner of the account, with its progress and outcome. */
export function Operations(): View {
  const failed = useCall('GET /v1/operations', failedOperations)
  const { query, view } = useOperationFilters(countOf(failed.answer))
  const { updateItems, ...list } = usePages('GET /v1/operations', {
    query: { limit: 30, ...query },
  })
  const changed = (operation: Operation): void =>
    updateItems(all =>
      all.map(one => (one.operation_id === operation.operation_id ? operation : one)),
    )
  return page({
    title: 'Work',
    description: 'What was accepted to be done: what waits, what runs, what failed and why.',
    actions: button('Refresh', list.refetch),
    children: html`${view}
      <div class="stack">
        ${list.items.length > 0 && operationHeads()}
        ${editableList(list, {
          what: 'operations',
          empty: noOperations(query),
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
        })}
      </div>`,
  })
}

const pollIntervalMs = 2_000

type ViewProps = { operation: Operation; changed: (operation: Operation) => void }

function OperationView({ operation, changed }: ViewProps): View {
  const { operation_id: id, state, session_id: session, outcome, waiting_for: cause } = operation
  useEffect(() => {
    if (!unfinished.has(state)) return undefined
    const timer = setTimeout(() => {
      // The next refresh retries a poll that fails.
      call('GET /v1/operations/:id', { params: { id } }).then(changed, () => undefined)
    }, pollIntervalMs)
    return () => clearTimeout(timer)
  }, [operation])
  const about = [session && chip(session, 'accent', 'Session'), cause && ` waits for ${cause}`]
  return html`${operationLine(operation, about)}
  ${state === 'failed' && failureView(operation.finished_at, errorMessage(outcome?.body))}
  ${
    outcome &&
    html`<details>
      <summary>Outcome (${outcome.status})</summary>
      <pre class="code" tabindex="0">${JSON.stringify(outcome.body, null, 2)}</pre>
    </details>`
  }`
}

/** The kind of work, and why it failed where that is known: `Delete memories: The embedding model answered 503`. */
export const workOf = ({ kind, outcome }: Operation): string =>
  [kinds[kind] ?? kind, outcome && errorMessage(outcome.body)].filter(Boolean).join(': ')

const errorMessage = (body: object | undefined): string =>
  body && 'error' in body && typeof body.error === 'string'
    ? body.error
    : 'All tries failed. The operator of the service finds the error among the dead jobs of its queue.'
