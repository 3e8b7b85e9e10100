import fc from 'fast-check'
import { contractDocument } from '#api/contract/document.ts'
import { hostileText, hostileValue } from '#test/support/hostile.ts'

type Schema = { readonly [keyword: string]: unknown }

/** Names of embedding models; none of them causes a network request. */
const embeddingModels = ['local', 'local', 'openai/none', 'nobody/x', 'LOCAL', '/', 'openai/']

/** Values that a schema of the contract mostly accepts. */
function validValues(schema: Schema): fc.Arbitrary<unknown> {
  const { $ref, type, anyOf, enum: choices } = schema
  if (typeof $ref === 'string') {
    if ($ref.endsWith('/EmbeddingModel')) return fc.constantFrom(...embeddingModels)
    return validValues(definitionOf($ref))
  }
  if (Array.isArray(choices)) return fc.constantFrom(...(choices as unknown[]))
  if (Array.isArray(anyOf)) return fc.oneof(...(anyOf as Schema[]).map(validValues))
  if (Array.isArray(type)) {
    return fc.oneof(...(type as string[]).map(one => validValues({ ...schema, type: one })))
  }
  return kinds[String(type)]?.(schema) ?? fc.jsonValue({ maxDepth: 2 })
}

function definitionOf(reference: string): Schema {
  let found: unknown = contractDocument
  for (const step of reference.split('#/')[1]!.split('/')) found = (found as Schema)[step]
  return found as Schema
}

const words = fc
  .array(fc.constantFrom('cat', 'Ada', 'garden', 'müde', '猫', 'yesterday', '42', '<b>'), {
    minLength: 1,
    maxLength: 12,
  })
  .map(list => list.join(' '))

const kinds: Record<string, (schema: Schema) => fc.Arbitrary<unknown>> = {
  string: ({ minLength = 0, maxLength = 100_000, pattern, format }) => {
    if (format === 'uuid') return fc.uuid()
    if (format === 'email') return fc.emailAddress()
    if (format) return fc.date({ noInvalidDate: true }).map(date => date.toISOString())
    const text = pattern
      ? fc.oneof(words, fc.stringMatching(new RegExp(pattern as string, 'u')))
      : fc.oneof({ weight: 3, arbitrary: words }, { weight: 1, arbitrary: hostileText })
    return text.map(some => some.padEnd(Number(minLength), 'x').slice(0, Number(maxLength)))
  },
  integer: ({ minimum = -1e9, maximum = 1e9 }) =>
    fc.integer({
      min: Math.max(Number(minimum), -(2 ** 31)),
      max: Math.min(Number(maximum), 2 ** 31 - 1),
    }),
  number: ({ minimum = -1e9, maximum = 1e9 }) =>
    fc.double({ min: Number(minimum), max: Number(maximum), noNaN: true }),
  boolean: () => fc.boolean(),
  null: () => fc.constant(null),
  array: ({ items = {}, minItems = 0, maxItems = 5, uniqueItems }) => {
    const bounds = { minLength: Number(minItems), maxLength: Math.min(Number(maxItems), 5) }
    const item = validValues(items as Schema)
    return uniqueItems ? fc.uniqueArray(item, bounds) : fc.array(item, bounds)
  },
  object: ({ properties = {}, required = [] }) => {
    const fields = Object.entries(properties as Record<string, Schema>)
    const requiredKeys = (required as string[]).filter(name => name in (properties as object))
    return fc.record(
      Object.fromEntries(fields.map(([name, field]) => [name, validValues(field)])),
      {
        requiredKeys,
      },
    )
  },
}

/**
 * Encoded bodies for a schema: some valid, most with a fault in one field or in the bytes.
 */
export function fuzzBodies(schema: Schema): fc.Arbitrary<string | Uint8Array> {
  const good = validValues(schema)
  const written = good.map(value => JSON.stringify(value))
  return fc.oneof(
    { weight: 3, arbitrary: written },
    {
      weight: 8,
      arbitrary: fc.tuple(good, mutations).map(([value, how]) => applyMutation(value, how)),
    },
    { weight: 1, arbitrary: hostileValue.map(value => JSON.stringify(value)) },
    { weight: 2, arbitrary: fc.tuple(written, fc.nat(), hostileText).map(corruptJson) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
    { weight: 1, arbitrary: hostileText },
  )
}

type Mutation = {
  at: number
  how: 'replace' | 'drop' | 'add' | 'rename' | 'twice'
  by: unknown
  name: string
}

const mutations: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat(),
  how: fc.constantFrom('replace', 'replace', 'replace', 'drop', 'add', 'rename', 'twice'),
  by: hostileValue,
  name: fc.oneof(hostileText, fc.constantFrom('x', 'Query', 'session-id', 'limits')),
})

type FieldLocation = { container: Record<string, unknown>; name: string }

function listFieldLocations(value: unknown, found: FieldLocation[] = []): FieldLocation[] {
  if (typeof value !== 'object' || value === null) return found
  for (const name of Object.keys(value)) {
    found.push({ container: value as Record<string, unknown>, name })
    listFieldLocations((value as Record<string, unknown>)[name], found)
  }
  return found
}

function applyMutation(good: unknown, { at, how, by, name }: Mutation): string {
  const value: unknown = structuredClone(good)
  const places = listFieldLocations(value)
  const place = places[at % Math.max(1, places.length)]
  if (!place) return JSON.stringify(by)
  const { container } = place
  if (how === 'replace') container[place.name] = by
  if (how === 'add' && !Array.isArray(container)) define(container, name, by)
  if (how === 'rename' && !Array.isArray(container)) define(container, name, container[place.name])
  if (how === 'drop' || how === 'rename') delete container[place.name]
  const text = JSON.stringify(value)
  // The same field twice, which no JavaScript value can represent.
  return how === 'twice' && text.startsWith('{"')
    ? `{${JSON.stringify(place.name)}:1,${text.slice(1)}`
    : text
}

/** Defines an own property, also one named `__proto__`. */
function define(container: object, name: string, value: unknown): void {
  Object.defineProperty(container, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  })
}

/** Truncated JSON, or JSON with foreign text inserted. */
function corruptJson([text, where, rubbish]: [string, number, string]): string {
  const at = where % (text.length + 1)
  if (where % 3 === 0) return text.slice(0, at)
  if (where % 3 === 1) return text.slice(0, at) + rubbish + text.slice(at)
  return text.slice(0, at) + text.slice(at + 1)
}
