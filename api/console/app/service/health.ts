import { UserError } from '#api/console/app/api-call.ts'
import { hrefTo } from '#api/console/app/address.ts'
import { formatDateTime, formatRelativeTime, formatTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { useQuery, useRefresh, type QueryState } from '#api/console/app/queries.ts'
import type { ReadyAnswer, ServicePart } from '#api/contract/generated/types.ts'

/** The readiness of the process that answers; `error` where it is not ready. */
export type Health = Partial<ReadyAnswer> & { parts: ServicePart[]; error?: string }

const everyMs = 15_000

/** Asks again while the page is in view. It needs no key: what is down may be what checks keys. */
export function useHealth(): QueryState<Health> {
  const health = useQuery(readHealth, [])
  useRefresh(health.refetch, everyMs)
  return health
}

async function readHealth(signal: AbortSignal): Promise<Health> {
  const response = await fetch('/health/ready', { signal })
  const body = (await response.json().catch(() => ({}))) as Partial<Health>
  if (body.parts) return { ...body, parts: body.parts }
  throw new UserError(body.error ?? `The service answered ${response.status}`)
}

const partNames: Record<ServicePart['name'], string> = {
  postgres: 'Postgres',
  mongodb: 'MongoDB',
  queue: 'Workers',
  embeddings: 'Embedding model',
}

/** `1 of 4 parts is not well: MongoDB, since 10:44`; empty where all are well. */
export function healthWords({ parts, error }: Health): string {
  const faulty = parts.filter(({ state }) => state !== 'ok')
  if (faulty.length === 0) return error ?? ''
  const each = faulty.map(
    ({ name, state, since }) =>
      `${partNames[name]}${state === 'late' ? ' (late)' : ''}, since ${formatTime(since)}`,
  )
  const verb = faulty.length === 1 ? 'is' : 'are'
  return `${faulty.length} of ${parts.length} parts ${verb} not well: ${each.join('; ')}`
}

/** What is down, on every page of an operator; nothing where all is well. */
export const healthBanner = (): View => renderComponent(HealthBanner, {})

function HealthBanner(): View | null {
  const { answer, fault } = useHealth()
  const words = fault ? fault.message : answer ? healthWords(answer) : ''
  if (words === '') return null
  return html`<div class="fault health-banner" role="alert">
    <p class="fault-words">${words}.</p>
    <a href=${hrefTo('service')}>Health</a>
  </div>`
}

/** A part with its state, since when, and its last fault. */
export const partCells = ({ name, state, since, latency_ms: ms, last_fault: last }: ServicePart) =>
  [
    partNames[name],
    chip(state === 'ok' ? 'answers' : state, state === 'ok' ? 'good' : 'bad'),
    html`<span title=${formatDateTime(since)}>${formatRelativeTime(since)}</span>`,
    ms === null ? '–' : `${ms} ms`,
    last === null ? 'none since the start' : `${last.words} (${formatDateTime(last.at)})`,
  ] as const
