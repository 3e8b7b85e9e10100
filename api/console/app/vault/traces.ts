import { useEffect, useState } from 'preact/hooks'
import { decodePart, hrefTo, navigate } from '#api/console/app/address.ts'
import { filled } from '#api/console/app/api-call.ts'
import { currentCredential } from '#api/console/app/credential.ts'
import { formatDateTime, isoDay } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip, clockView } from '#api/console/app/parts/chips.ts'
import {
  filterBar,
  lineForm,
  selectField,
  textField,
  useFilters,
} from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList, line } from '#api/console/app/parts/notes.ts'
import { usePages } from '#api/console/app/queries.ts'
import { UserContext } from '#api/console/app/vault-user.ts'
import { TraceBody, TraceDetail } from '#api/console/app/vault/trace-detail.ts'
import {
  costWords,
  filterNames,
  statusChoices,
  formatMs,
  isException,
  latencyWords,
  statusChip,
  wayNames,
  givenWords,
  outcomeWords,
} from '#api/console/app/vault/trace-words.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
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

/** The filters in the address of the page, and the call that is open beside the list: its trace, a slash, its user. */
const unfiltered = {
  of: '',
  user: '',
  status: '',
  way: '',
  session: '',
  model: '',
  since: '',
  until: '',
  open: '',
}

/** A call opens beside the list where there is room for both. */
const hasRoomFor = (): boolean => matchMedia('(min-width: 64rem)').matches

function TraceList(): View {
  const { fields, setFields, form, set, of } = useFilters(unfiltered)
  const { of: whose, user, status: chosen, open, ...others } = fields
  const asked = chosen === 'failed' ? { ...others, failed: true } : { ...others, status: chosen }
  const owner = currentCredential()?.owner ?? false
  const scope = user === '' ? { account: whose === '' } : { user }
  const query = { ...filled(asked), ...(owner && scope), limit: 30 } as Partial<ListTracesQuery>
  const list = usePages('GET /v1/traces', { query })
  const isFiltered = Object.entries(others).some(([, value]) => value !== '') || chosen !== ''
  const openBeside = (event: MouseEvent, { trace_id: id, user }: TraceSummary): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || !hasRoomFor()) return
    event.preventDefault()
    setFields({ ...fields, open: [id, ...(user ? [user] : [])].join('/') })
  }
  return page({
    title: 'Calls',
    description:
      'Calls that read memory: what was asked, what was recalled and answered, and what it took.',
    actions: button('Refresh', list.refetch),
    children: html`${filterBar({
        fields: form,
        unfiltered,
        set,
        presets: presets(),
        names: filterNames,
        words: (name, value) =>
          name === 'status'
            ? statusChoices.find(([status]) => status === value)?.[1]
            : name === 'way'
              ? wayNames[value as TraceSummary['way']]
              : name === 'of'
                ? 'the vault of this key'
                : undefined,
        children: [
          owner &&
            selectField({
              label: 'Whose',
              ...of('of'),
              choices: { '': 'the whole account', own: 'the vault of this key' },
            }),
          owner &&
            textField({ label: 'User', ...of('user'), maxlength: 256, placeholder: 'your id' }),
          selectField({ label: 'Outcome', ...of('status'), choices: statusChoices }),
          selectField({
            label: 'Kind of call',
            ...of('way'),
            choices: [['', 'any'], ...Object.entries(wayNames)],
          }),
          textField({ label: 'Session', ...of('session'), maxlength: 256 }),
          textField({ ...words.fields.model, ...of('model') }),
          textField({ label: 'From', type: 'date', ...of('since') }),
          textField({ label: 'To', type: 'date', ...of('until') }),
          renderComponent(OpenById, {}),
        ],
      })}
      <div class=${open === '' ? '' : 'with-pane'}>
        <div class="stack">
          ${list.items.length > 0 && html`<div class="heads" aria-hidden="true">${line(html`<span class="quiet">Asked</span>`, ['User', 'Model or kind', 'Recalled', 'Took', 'Cost', 'When'], 'line-call')}</div>`}
          ${editableList(list, {
            what: 'the calls',
            empty: isFiltered
              ? ['Nothing matches', 'Fewer filters show more.']
              : [
                  'No calls',
                  'A model call, a search, a prepare or a tool of MCP is listed here for as long as the policy of the account says.',
                ],
            key: ({ trace_id }) => trace_id,
            main: item => summaryView(item, open.startsWith(item.trace_id), openBeside),
          })}
        </div>
        ${open !== '' && renderComponent(CallPane, { open, onClose: () => setFields({ ...fields, open: '' }), key: open })}
      </div>`,
  })
}

/** A call beside the list. */
function CallPane({ open, onClose }: { open: string; onClose: () => void }): View {
  const [id = '', ...rest] = open.split('/')
  const user = rest.length > 0 ? rest.join('/') : undefined
  useEffect(() => {
    const onKey = ({ key }: KeyboardEvent): void => {
      if (key === 'Escape' && !document.querySelector('dialog[open]')) onClose()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  return html`<aside class="pane stack" aria-label="The call">
    <header class="section-head">
      <h2>Call</h2>
      <div class="actions">
        <a href=${traceHref(id, user)}>Whole page</a>
        ${button('Close', onClose, { kind: 'plain' })}
      </div>
    </header>
    <${UserContext.Provider} value=${user}>${renderComponent(TraceBody, { trace: id })}<//>
  </aside>`
}

/** What is looked for most. */
const presets = (): (readonly [string, Partial<typeof unfiltered>])[] => [
  ['All', {}],
  ['Today', { since: isoDay(Date.now()) }],
  ['Failed', { status: 'failed' }],
  ['Nothing relevant', { status: 'none' }],
  ['Without memory', { status: 'degraded' }],
]

function OpenById(): View {
  const [id, setId] = useState('')
  return html`<details class="options">
    <summary>Open a call by its trace</summary>
    ${lineForm(
      textField({ ...words.fields.trace, value: id, onValue: setId }),
      button('Open', undefined, { kind: 'main' }),
      () => navigate('traces', id.trim()),
    )}
  </details>`
}

/** A call in a line: what was asked, the answer or what went wrong, and what it took. */
export function summaryView(
  item: TraceSummary,
  isOpen = false,
  openBeside?: (event: MouseEvent, item: TraceSummary) => void,
): View {
  const { trace_id: id, created_at: at, way, model, user, session_id: session } = item
  const { question, answer, readable, error, latency } = item
  const about = [wayNames[way], model].filter(Boolean).join(', ')
  const title = question ?? `${about}, ${givenWords(item)}`
  const rest = question !== null && !error && answer
  return html`${line(
    html`${
      readable
        ? html`<a
            class="row-title"
            href=${traceHref(id, user)}
            aria-current=${isOpen ? 'true' : undefined}
            aria-label=${`${title}: ${about}, ${formatDateTime(at)}`}
            onClick=${(event: MouseEvent) => openBeside?.(event, item)}
            >${title}</a
          >`
        : html`<b title="Its words are of a vault that this key does not open.">${title}</b>`
    }
    ${rest && html`<span class="quiet">${rest}</span>`}`,
    [
      (user || session) &&
        html`${user && chip(user, 'user', 'User')} ${session && chip(session, 'accent', 'Session')}`,
      model ?? wayNames[way],
      isException(item) ? statusChip(item) : outcomeWords(item),
      latency.total !== null &&
        html`<span title=${latencyWords(latency)}>${formatMs(latency.total)}</span>`,
      costWords(item),
      clockView(at),
    ],
    'line-call',
  )}
  ${error?.words && html`<p class="fault-words">${error.words}</p>`}`
}
