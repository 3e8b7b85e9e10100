import { shapeOf } from '#api/contract/document.ts'
import type { MemorySwitches } from '#api/contract/types.ts'
import type { BodySwitches } from '#api/proxy/dialects/dialect.ts'
import { kindAt, namesOf, parsed, valueEnd } from '#api/proxy/json/walk.ts'
import { wellFormedText } from '#shared/core/sanitize-text.ts'

const switchName = namesOf([
  'memory',
  'memory_mode',
  'memory_store',
  'memory_store_response',
  'session_id',
  'embeddings',
])

const shape = shapeOf<MemorySwitches & { embeddings?: string }>('MemorySwitches', 'body')

/** Takes the switches out of a body while its members go by. */
export type SwitchReader = {
  /** Whether this member is a switch; of several with one name the last one counts. */
  takes(name: number, nameEnd: number, value: number): boolean
  /** @throws Refusal `invalid` for a switch of a wrong type. */
  read(): BodySwitches
}

export function switchesIn(body: Buffer): SwitchReader {
  const found: Record<string, unknown> = {}
  return {
    takes(start, nameEnd, value) {
      const name = nameAt(body, start, nameEnd, value)
      if (name) found[name] = switchValue(body, value)
      return name !== undefined
    },
    read() {
      const given = Object.entries(shape.check(found)).filter(([, value]) => value !== null)
      return Object.fromEntries(given)
    },
  }
}

/** Whether this member of a body is a switch, by its name and its value. */
export function isSwitch(body: Buffer, start: number, nameEnd: number, value: number): boolean {
  const name = nameAt(body, start, nameEnd, value)
  if (!name) return false
  try {
    shape.check({ [name]: switchValue(body, value) })
    return true
  } catch {
    return false
  }
}

function nameAt(body: Buffer, start: number, nameEnd: number, value: number) {
  const name = switchName(body, start, nameEnd)
  // A word of ours in other requests only: whatever else a provider may call so is the provider's.
  return name === 'embeddings' && kindAt(body, value) !== 'string' ? undefined : name
}

/** No switch is an object or an array: one that is needs no reading to be refused. */
function switchValue(body: Buffer, at: number): unknown {
  const kind = kindAt(body, at)
  if (kind === 'object') return {}
  if (kind === 'array') return []
  const value = parsed(body, at, valueEnd(body, at))
  return typeof value === 'string' ? wellFormedText(value) : value
}
