import { randomUUID } from 'node:crypto'
import { contractDocument } from '#api/contract/document.ts'
import { hostileValues } from '#scripts/lab/prove/malformed/hostile-values.ts'
import { pickOne } from '#scripts/lab/prove/section.ts'

type Schema = { readonly [keyword: string]: unknown }
type Random = () => number

/** Names of embedding models; none of them causes a request to a provider. */
const embeddingModels = ['local', 'local', 'nobody/none', 'nobody/x', 'LOCAL', '/', 'openai/']
const words = ['cat', 'Ada', 'garden', 'müde', '猫', 'yesterday', '42', '<b>']
const hostileTexts = hostileValues.filter(value => typeof value === 'string')
const listMax = 5
/** Objects below it have the required fields alone, so that a schema that holds itself comes to an end. */
const depthMax = 4

/** A value that a schema of the contract mostly accepts: each field that is optional is there half of the time. */
export function validValue(schema: Schema, random: Random, depth = 0): unknown {
  const { $ref, type, anyOf, enum: choices } = schema
  if (typeof $ref === 'string') {
    if ($ref.endsWith('/EmbeddingModel')) return pickOne(embeddingModels, random)
    return validValue(contractDocument.$defs[$ref.split('/').at(-1)!] as Schema, random, depth)
  }
  if (Array.isArray(choices)) return pickOne(choices as unknown[], random)
  if (Array.isArray(anyOf)) return validValue(pickOne(anyOf as Schema[], random), random, depth)
  const kind = Array.isArray(type) ? pickOne(type as string[], random) : String(type)
  return kinds[kind]?.(schema, random, depth) ?? pickOne(hostileValues, random)
}

const between = (least: number, most: number, random: Random): number =>
  Math.floor(least + random() * (most - least + 1))

const kinds: Record<string, (schema: Schema, random: Random, depth: number) => unknown> = {
  string: ({ minLength = 0, maxLength = 100_000, format }, random) => {
    if (format === 'uuid') return randomUUID()
    if (format === 'email') return `${between(1, 1e6, random)}@example.com`
    if (format) return new Date(between(-1e13, 1e13, random)).toISOString()
    const text =
      random() < 0.75
        ? Array.from({ length: between(1, 12, random) }, () => pickOne(words, random)).join(' ')
        : pickOne(hostileTexts, random)
    return text.padEnd(Number(minLength), 'x').slice(0, Number(maxLength))
  },
  integer: ({ minimum = -1e9, maximum = 1e9 }, random) =>
    between(Math.max(Number(minimum), -(2 ** 31)), Math.min(Number(maximum), 2 ** 31 - 1), random),
  number: ({ minimum = -1e9, maximum = 1e9 }, random) =>
    Number(minimum) + random() * (Number(maximum) - Number(minimum)),
  boolean: (_, random) => random() < 0.5,
  array: ({ items = {}, minItems = 0, maxItems = listMax }, random, depth) => {
    const length = between(Number(minItems), Math.min(Number(maxItems), listMax), random)
    return Array.from({ length }, () => validValue(items as Schema, random, depth))
  },
  object: ({ properties = {}, required = [] }, random, depth) =>
    Object.fromEntries(
      Object.entries(properties as Record<string, Schema>)
        .filter(
          ([name]) => (required as string[]).includes(name) || (depth < depthMax && random() < 0.5),
        )
        .map(([name, field]) => [name, validValue(field, random, depth + 1)]),
    ),
}
