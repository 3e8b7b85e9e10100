import type { AccountEvent } from '#api/contract/generated/types.ts'

type Change = { [Side in 'before' | 'after']?: AccountEvent[Side] | undefined }

/** What an event records of a change, as one line: `finance, allowed tags: pay → pay, hr`. Empty without one. */
export function describeChange({ before, after }: Change): string {
  if (before === undefined && after === undefined) return ''
  if (!isFields(before) && !isFields(after)) return `${formatValue(before)} → ${formatValue(after)}`
  const [earlier, later] = [isFields(before) ? before : {}, isFields(after) ? after : {}]
  const names = [...new Set([...Object.keys(earlier), ...Object.keys(later)])]
  return names
    .filter(name => name !== 'sha256')
    .map(name => describeField(name, earlier[name], later[name]))
    .concat(
      names.includes('sha256') && isFields(before) && isFields(after) ? ['words changed'] : [],
    )
    .join(', ')
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** Fields whose value names what was changed. */
const namingFields = new Set(['name', 'label', 'team_member_id'])

function describeField(name: string, before: unknown, after: unknown): string {
  const [earlier, later] = [formatValue(before), formatValue(after)]
  const isBothSame = earlier === later
  if (namingFields.has(name) && (isBothSame || before === undefined || after === undefined)) {
    return after === undefined ? earlier : later
  }
  const words = name.replaceAll('_', ' ')
  if (before === undefined || isBothSame) return `${words}: ${later}`
  if (after === undefined) return `${words}: ${earlier}`
  return `${words}: ${earlier} → ${later}`
}

function formatValue(value: unknown): string {
  if (value === null || value === undefined) return 'none'
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(' + ')
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
