import { parseStart } from '#shared/core/dates.ts'

/** Readers for fields of JSON of other products: a value of an unexpected type counts as absent. */

export type Fields = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const asObject = (value: unknown): Fields => (isObject(value) ? value : {})

export const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const asText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** Returns the first of these fields that is a text. */
export const firstText = (fields: Fields, ...names: string[]): string | undefined =>
  names.map(name => asText(fields[name])).find(text => text !== undefined)

/** Below this number a time is in seconds. */
const secondsMax = 1e11
const [earliest, latest] = [-62_135_596_800_000, 253_402_300_799_000]

/** Returns the first value that is a time, in ISO 8601; a number is seconds or milliseconds since 1970. */
export function asTime(...values: unknown[]): string | undefined {
  for (const value of values) {
    const at =
      typeof value === 'number'
        ? value * (Math.abs(value) < secondsMax ? 1000 : 1)
        : typeof value === 'string' && value !== ''
          ? parseStart(value)
          : Number.NaN
    if (at >= earliest && at <= latest) return new Date(Math.trunc(at)).toISOString()
  }
  return undefined
}

/** A time some milliseconds later. */
export const addMilliseconds = (time: string | undefined, count: number): string | undefined =>
  time === undefined ? undefined : new Date(Date.parse(time) + count).toISOString()
