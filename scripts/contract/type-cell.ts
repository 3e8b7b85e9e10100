import scalarSchemasJson from '#scripts/contract/scalar-schemas.json' with { type: 'json' }
import type { Schema } from '#shared/core/shape.ts'

/**
 * Parses a type cell into a JSON Schema. The grammar is in api/contract/README.md:
 *
 *     cell  = union [ '=' default ]
 *     union = item { '|' item }
 *     item  = base { '[]' [ range ] [ 'unique' ] }
 *     base  = '(' union ')' | literal | 'map of' base | scalar [ range ] [ 'clamped' ] | Resource
 *
 * @param resources names that a cell may refer to
 * @throws Error with the fault; the caller adds the position.
 */
export function parseTypeCell(cell: string, resources: ReadonlySet<string>): Schema {
  const reader = { tokens: tokenize(cell), resources }
  const schema = readUnion(reader)
  const withDefault = takeToken(reader, '=') ? { ...schema, default: readDefault(reader) } : schema
  if (reader.tokens.length > 0) throw new Error(`${reader.tokens[0]} is not expected here`)
  return withDefault
}

type TokenReader = { tokens: string[]; resources: ReadonlySet<string> }

function tokenize(cell: string): string[] {
  const grammar = /\s*('[^']*'|-?\d+(?:\.\d+)?|\.\.|<=|>=|\[\]|[|()=]|[A-Za-z][A-Za-z0-9-]*)/y
  const tokens = []
  while (grammar.lastIndex < cell.trimEnd().length) {
    const at = grammar.lastIndex
    const match = grammar.exec(cell)
    if (!match) throw new Error(`cannot read ${cell.slice(at).trim()}`)
    tokens.push(match[1]!)
  }
  return tokens
}

function takeToken(reader: TokenReader, token: string): boolean {
  if (reader.tokens[0] !== token) return false
  reader.tokens.shift()
  return true
}

function readUnion(reader: TokenReader): Schema {
  const members = [readItem(reader)]
  while (takeToken(reader, '|')) members.push(readItem(reader))
  return mergeUnion(members)
}

/** Merges the members of a union into the simplest schema, because error messages are derived from it. */
function mergeUnion(members: Schema[]): Schema {
  if (members.length === 1) return members[0]!
  const types = [...new Set(members.flatMap(({ type }) => type ?? []))]
  const type = types.length === 1 ? types[0] : types
  if (members.every(member => member.enum ?? member.type === 'null')) {
    return { type, enum: members.flatMap(member => member.enum ?? null) }
  }
  const haveDistinctTypes = types.length === members.length && members.every(member => !member.enum)
  if (haveDistinctTypes) return Object.assign({}, ...members, { type }) as Schema
  return { anyOf: members }
}

function readItem(reader: TokenReader): Schema {
  let schema = readBase(reader)
  while (takeToken(reader, '[]')) {
    const { min, max } = readRange(reader)
    schema = {
      type: 'array',
      items: schema,
      ...(min !== undefined && { minItems: min }),
      ...(max !== undefined && { maxItems: max }),
      ...(takeToken(reader, 'unique') && { uniqueItems: true }),
    }
  }
  return schema
}

function readBase(reader: TokenReader): Schema {
  const token = reader.tokens.shift()
  if (token === undefined) throw new Error('a type is missing')
  if (token === '(') {
    const inner = readUnion(reader)
    if (!takeToken(reader, ')')) throw new Error('a ) is missing')
    return inner
  }
  const literal = parseLiteral(token)
  if (literal !== undefined) return { type: literalType(literal), enum: [literal] }
  if (token === 'map') {
    if (!takeToken(reader, 'of')) throw new Error('map is written as map of <type>')
    return { type: 'object', additionalProperties: readBase(reader) }
  }
  if (reader.resources.has(token)) return { $ref: `#/$defs/${token}` }
  const scalar = scalarSchemas[token]
  if (!scalar) throw new Error(`unknown type ${token}`)
  const schema = applyRange(token, scalar, readRange(reader))
  if (!takeToken(reader, 'clamped')) return schema
  if (schema.maximum === undefined && schema.maxLength === undefined)
    throw new Error('clamped needs an upper bound')
  return { ...schema, 'x-clamped': true }
}

/** By name; an `epoch-ms` between 1970 and 1973 is in seconds, which clients send by mistake. */
const scalarSchemas: Record<string, Schema> = scalarSchemasJson

type ValueRange = { min?: number; max?: number }

function readRange(reader: TokenReader): ValueRange {
  if (takeToken(reader, '<=')) return { max: readNumber(reader) }
  if (takeToken(reader, '>=')) return { min: readNumber(reader) }
  if (!/^-?\d/.test(reader.tokens[0] ?? '')) return {}
  const min = readNumber(reader)
  if (!takeToken(reader, '..')) throw new Error('a range is written as 1..10, <= 10 or >= 1')
  const max = readNumber(reader)
  if (max < min) throw new Error(`the range ${min}..${max} holds nothing`)
  return { min, max }
}

function readNumber(reader: TokenReader): number {
  const token = reader.tokens.shift() ?? ''
  if (!/^-?\d/.test(token)) throw new Error(`a number is expected, not ${token || 'the end'}`)
  return Number(token)
}

function applyRange(name: string, scalar: Schema, { min, max }: ValueRange): Schema {
  if (min === undefined && max === undefined) return scalar
  const isNumber = scalar.type === 'integer' || scalar.type === 'number'
  const isText = scalar.type === 'string' && (name === 'email' || !scalar.format)
  if (!isNumber && !isText) throw new Error(`${name} takes no range`)
  return {
    ...scalar,
    ...(min !== undefined && { [isNumber ? 'minimum' : 'minLength']: min }),
    ...(max !== undefined && { [isNumber ? 'maximum' : 'maxLength']: max }),
  }
}

function readDefault(reader: TokenReader): unknown {
  if (takeToken(reader, '[]')) return []
  const token = reader.tokens.shift() ?? ''
  const literal = parseLiteral(token)
  if (literal === undefined) throw new Error(`${token || 'nothing'} is no default`)
  return literal
}

function parseLiteral(token: string): string | number | boolean | undefined {
  if (token.startsWith("'")) return token.slice(1, -1)
  if (/^-?\d/.test(token)) return Number(token)
  return token === 'true' || token === 'false' ? token === 'true' : undefined
}

const literalType = (literal: string | number | boolean): string =>
  typeof literal !== 'number' ? typeof literal : Number.isInteger(literal) ? 'integer' : 'number'
