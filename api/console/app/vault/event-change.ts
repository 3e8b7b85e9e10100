import type { AccountEvent } from '#api/contract/generated/types.ts'

type Change = { [Side in 'before' | 'after']?: AccountEvent[Side] | undefined }

/** What an event records of a change: the name of what was changed, and the fields that differ, each as `allowed tags: pay → pay, hr`. */
export function describeChange({ before, after }: Change): { name: string; details: string } {
  if (before === undefined && after === undefined) return { name: '', details: '' }
  if (!isFields(before) && !isFields(after))
    return { name: '', details: `${formatValue(before)} → ${formatValue(after)}` }
  // What is set for the first time was none before.
  const unset = isFields(before) && isFields(after) ? null : undefined
  const [earlier, later] = [isFields(before) ? before : {}, isFields(after) ? after : {}]
  const names = [...new Set([...Object.keys(earlier), ...Object.keys(later)])]
  const naming = names.find(
    name => namingFields.has(name) && isOneValue(earlier[name], later[name]),
  )
  const name = naming === undefined ? '' : formatValue(later[naming] ?? earlier[naming])
  const details = names
    .filter(one => one !== 'sha256' && one !== naming)
    // An email that is the name, and what is empty before and after, say nothing.
    .filter(one => formatValue(later[one] ?? earlier[one]) !== name)
    .filter(one => !isEmpty(earlier[one]) || !isEmpty(later[one]))
    .filter(one => !isId(earlier[one]) && !isId(later[one]))
    .map(one => describeField(one, earlier[one] ?? unset, later[one] ?? unset))
    .concat(
      names.includes('sha256') && isFields(before) && isFields(after) ? ['words changed'] : [],
    )
  return { name, details: details.join(', ') }
}

/** Ids, which say nothing to a person. */
const isId = (value: unknown): boolean => /^[0-9a-f]{8}-[0-9a-f]{4}-/.test(formatValue(value))

const isOneValue = (before: unknown, after: unknown): boolean =>
  before === undefined || after === undefined || formatValue(before) === formatValue(after)

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === 0 ||
  value === '' ||
  (Array.isArray(value) && value.length === 0)

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** Fields whose value names what was changed. */
const namingFields = new Set(['name', 'label', 'team_member_id'])

function describeField(name: string, before: unknown, after: unknown): string {
  const [earlier, later] = [formatValue(before), formatValue(after)]
  const words = name.replaceAll('_', ' ')
  if (before === undefined || earlier === later) return `${words}: ${later}`
  if (after === undefined) return `${words}: ${earlier}`
  return `${words}: ${earlier} → ${later}`
}

function formatValue(value: unknown): string {
  if (value === null || value === undefined) return 'none'
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(' + ')
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
