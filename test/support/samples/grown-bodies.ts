import { contractDocument } from '#api/contract/document.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'

/** Values that a schema takes, each grown to a size in one place: what a call may carry that wants to be dear. */

type Schema = { readonly [keyword: string]: unknown }
type Fields = Record<string, unknown>
/** What has grown and how, and the value. */
export type Grown = [name: string, value: unknown]

/** Every field grows of every text, and every object of every shape, where there is time: for one route or tool. */
const isEveryKind = process.env['KINDS'] === 'all'

const random = seededRandom(7)
const letters = (from: number, count: number, length: number): string =>
  Array.from({ length }, () => String.fromCodePoint(from + Math.floor(random() * count))).join('')

/** Characters of a text that do not repeat. */
const uniqueLength = 300_000

/** One text of each script and kind, and the bytes of a character in JSON. */
const texts: Record<string, { text: string; bytes: number }> = {
  prose: {
    text: 'My cat is called Ada, she was born in May and hates thunder. '.repeat(5_000),
    bytes: 1,
  },
  'words that no one knows': {
    text: Array.from({ length: uniqueLength / 8 }, () => letters(97, 26, 7)).join(' '),
    bytes: 1,
  },
  'one Latin word': { text: letters(97, 26, uniqueLength), bytes: 1 },
  Thai: { text: letters(0xe01, 46, uniqueLength), bytes: 3 },
  Chinese: { text: letters(0x4e00, 20_000, uniqueLength), bytes: 3 },
  Arabic: { text: letters(0x621, 40, uniqueLength), bytes: 2 },
  emoji: { text: letters(0x1f600, 64, uniqueLength / 2), bytes: 2 },
  digits: { text: letters(48, 10, uniqueLength), bytes: 1 },
  // Without the quotation mark and the backslash, which take two bytes.
  marks: { text: letters(35, 13, uniqueLength), bytes: 1 },
  blanks: { text: '     ', bytes: 1 },
}

function textOf({ text, bytes }: { text: string; bytes: number }, size: number, max: number) {
  const length = Math.max(1, Math.min(max, Math.floor(size / bytes)))
  // Half of a pair is no character.
  return text
    .repeat(Math.ceil(length / text.length))
    .slice(0, length)
    .toWellFormed()
}

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '')

const copies = (value: unknown, size: number): unknown[] =>
  Array.from({ length: Math.max(1, Math.floor(size / (sizeOf(value) + 1))) }, () => value)

/** By name and size: 20 MiB of them take longer to make than to send. */
const unknownByName = new Map<string, Fields>()

/** Fields that nothing knows. */
function unknownFields(size: number, name = 'field'): Fields {
  const key = `${name} ${size}`
  const known = unknownByName.get(key)
  if (known) return known
  const count = Math.floor(size / 16)
  const fields = Object.fromEntries(Array.from({ length: count }, (_, n) => [`${name}${n}`, 1]))
  unknownByName.set(key, fields)
  return fields
}

/** As many as one body of 2 MiB may have of them, if none has more than 10,000. */
const manyObjects = (size: number): Fields[] =>
  Array.from({ length: 12 }, (_, n) => unknownFields(size / 14, `fields${n}-`))

/** What an object may have beside the fields that are known. */
const unknownShapes: Record<string, (size: number) => Fields> = {
  'many keys': unknownFields,
  'many keys of 12 objects': size => ({ other: manyObjects(size) }),
  deep: size => ({ other: copies(deepList, size) }),
  'a list': size => ({ other: copies(1, size) }),
}
let shapeTurn = 0

const deepList = JSON.parse('[{"a":'.repeat(25) + '1' + '}]'.repeat(25)) as unknown

/** Fields that hold what people say: they grow of every text, all others of one in turn. */
const wordFields = new Set(['content', 'contents', 'input', 'messages', 'parts', 'query', 'text'])
const kinds = Object.keys(texts)
let turn = 0

function* textsInTurn(grown: Iterable<Grown>, everyText: boolean): Generator<Grown> {
  const chosen = kinds[turn++ % kinds.length]!
  for (const [how, value] of grown) {
    const kind = kinds.find(kind => how.endsWith(kind))
    if (everyText || !kind || kind === chosen) yield [how, value]
  }
}

/** Items of a list whose size is the sum of long texts. */
const longItems = 50
const depthMax = 5

/**
 * Values of a schema, each with one part of them grown until it has about `size` bytes.
 *
 * @param sample a value that is accepted
 */
export function* grow(schema: Schema, sample: unknown, size: number, depth = 0): Generator<Grown> {
  if (depth > depthMax) return
  const { $ref, anyOf, enum: choices, format, pattern } = schema
  const inner = depth + 1
  if (typeof $ref === 'string') {
    yield* grow(contractDocument.$defs[$ref.split('/').at(-1)!] as Schema, sample, size, depth)
  } else if (Array.isArray(anyOf)) {
    for (const choice of anyOf as Schema[]) yield* grow(choice, sample, size, inner)
  } else if (!choices && !format && !pattern) {
    for (const type of [schema.type ?? typeName(sample)].flat() as string[])
      yield* (growers[type] ?? growNothing)(schema, sample, size, inner)
  }
}

type Grower = (schema: Schema, sample: unknown, size: number, depth: number) => Iterable<Grown>

const growNothing: Grower = () => []

const growers: Record<string, Grower> = {
  *string({ maxLength = Infinity }, _, size) {
    for (const [name, text] of Object.entries(texts))
      yield [name, textOf(text, size, Number(maxLength))]
  },
  *array({ items = {}, maxItems = longItems }, sample, size, depth) {
    const one = (Array.isArray(sample) ? sample[0] : undefined) ?? leastOf(items as Schema)
    yield ['a long list', copies(one, size)]
    const count = Math.min(Number(maxItems), longItems)
    for (const [name, value] of grow(items as Schema, one, size / count, depth))
      yield [`${count} of ${name}`, Array(count).fill(value)]
    if (count > 1)
      for (const [name, value] of grow(items as Schema, one, size, depth)) yield [name, [value]]
  },
  *object({ properties = {} }, sample, size, depth) {
    const fields = { ...(sample as Fields) }
    const known = properties as Record<string, Schema>
    for (const name of new Set([...Object.keys(known), ...Object.keys(fields)])) {
      const grown = grow(known[name] ?? {}, fields[name], size, depth)
      for (const [how, value] of textsInTurn(grown, isEveryKind || wordFields.has(name)))
        yield [`${name}: ${how}`, { ...fields, [name]: value }]
    }
    // Objects within a body are read as it is: one shape each, in turn.
    const shapes = Object.entries(unknownShapes)
    const isWhole = isEveryKind || depth === 1
    for (const [how, make] of isWhole ? shapes : [shapes[shapeTurn++ % shapes.length]!])
      yield [how, { ...fields, ...make(size) }]
  },
}

const typeName = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value)

/** A small value of a schema. */
function leastOf(schema: Schema): unknown {
  const { $ref, anyOf, enum: choices, type, properties = {}, required = [] } = schema
  if (typeof $ref === 'string')
    return leastOf(contractDocument.$defs[$ref.split('/').at(-1)!] as Schema)
  if (Array.isArray(choices)) return choices[0]
  if (Array.isArray(anyOf)) return leastOf(anyOf[0] as Schema)
  if (type === 'object')
    return Object.fromEntries(
      (required as string[]).map(name => [name, leastOf((properties as Fields)[name] as Schema)]),
    )
  if (type === 'array') return []
  return type === 'integer' || type === 'number' ? 1 : 'a'
}
