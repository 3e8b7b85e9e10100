import { useState } from 'preact/hooks'
import { hrefTo } from '#api/console/app/address.ts'
import { call, filled } from '#api/console/app/api-call.ts'
import {
  formatCompact,
  formatCount,
  formatDateTime,
  formatShortDay,
  formatUtcDay,
  pluralize,
} from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, buttonLink } from '#api/console/app/parts/buttons.ts'
import { daysField } from '#api/console/app/parts/chart.ts'
import { chip, stateChip, timeView } from '#api/console/app/parts/chips.ts'
import {
  checkboxField,
  filters,
  selectField,
  textField,
  useFields,
} from '#api/console/app/parts/fields.ts'
import { dialogButton, dialogForm } from '#api/console/app/parts/dialogs.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList, line, queryView } from '#api/console/app/parts/notes.ts'
import { useDebounced, usePages, useCall } from '#api/console/app/queries.ts'
import { formatMs } from '#api/console/app/vault/trace-words.ts'
import { stateChoices, type OperationState } from '#api/console/app/vault/operations.ts'
import { usageView } from '#api/console/app/vault/usage.ts'
import type { Tenant, ServiceOperation } from '#api/contract/generated/types.ts'

export function Tenants(): View {
  const [typed, setTyped] = useState('')
  const q = useDebounced(typed.trim())
  const list = usePages('GET /v1/operator/tenants', { query: filled({ limit: 25, q }) })
  return page({
    title: 'Tenants',
    description: 'Accounts of this service, newest first. What they remember is theirs.',
    actions: button('Refresh', list.refetch),
    children: html`${filters(
      textField({
        label: 'Find by email',
        type: 'search',
        value: typed,
        onValue: setTyped,
        maxlength: 200,
      }),
    )}
    ${editableList(list, {
      what: 'tenants',
      empty: ['No tenants', q ? 'No email has this in it.' : '“npm run create-account” makes one.'],
      key: ({ account_id }) => account_id,
      main: tenantView,
      actions: tenant => [
        dialogButton(
          'Billing',
          onClose => renderComponent(BillingForm, { tenant, onClose, onSaved: list.refetch }),
          { about: tenant.email },
        ),
        buttonLink('Operations', hrefTo('service', 'operations', tenant.account_id), {
          about: tenant.email,
        }),
      ],
    })}`,
  })
}

const tenantView = (tenant: Tenant): View => {
  const { email, last_30_days: used, pending, balance } = tenant
  return html`<p class="row-title">
      ${email} ${pending > 0 && chip(`${formatCount(pending)} waiting`, 'busy')}
      ${!tenant.payment_method && chip('no card', 'plain', 'Uploads are refused')}
      ${balance !== null && chip(`${formatCompact(balance)} tokens left`, balance > 0 ? 'plain' : 'bad')}
    </p>
    <p>
      ${pluralize(used.requests, 'request')} and ${formatCompact(used.memory_tokens)} memory tokens
      in 30 days
    </p>
    <p class="quiet">${tenantStatus(tenant)}</p>`
}

type BillingProps = { tenant: Tenant; onClose: () => void; onSaved: () => void }

/** The card on file and the balance of a tenant. */
function BillingForm({ tenant, onClose, onSaved }: BillingProps): View {
  const { email, account_id: accountId, payment_method, balance } = tenant
  const { fields, of } = useFields({
    uploads: payment_method,
    balance: balance === null ? '' : String(balance),
  })
  return dialogForm({
    title: `Billing of ${email}`,
    verb: 'Save',
    onClose,
    act: () =>
      call('PATCH /v1/operator/tenants/:accountId', {
        params: { accountId },
        body: {
          ...(fields.uploads !== payment_method && {
            payment_method: fields.uploads ? 'self-hosted' : null,
          }),
          balance: fields.balance === '' ? null : Number(fields.balance),
        },
      }),
    done: `Billing of ${email} is saved.`,
    onDone: onSaved,
    fields: html`${checkboxField({
      label: 'May upload and import files',
      ...of('uploads'),
      hint: 'A card is on file, or none is asked for.',
    })}
    ${textField({
      label: 'Tokens left',
      type: 'number',
      min: 0,
      ...of('balance'),
      hint: 'Empty: unlimited.',
    })}`,
  })
}

function tenantStatus(tenant: Tenant): string {
  const { keys, vaults, users, organizations, member_keys, last_active, created_at } = tenant
  const holdings = [pluralize(keys, 'key'), pluralize(vaults, 'vault')]
  if (users > 0) holdings.push(pluralize(users, 'user'))
  if (organizations > 0)
    holdings.push(pluralize(organizations, 'organization'), pluralize(member_keys, 'member key'))
  const active = last_active ? `last active ${formatUtcDay(last_active)}` : 'never active'
  return `${holdings.join(', ')}; ${active}, since ${formatShortDay(created_at)}`
}

/**
 * Operations of all tenants, or of one: their progress, never their content.
 *
 * @param id of the account of a tenant
 */
export function ServiceOperations({ id }: { id: string | undefined }): View {
  const first = (id ? '' : 'open') as OperationState | '' | 'open'
  const { fields, of } = useFields({ state: first, kind: '' })
  const { state, kind } = fields
  const isOpen = state === 'open'
  const asked = { limit: isOpen ? 200 : 50, state: isOpen ? '' : state, kind, account_id: id }
  // What is open is seldom among the newest: as many are looked through as are read in a moment.
  const request = { query: filled(asked) }
  const list = usePages('GET /v1/operator/operations', request, isOpen ? 5 : 1)
  const end = list.loadMore
    ? `, back to ${formatDateTime(list.items.at(-1)?.created_at ?? new Date())}; “Show more” looks further`
    : ', all there are'
  const seen = `${pluralize(list.items.length, 'piece')} of work${end}`
  const isShown = ({ state, status }: ServiceOperation): boolean =>
    !isOpen || state !== 'done' || (status ?? 0) >= 500
  return page({
    title: 'Operations of the service',
    description: id
      ? html`Work of one tenant. <a href=${hrefTo('service', 'operations')}>Show all</a>`
      : 'Work that was promised to tenants, newest first.',
    actions: button('Refresh', list.refetch),
    children: html`${filters(
      selectField({
        label: 'State',
        ...of('state'),
        choices: [['open', 'not finished or failed'], ...stateChoices],
      }),
      selectField({
        label: 'Kind',
        ...of('kind'),
        choices:
          ' ingest edit upload import transfer graft clear delete-ids expire commit reembed retention'
            .split(' ')
            .map(kind => [kind, kind || 'all'] as const),
      }),
    )}
    ${editableList(
      { ...list, items: list.items.filter(isShown) },
      {
        what: 'operations',
        empty: [
          isOpen ? 'Nothing waits, and nothing has failed' : 'No operations',
          isOpen || list.loadMore ? `Looked through: ${seen}.` : 'Nothing matches.',
        ],
        key: ({ operation_id }) => operation_id,
        main: operationView,
      },
    )}`,
  })
}

function operationView(operation: ServiceOperation): View {
  const {
    kind,
    state,
    status,
    email,
    created_at,
    finished_at: finished,
    progress,
    error,
  } = operation
  const { done, total } = progress
  return line(
    html`${state !== 'done' && stateChip(state)} <b>${kind}</b>
      ${status !== null && status >= 400 && chip(status, 'bad')}
      <span class="quiet">${[email, error].filter(Boolean).join(': ')}</span>`,
    [
      state === 'running' && total > 0 && `${formatCount(done)} of ${formatCount(total)}`,
      finished && formatMs(new Date(finished).getTime() - new Date(created_at).getTime()),
      timeView(created_at),
    ],
  )
}

/** The usage of all tenants by day. */
export function ServiceUsage(): View {
  const [days, setDays] = useState('30')
  const usage = useCall('GET /v1/operator/usage', { query: { days: Number(days) } })
  return page({
    title: 'Usage of the service',
    description: 'Of all tenants together. Days are UTC.',
    children: html`${filters(daysField(days, setDays))}
    ${queryView(usage, 'usage', ({ by_day, ...period }) => {
      const sumOf = (name: 'requests' | 'memory_tokens' | 'input_tokens' | 'output_tokens') =>
        by_day.reduce((sum, day) => sum + day[name], 0)
      return usageView({
        sums: {
          total_requests: sumOf('requests'),
          total_memory_tokens: sumOf('memory_tokens'),
          total_input_tokens: sumOf('input_tokens'),
          total_output_tokens: sumOf('output_tokens'),
        },
        period,
        days: by_day,
        metrics: [
          ['requests', 'Requests'],
          ['accounts', 'Active tenants'],
          ['memory_tokens', 'Memory tokens'],
        ],
        unused: 'Requests of all tenants appear here.',
      })
    })}`,
  })
}
