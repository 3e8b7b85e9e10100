import { hrefTo, userHref } from '#api/console/app/address.ts'
import { filled } from '#api/console/app/api-call.ts'
import { currentCredential, maskKey } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip, clockView, type Labels } from '#api/console/app/parts/chips.ts'
import { filters, selectField, textField, useFilters } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList, line } from '#api/console/app/parts/notes.ts'
import { useCall, usePages } from '#api/console/app/queries.ts'
import { describeChange } from '#api/console/app/vault/event-change.ts'
import words from '#shared/events/account-actions.json' with { type: 'json' }
import type { AccountAction, AccountEvent } from '#api/contract/generated/types.ts'

/** What was done, and to what; what ends access, or removes something, is red. */
const actions = words as Labels<AccountAction>

const unfiltered = { what: '', actor: '', since: '' }

const kinds: readonly (readonly [value: string, words: string])[] = [
  ['', 'anything'],
  ...Object.entries(actions).map(([action, [verb, of]]) => [action, `${verb} ${of}`] as const),
]

/** Who changed access and policy of one organization. */
export const Events = ({ org }: { org: string }): View =>
  page({
    title: 'Events',
    description: 'Who changed roles, tags, instructions, settings, members and keys.',
    children: renderComponent(AccountEvents, { org }),
  })

/** What was done to the account. */
export const History = (): View =>
  page({
    title: 'History',
    description: 'Who changed keys, policy, access and organizations of the account.',
    children: renderComponent(AccountEvents, {}),
  })

/** The events of the account, or of one of its organizations, newest first. */
function AccountEvents({ org }: { org?: string }): View {
  const { fields, of } = useFilters(unfiltered)
  const { what, actor, since } = fields
  const events = usePages('GET /v1/account/events', {
    query: filled({ limit: 100, action: what as AccountAction | '', since }),
  })
  const keys = useCall('GET /v1/keys', { query: { limit: 200 } }).answer?.items ?? []
  const webhooks = useCall('GET /v1/account/webhooks').answer?.webhooks ?? []
  const names = new Map([
    ...keys.map(key => [key.masked_key, key.external_id === null ? key.name : ''] as const),
    ...webhooks.map(({ id, url }) => [id, url.replace(/^https?:\/\//, '')] as const),
  ])
  const wanted = actor.trim().toLowerCase()
  const isShown = (event: AccountEvent): boolean =>
    (org === undefined || event.org_id === org || event.subject === org) &&
    event.actor.toLowerCase().includes(wanted)
  return html`${filters(
    textField({
      label: 'Who',
      type: 'search',
      ...of('actor'),
      maxlength: 320,
      placeholder: 'email or key',
    }),
    selectField({ label: 'What', ...of('what'), choices: kinds }),
    textField({ label: 'Since', type: 'date', ...of('since') }),
  )}
  ${editableList(
    { ...events, items: events.items.filter(isShown) },
    {
      what: 'what happened',
      empty: events.loadMore
        ? ['None among the newest', 'There are older ones to look through.']
        : ['No events', 'Changes of keys, policy and access are listed here.'],
      ordered: true,
      key: ({ position }) => position,
      main: event => eventView(event, names),
    },
  )}`
}

const endings = new Set([
  'revoked',
  'forgot',
  'deleted',
  'removed',
  'ended',
  'emptied',
  'switched off',
])

/** A masked key, an email or a provider says more than the id of a part, which stands in the title. */
const isWords = (subject: string): boolean =>
  subject !== 'account' && !/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(subject)

function eventView(event: AccountEvent, names: ReadonlyMap<string, string>): View {
  const { action, subject, external_id: user, actor, created_at: at, ...change } = event
  const [verb, what] = actions[action]
  const { name, details } = describeChange(change)
  const named = name || names.get(subject)
  const known = named && html`<b title=${subject}>${named}</b>`
  const place = subject.startsWith('mk_') ? 'keys' : 'webhooks'
  return line(
    html`<b title=${actor}
        >${actor === maskKey(currentCredential()!) ? 'You' : actor === 'service' ? 'The service' : actor}</b
      >
      ${endings.has(verb) ? chip(verb, 'bad') : verb} ${what}
      ${known && (names.has(subject) ? html`<a href=${hrefTo(place)}>${known}</a>` : known)}
      ${!name && isWords(subject) && html`<code>${subject}</code>`}
      ${user !== undefined && html`of user <a href=${userHref(user)}><b>${user}</b></a>`}
      ${details && html`<span class="quiet" title=${details}>${details}</span>`}`,
    [clockView(at)],
    'line-event',
  )
}
