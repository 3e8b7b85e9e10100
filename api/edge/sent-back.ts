import { isDeepStrictEqual } from 'node:util'
import { contractSchemas, fieldsOf, type Endpoint } from '#api/contract/document.ts'
import { unknownFieldHint } from '#shared/core/describe-input.ts'
import { Refusal } from '#shared/core/errors.ts'
import { unknownField } from '#shared/core/refusals.ts'
import type { JsonSchema } from '#shared/core/schema-walk.ts'

type Fields = Record<string, unknown>

/** Takes the fields that an endpoint does not set out of a body, in place: what GET answered may be sent back. */
export function takeUnsettable(sent: unknown, { body }: Pick<Endpoint, 'body'>): Fields {
  const unsettable: Fields = {}
  if (!isObject(sent)) return unsettable
  const settable = contractSchemas.properties(body!.schema)
  for (const [name, value] of Object.entries(sent)) {
    if (isSettable(settable[name], value)) continue
    unsettable[name] = value
    delete sent[name]
  }
  return unsettable
}

/** Whether a field may be set to a value of this type: a GET may answer one of the same name in another. */
const isSettable = (schema: JsonSchema | undefined, value: unknown): boolean =>
  schema !== undefined && (typeof value !== 'boolean' || contractSchemas.allows(schema, 'boolean'))

/**
 * Judges the fields that an endpoint does not set: those of the resource may be sent back as its own GET answers
 * them. What the service changes by itself (`x-moves`) may be older.
 *
 * @param current the resource as its GET answers it; undefined where there is none
 * @throws Refusal `invalid` for an unknown field, and for a read-only one that differs.
 */
export async function requireUnchanged(
  unsettable: Fields,
  { body, answers }: Pick<Endpoint, 'body' | 'answers'>,
  current: () => Promise<object | undefined>,
): Promise<void> {
  const names = Object.keys(unsettable)
  if (names.length === 0) return
  const resource = contractSchemas.properties(answers['200']!.schema)
  // As clients have it, without what is undefined.
  const now = JSON.parse(JSON.stringify((await current()) ?? {})) as Fields
  const known = fieldsOf(body!.schema).names
  for (const name of names) {
    if (!Object.hasOwn(now, name) && !Object.hasOwn(resource, name))
      throw unknownField(name.slice(0, 64), unknownFieldHint(name, known))
    const changed = changedField(resource[name], unsettable[name], now[name], name)
    if (changed === undefined) continue
    throw new Refusal(
      'invalid',
      `${changed} cannot be changed here`,
      `Leave it out, or send what GET answers; known fields: ${known.join(', ')}`,
    )
  }
}

/** The path of the first value that differs and does not move by itself; undefined where none does. */
function changedField(
  schema: JsonSchema = {},
  sent: unknown,
  now: unknown,
  path: string,
): string | undefined {
  if (schema['x-moves'] === true || isDeepStrictEqual(sent, now)) return undefined
  if (!isObject(sent) || !isObject(now)) return path
  const properties = contractSchemas.properties(schema)
  for (const name of Object.keys(sent)) {
    const changed = changedField(properties[name], sent[name], now[name], `${path}.${name}`)
    if (changed !== undefined) return changed
  }
  return undefined
}

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
