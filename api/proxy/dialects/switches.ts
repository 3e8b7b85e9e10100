import { shapeOf } from '#api/contract/document.ts'
import type { MemorySwitches } from '#api/contract/types.ts'
import type { BodySwitches } from '#api/proxy/dialects/dialect.ts'
import { kindAt, namesOf, parsed, valueEnd } from '#api/proxy/json/walk.ts'
import { wellFormedText } from '#shared/well-formed.ts'

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
      const name = switchName(body, start, nameEnd)
      if (!name) return false
      // A word of ours in other requests only: whatever else a provider may call so is the provider's.
      if (name === 'embeddings' && kindAt(body, value) !== 'string') return false
      found[name] = switchValue(body, value)
      return true
    },
    read() {
      const given = Object.entries(shape.check(found)).filter(([, value]) => value !== null)
      return Object.fromEntries(given)
    },
  }
}

/** No switch is an object or an array: one that is needs no reading to be refused. */
function switchValue(body: Buffer, at: number): unknown {
  const kind = kindAt(body, at)
  if (kind === 'object') return {}
  if (kind === 'array') return []
  const value = parsed(body, at, valueEnd(body, at))
  return typeof value === 'string' ? wellFormedText(value) : value
}
