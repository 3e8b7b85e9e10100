import { useState } from 'preact/hooks'
import { hrefTo } from '#api/console/app/address.ts'
import { call, filled } from '#api/console/app/api-call.ts'
import {
  formatCompact,
  formatCount,
  formatShortDay,
  formatUtcDay,
  pluralize,
} from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, buttonLink, copyButton } from '#api/console/app/parts/buttons.ts'
import { daysField } from '#api/console/app/parts/chart.ts'
import { agoView, chip } from '#api/console/app/parts/chips.ts'
import { checkboxField, filters, textField, useFields } from '#api/console/app/parts/fields.ts'
import { dialogButton, dialogForm } from '#api/console/app/parts/dialogs.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList, queryView } from '#api/console/app/parts/notes.ts'
import { useDebounced, usePages, useCall } from '#api/console/app/queries.ts'
import {
  countOf,
  failedOperations,
  noOperations,
  operationHeads,
  operationLine,
  useOperationFilters,
} from '#api/console/app/vault/operations.ts'
import { usageView } from '#api/console/app/vault/usage.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
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
      textField({ ...words.fields.findTenant, type: 'search', value: typed, onValue: setTyped }),
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
    ${textField({ ...words.fields.tokensLeft, type: 'number', ...of('balance') })}`,
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
export const ServiceOperations = ({ id }: { id: string | undefined }): View =>
  renderComponent(OperationList, { id, key: id ?? '' })

function OperationList({ id }: { id: string | undefined }): View {
  const failed = useCall('GET /v1/operator/operations', {
    query: { ...failedOperations.query, ...filled({ account_id: id }) },
  })
  const { query, view } = useOperationFilters(countOf(failed.answer), id !== undefined)
  const asked = filled({ limit: 50, ...query, account_id: id })
  const list = usePages('GET /v1/operator/operations', { query: asked })
  const [title, hint] = noOperations(query)
  return page({
    title: 'Operations of the service',
    description: id
      ? html`Work of one tenant. <a href=${hrefTo('service', 'operations')}>Show all</a>`
      : 'Work that was promised to tenants, newest first: what waits, what runs, what failed and why.',
    actions: button('Refresh', list.refetch),
    children: html`${view}
      <div class="stack">
        ${list.items.length > 0 && operationHeads()}
        ${editableList(list, {
          what: 'operations',
          // A page looks through some thousands: what is rare may be on a later one.
          empty: [
            title,
            list.loadMore ? 'None among the newest: “Show more” looks further.' : hint,
          ],
          key: ({ operation_id }) => operation_id,
          main: operationView,
        })}
      </div>`,
  })
}

/** An operation with its tenant; one that failed with why, as far as that is told, and where to look next. */
function operationView(operation: ServiceOperation): View {
  const { operation_id: id, email, state, status, error, finished_at: at } = operation
  if (state !== 'failed') return operationLine(operation, email)
  const isOfTenant = status !== null && status < 500
  const why =
    error ??
    (isOfTenant
      ? 'What was sent is at fault, and is the tenant’s alone'
      : 'No reason was kept here')
  return html`${operationLine(operation, email)}
    <p class="fault-words">${why}</p>
    <p class="quiet chips">
      <span>Ended ${at && agoView(at)}${status !== null && `, outcome ${status}`}</span>
      <code>${id}</code> ${copyButton('Copy', id, { kind: 'link', about: 'the id' })}
      ${status === null && html`<a href=${hrefTo('service', 'queues')}>The dead jobs may say more</a>`}
      ${status !== null && !isOfTenant && html`<a href=${hrefTo('service')}>Health</a>`}
    </p>`
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
