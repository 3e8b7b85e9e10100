import { shapeOf } from '#api/contract/document.ts'
import type { MemorySwitches } from '#api/contract/generated/types.ts'
import type { BodySwitches } from '#api/proxy/dialects/dialect.ts'
import { kindAt, createNameMatcher, parseValue, valueEnd } from '#api/proxy/json/walk.ts'
import { Refusal } from '#shared/core/errors.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'

const matchSwitchName = createNameMatcher([
  'memory',
  'memory_mode',
  'memory_store',
  'memory_store_response',
  'memory_verbatim',
  'memory_share',
  'memory_user',
  'context_limit',
  'density',
  'session_id',
  'embeddings',
])

const shape = shapeOf<MemorySwitches & { embeddings?: string }>('MemorySwitches', 'body')

/** Collects the memory switches of a body while its members are visited. */
export type SwitchReader = {
  /** Reads a member. @returns whether it is a switch; of several with one name the last counts. */
  consume(name: number, nameEnd: number, value: number): boolean
  /** @throws Refusal `invalid` for a switch of a wrong type, and for a user that is null. */
  read(): BodySwitches
}

export function createSwitchReader(body: Buffer): SwitchReader {
  const values: Record<string, unknown> = {}
  return {
    consume(start, nameEnd, value) {
      const name = readSwitchName(body, start, nameEnd, value)
      if (name) values[name] = readSwitchValue(body, value)
      return name !== undefined
    },
    read() {
      // As for the header: the vault of the key must not stand in for that of a user.
      if (values.memory_user === null)
        throw new Refusal('invalid', 'memory_user is null', 'Name the user, or leave the field out')
      const given = Object.entries(shape.check(values)).filter(([, value]) => value !== null)
      return Object.fromEntries(given)
    },
  }
}

/** Whether this member has the name and the type of a switch. */
export function isSwitchMember(
  body: Buffer,
  start: number,
  nameEnd: number,
  value: number,
): boolean {
  const name = readSwitchName(body, start, nameEnd, value)
  if (!name) return false
  try {
    shape.check({ [name]: readSwitchValue(body, value) })
    return true
  } catch {
    return false
  }
}

function readSwitchName(body: Buffer, start: number, nameEnd: number, value: number) {
  const name = matchSwitchName(body, start, nameEnd)
  // Providers may have a member of this name and another type.
  return name === 'embeddings' && kindAt(body, value) !== 'string' ? undefined : name
}

/** Objects and arrays are refused by their type alone, and not decoded. */
function readSwitchValue(body: Buffer, at: number): unknown {
  const kind = kindAt(body, at)
  if (kind === 'object') return {}
  if (kind === 'array') return []
  const value = parseValue(body, at, valueEnd(body, at))
  return typeof value === 'string' ? sanitizeText(value) : value
}
