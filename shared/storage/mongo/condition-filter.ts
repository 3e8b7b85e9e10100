import type { Filter } from 'mongodb'
import {
  jsonCharacters,
  metadataName,
  type Condition,
  type Test,
} from '#shared/domain/condition.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'

/** The filter of a condition, to be spread into another one. Without a condition it is empty. */
export const conditionFilter = (
  condition: Condition | undefined,
): { $and?: Filter<MemoryDocument>[] } => (condition ? { $and: [toFilter(condition)] } : {})

/** Whether a search index has the fields of a test, in operators that it supports. */
export const isIndexed = (test: Test): boolean =>
  metadataName(test) === undefined
    ? test.op !== 'exists' && ['tier', 'time', 'importance', 'session'].includes(test.field)
    : test.op === 'in'

function toFilter(condition: Condition): Filter<MemoryDocument> {
  if ('and' in condition) return { $and: condition.and.map(toFilter) }
  if ('or' in condition) return { $or: condition.or.map(toFilter) }
  if ('not' in condition) return { $nor: [toFilter(condition.not)] }
  const name = metadataName(condition)
  return name === undefined ? fieldFilter(condition) : metadataFilter(name, condition)
}

/** Fields that documents have under another name. */
const paths: Record<string, string> = { time: 'at', name: 'speaker', shared: 'tags' }

function fieldFilter(test: Test): Filter<MemoryDocument> {
  const { field, op } = test
  const path = paths[field] ?? field
  if (op === 'in') return { [path]: { $in: [...test.values] } }
  if (op === 'exists') return { [path]: field === 'session' ? { $ne: '' } : { $exists: true } }
  return { [path]: { [`$${op}`]: field === 'time' ? new Date(test.value) : test.value } }
}

/** Metadata are stored as terms such as `floor=3` and `agent_id="porter"`: see `metadataTerms`. */
function metadataFilter(name: string, test: Test): Filter<MemoryDocument> {
  const start = `${name}=`
  if (test.op === 'in')
    return { metadata: { $in: test.values.map(value => start + JSON.stringify(value)) } }
  const pattern = `^${start.replaceAll('.', String.raw`\.`)}`
  if (test.op === 'exists') return { metadata: { $regex: pattern } }
  // Without the field an empty text is compared, to no effect.
  const begins = { $eq: [{ $indexOfBytes: ['$$this', start] }, 0] }
  const first = { $first: { $filter: { input: '$metadata', cond: begins } } }
  const term = { $ifNull: [first, ''] }
  const { op, value } = test
  if (typeof value === 'number') {
    const text = { $substrBytes: [term, start.length, -1] }
    const number = { $convert: { input: text, to: 'double', onError: null } }
    return { metadata: { $regex: `${pattern}[-0-9]` }, $expr: { [`$${op}`]: [number, value] } }
  }
  const length = { $subtract: [{ $strLenBytes: term }, start.length + 2] }
  const text = { $substrBytes: [term, start.length + 1, length] }
  const bound = { $literal: jsonCharacters(value) }
  return { metadata: { $regex: `${pattern}"` }, $expr: { [`$${op}`]: [text, bound] } }
}
