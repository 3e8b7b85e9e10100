import type { ArgumentSchema, Tool } from '#api/mcp/tools.ts'
import { Refusal } from '#shared/core/errors.ts'
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

/** Fields of one object in a call; no tool takes more than 20 arguments. */
const fieldsMax = 200

/** Messages of one body. */
const messagesMax = 100

/**
 * Turns the arguments of each call in a body into the object that the SDK requires: from its JSON text; null and
 * an empty text are no arguments. Changes the body. The SDK copies what it checks field by field: 200,000 take it
 * 3 s.
 *
 * @throws Refusal `invalid` for a body of more than 100 messages, or one that has an object of more than 200 fields
 *   where the SDK reads.
 */
export function readCalls(body: unknown): void {
  const messages = Array.isArray(body) ? (body as unknown[]) : [body]
  if (messages.length > messagesMax) throw tooMuch(`${messagesMax} messages`)
  for (const message of messages) {
    if (!isObject(message)) continue
    requireFewFields(message)
    const { arguments: given, ...others } = Object(message.params) as Arguments
    if (!isObject(message.params) || given === undefined || isObject(given)) continue
    const args = createJsonReader()(given)
    if (isObject(args)) requireFewFields(args)
    message.params = isObject(args) ? { ...others, arguments: args } : others
  }
}

/** How deep the SDK reads: parameters, their objects, and the capabilities in them. */
const depthMax = 4

function requireFewFields(value: Arguments, depth = 0): void {
  const inner = Object.values(value)
  if (inner.length > fieldsMax) throw tooMuch(`${fieldsMax} fields in one object`)
  if (depth === depthMax) return
  for (const one of inner) if (isObject(one)) requireFewFields(one, depth + 1)
}

const tooMuch = (most: string): Refusal =>
  new Refusal('invalid', `A message of MCP has at most ${most}`, 'Send less in one call')

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
