import type { WebhookEvent } from '#shared/events/webhooks/webhooks.postgres.ts'

/** A request of OTLP with one log record, in its form of JSON. */
export function toOtlpLogs({ id, type, timestamp, data }: WebhookEvent): string {
  const timeUnixNano = `${Date.parse(timestamp)}000000`
  const record = {
    timeUnixNano,
    observedTimeUnixNano: timeUnixNano,
    severityNumber: 9,
    severityText: 'INFO',
    eventName: type,
    attributes: toFields({ 'log.record.uid': id }),
    body: toAnyValue(data),
  }
  const scopeLogs = [{ scope: { name: 'memory-vault.audit' }, logRecords: [record] }]
  const resource = { attributes: toFields({ 'service.name': 'memory-vault' }) }
  return JSON.stringify({ resourceLogs: [{ resource, scopeLogs }] })
}

const toFields = (fields: object) =>
  Object.entries(fields).map(([key, value]) => ({ key, value: toAnyValue(value) }))

function toAnyValue(value: unknown): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (Number.isInteger(value)) return { intValue: String(value) }
  if (typeof value === 'number') return { doubleValue: value }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(toAnyValue) } }
  return value ? { kvlistValue: { values: toFields(value) } } : {}
}

/** Whether an answer 200 says that the record was not kept. */
export const isPartial = (answer: string): boolean =>
  /"rejectedLogRecords"\s*:\s*"?[1-9]/.test(answer)
