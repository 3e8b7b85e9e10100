import type { Value } from '#api/client/programs/programs.ts'

/** Puts words in the place of their names in braces, in every text of a value. */
export function fill<Filled extends Value>(
  value: Filled,
  words: Readonly<Record<string, string>>,
): Filled
export function fill(value: Value, words: Readonly<Record<string, string>>): Value {
  if (typeof value === 'string') {
    return value.replaceAll(/\{([\w.]+)\}/g, (whole, name: string) => words[name] ?? whole)
  }
  if (Array.isArray(value)) return value.map(part => fill(part, words))
  if (typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, fill(part, words)]))
}
