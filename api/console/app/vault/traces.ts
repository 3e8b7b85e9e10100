import { useState } from 'preact/hooks'
import { decodePart, hrefTo, navigate } from '#api/console/app/address.ts'
import { filled } from '#api/console/app/api-call.ts'
import { currentCredential } from '#api/console/app/credential.ts'
import { formatDateTime, formatRelativeTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip, timeView } from '#api/console/app/parts/chips.ts'
import {
  filters,
  lineForm,
  selectField,
  textField,
  useFilters,
} from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import { usePages } from '#api/console/app/queries.ts'
import { UserContext } from '#api/console/app/vault-user.ts'
import { TraceDetail } from '#api/console/app/vault/trace-detail.ts'
import {
  costWords,
  latencyWords,
  statusChip,
  wayNames,
  givenWords,
} from '#api/console/app/vault/trace-words.ts'
import type { ListTracesQuery, TraceSummary } from '#api/contract/generated/types.ts'

/**
 * The latest calls that read memory, or one of them.
 *
 * @param part the user of the account whose vault it read, as the address has it
 */
export const Traces = ({ id, part }: { id: string | undefined; part?: string }): View =>
  id === undefined
    ? renderComponent(TraceList, {})
    : html`<${UserContext.Provider} value=${part && decodePart(part)}>
        ${renderComponent(TraceDetail, { trace: id, key: id })}
      <//>`

/** The address of a call; that of a user's vault is opened as that user. */
export const traceHref = (id: string, user: string | null | undefined): string =>
  hrefTo('traces', id, ...(user ? [encodeURIComponent(user)] : []))

/** The filters in the address of the page. */
const unfiltered = {
  of: '',
  user: '',
  status: '',
  way: '',
  session: '',
  model: '',
  since: '',
  until: '',
}

function TraceList(): View {
  const { fields, set, of } = useFilters(unfiltered)
  const { of: whose, user, status: chosen, ...others } = fields
  const asked = chosen === 'failed' ? { ...others, failed: true } : { ...others, status: chosen }
  const owner = currentCredential()?.owner ?? false
  const scope = user === '' ? { account: whose === '' } : { user }
  const query = { ...filled(asked), ...(owner && scope), limit: 30 } as Partial<ListTracesQuery>
  const list = usePages('GET /v1/traces', { query })
  const isFiltered = Object.values(fields).some(value => value !== '')
  return page({
    title: 'Calls',
    description:
      'Calls that read memory: what was asked, what was recalled and answered, and what it took.',
    actions: button('Refresh', list.refetch),
    children: html`${filters(
        owner &&
          selectField({
            label: 'Whose',
            ...of('of'),
            choices: [
              ['', 'the whole account'],
              ['own', 'the vault of this key'],
            ],
          }),
        owner &&
          textField({ label: 'User', ...of('user'), maxlength: 256, placeholder: 'your id' }),
        selectField({ label: 'Status', ...of('status'), choices: statusChoices }),
        selectField({
          label: 'Way',
          ...of('way'),
          choices: [['', 'any'], ...Object.entries(wayNames)],
        }),
        textField({ label: 'Session', ...of('session'), maxlength: 256 }),
        textField({ label: 'Model', ...of('model'), maxlength: 256, placeholder: 'openai/gpt-5' }),
        textField({ label: 'From', type: 'date', ...of('since') }),
        textField({ label: 'To', type: 'date', ...of('until') }),
      )}
      <p class="chips">
        <span class="quiet">Show</span>
        ${presets().map(([name, preset]) => button(name, () => set({ ...unfiltered, ...preset }), { kind: 'link' }))}
      </p>
      ${renderComponent(OpenById, {})}
      ${editableList(list, {
        what: 'the calls',
        empty: isFiltered
          ? ['Nothing matches', 'Fewer filters show more.']
          : [
              'No calls',
              'A model call, a search, a prepare or a tool of MCP is listed here for as long as the policy of the account says.',
            ],
        key: ({ trace_id }) => trace_id,
        main: summaryView,
      })}`,
  })
}

/** What is looked for most. */
const presets = (): (readonly [string, Partial<typeof unfiltered>])[] => [
  ['all', {}],
  ['today', { since: new Date().toISOString().slice(0, 10) }],
  ['failed', { status: 'failed' }],
  ['nothing relevant', { status: 'none' }],
  ['without memory', { status: 'degraded' }],
]

const statusChoices = [
  ['', 'any'],
  ['failed', 'failed'],
  ['ok', 'memories given'],
  ['none', 'nothing relevant'],
  ['degraded', 'without memory: too slow'],
  ['off', 'memory was off'],
  ['aside', 'a call of the program itself'],
] as const

function OpenById(): View {
  const [id, setId] = useState('')
  return html`<details class="options">
    <summary>Open a call by its trace</summary>
    ${lineForm(
      textField({
        label: 'Trace of a call',
        value: id,
        onValue: setId,
        required: true,
        maxlength: 64,
        placeholder: 'the header X-Memory-Trace',
      }),
      button('Open', undefined, { kind: 'main' }),
      () => navigate('traces', id.trim()),
    )}
  </details>`
}

/** A call: what was asked first. */
function summaryView(item: TraceSummary): View {
  const {
    trace_id: id,
    created_at: at,
    way,
    model,
    user,
    session_id: session,
    question,
    answer,
    readable,
    error,
  } = item
  const about = [wayNames[way], model].filter(Boolean).join(', ')
  const title = question ?? `${about}, ${givenWords(item)}`
  return html`<p class="row-title latest-text">
      ${
        readable
          ? html`<a
              href=${traceHref(id, user)}
              aria-label=${`${title}: ${about}, ${formatDateTime(at)}`}
              >${title}</a
            >`
          : title
      }
    </p>
    ${!readable && html`<p class="quiet">Its words are of a vault that this key does not open.</p>`}
    ${answer && html`<p class="latest-text">${answer}</p>`}
    ${error && error.words !== '' && html`<p class="latest-text">${error.words}</p>`}
    <p class="chips">
      ${statusChip(item)} ${chip(wayNames[way])} ${model && chip(model)}
      ${user && chip(user, 'user', 'User')} ${session && chip(session, 'accent', 'Session')}
    </p>
    <p class="quiet">
      ${[givenWords(item), latencyWords(item.latency), costWords(item)].filter(Boolean).join(', ')}${' · '}
      ${timeView(at, formatRelativeTime(at), formatDateTime(at))}
    </p>`
}
