import type { ArgumentSchema } from '#api/mcp/arguments.ts'
import type { Tool } from '#api/mcp/tools.ts'
import { createJsonCounter, parsedBodyBounds } from '#shared/core/json-bounds.ts'

type Arguments = Record<string, unknown>

/** The value of a text that is JSON, and the text of any other. */
type JsonReader = (value: unknown) => unknown

/**
 * Gives each argument of a call the type that its tool names. Clients send lists, objects, numbers and booleans
 * as the JSON text of the model (anthropics/claude-code#22394, #50138), and models one object for a list of one.
 * Null is left out, and so is an empty text of an optional argument. An empty boolean is refused: an empty
 * `dry_run` may mean a preview.
 */
export function readArguments({ inputSchema }: Tool, given: Arguments): Arguments {
  const readJson = createJsonReader()
  const { properties, required = [] } = inputSchema
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => {
      const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
      if (value === null) return []
      if (!schema) return [[name, value]]
      const isLeftOut = value === '' && schema.type !== 'boolean' && !required.includes(name)
      return isLeftOut ? [] : [[name, readValue(schema, value, readJson)]]
    }),
  )
}

/**
 * Turns the arguments of each call in a body into the object that the SDK requires: from its JSON text; null and
 * an empty text are no arguments. Changes the body.
 */
export function readCalls(body: unknown): void {
  for (const message of Array.isArray(body) ? (body as unknown[]) : [body]) {
    if (!isObject(message) || !isObject(message.params)) continue
    const { arguments: given, ...others } = message.params
    if (given === undefined || isObject(given)) continue
    const args = createJsonReader()(given)
    message.params = isObject(args) ? { ...others, arguments: args } : others
  }
}

/** Reads JSON texts. Together they may hold what one body may; one beyond that stays a text, which its endpoint refuses. */
function createJsonReader(): JsonReader {
  const count = createJsonCounter(parsedBodyBounds)
  return value => {
    if (typeof value !== 'string') return value
    try {
      count(Buffer.from(value))
      return JSON.parse(value) as unknown
    } catch {
      return value
    }
  }
}

/** A value of the type that a schema names, where it can be read as one; else as it was given. */
function readValue(schema: ArgumentSchema, given: unknown, readJson: JsonReader): unknown {
  if (schema.type === 'string') return given
  const value = readJson(given)
  if (schema.type === 'array') {
    const items = schema.items!
    if (Array.isArray(value)) return value.map(item => readValue(items, item, readJson))
    const item = readValue(items, given, readJson)
    return isOfType(items, item) ? [item] : given
  }
  if (!isOfType(schema, value)) return given
  if (schema.type !== 'object') return value
  const { properties = {} } = schema
  return Object.fromEntries(
    Object.entries(value as Arguments).map(([name, inner]) => [
      name,
      Object.hasOwn(properties, name) ? readValue(properties[name]!, inner, readJson) : inner,
    ]),
  )
}

const isObject = (value: unknown): value is Arguments =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function isOfType({ type }: ArgumentSchema, value: unknown): boolean {
  if (type === 'object') return isObject(value)
  if (type === 'array') return Array.isArray(value)
  return typeof value === (type === 'integer' ? 'number' : type)
}
