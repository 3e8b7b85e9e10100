import { conversationAt, messageOf, saidIn } from '#api/proxy/dialects/conversation.ts'
import type { ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import { systemTurns } from '#api/proxy/dialects/system.ts'
import { switchesIn } from '#api/proxy/dialects/switches.ts'
import { userTurnOf } from '#api/proxy/dialects/user-turn.ts'
import { checkJson } from '#api/proxy/json/check.ts'
import { eachKept, spliced, type Cuts, type Insert } from '#api/proxy/json/splice.ts'
import { kindAt, namesOf, parsed, valueEnd } from '#api/proxy/json/walk.ts'
import { Refusal } from '#shared/core/errors.ts'
import { wellFormedText } from '#shared/core/sanitize-text.ts'
import type { Format, Entry } from '#api/proxy/dialects/format.ts'

/** Where a value stands in a body. */
type Span = { at: number; end: number }

type Found = {
  model: Span | undefined
  /** A mark for caching beside the messages. */
  mark: Span | undefined
  stream: boolean
  system: number | undefined
  entries: Entry[]
}

const memberName = namesOf([
  'model',
  'stream',
  'cache_control',
  'messages',
  'contents',
  'system',
  'systemInstruction',
  'system_instruction',
])

/** Reads a request of any family by its format: see `Dialect.read`. */
export function readRequest(body: Buffer, format: Format): ProxyRequest {
  const start = checkJson(body)
  if (kindAt(body, start) !== 'object') {
    throw new Refusal('invalid', 'The body must be a JSON object')
  }
  const switches = switchesIn(body)
  const cuts: Cuts = []
  const found = readMembers(body, start, format, switches.takes, cuts)
  const { model, mark, stream, system, entries } = found
  const last = entries.findLastIndex(entry => format.isUser(body, entry))
  const asked = entries[last]
  const once = <Value>(make: () => Value): (() => Value) => {
    let made: { value: Value } | undefined
    return () => (made ??= { value: make() }).value
  }
  const turns = once(() => [
    ...systemTurns(body, system),
    ...entries.map(entry => messageOf(body, entry)),
  ])
  const said = once(() => saidIn(body, entries, format))
  const turn = asked && userTurnOf(body, entries, last, format, mark !== undefined)

  return {
    model: model && wellFormedText(parsed(body, model.at, model.end) as string),
    stream,
    switches: switches.read(),
    // Only calls with memory pay for reading what was said.
    get turns() {
      return turns()
    },
    get said() {
      return said()
    },
    turn,
    write({ model: renamed, context, place }) {
      const inserts: Insert[] = []
      if (renamed !== undefined && model) inserts.push({ ...model, text: JSON.stringify(renamed) })
      if (context !== undefined && asked && turn) {
        // What follows a turn that goes on stays where it is from now on, the block too.
        const moved = turn.goesOn ? undefined : mark
        if (moved) inserts.push({ ...moved, text: 'null' })
        const block = {
          context,
          place: place ?? turn.place,
          ...(moved && { mark: body.toString('utf8', moved.at, moved.end) }),
        }
        inserts.push(...format.place(body, asked, block))
      }
      return spliced(body, cuts, inserts)
    },
  }
}

/** Of members with the same name the last one counts, as it does for every provider's parser. */
function readMembers(
  body: Buffer,
  start: number,
  format: Format,
  isSwitch: (name: number, nameEnd: number, value: number) => boolean,
  cuts: Cuts,
): Found {
  const found: Found = {
    model: undefined,
    mark: undefined,
    stream: false,
    system: undefined,
    entries: [],
  }
  eachKept(body, start, cuts, isSwitch, (nameStart, nameEnd, value) => {
    const name = memberName(body, nameStart, nameEnd)
    if (name === format.messages) {
      const { entries, end } = conversationAt(body, value, format, cuts)
      found.entries = entries
      return end
    }
    const end = valueEnd(body, value)
    if (name === 'model' && format.namesModel) {
      found.model = kindAt(body, value) === 'string' ? { at: value, end } : undefined
    } else if (name === 'cache_control' && format.marksAll) {
      found.mark = kindAt(body, value) === 'object' ? { at: value, end } : undefined
    } else if (name === 'stream') found.stream = format.namesModel && body[value] === 0x74
    else if (name?.startsWith('system')) found.system = value
    return end
  })
  return found
}
