import { conversationAt, messageOf, saidIn, type Entry } from '#api/proxy/dialects/conversation.ts'
import type { ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import { systemTurns } from '#api/proxy/dialects/system.ts'
import { switchesIn } from '#api/proxy/dialects/switches.ts'
import { checkJson } from '#api/proxy/json/check.ts'
import { eachKept, spliced, type Cuts, type Insert } from '#api/proxy/json/splice.ts'
import { kindAt, namesOf, parsed, valueEnd } from '#api/proxy/json/walk.ts'
import { Refusal } from '#shared/errors.ts'
import { wellFormedText } from '#shared/well-formed.ts'

/** How one family writes a request. */
export type Format = {
  /** The member that holds the conversation, and the one that holds what a message says. */
  messages: 'messages' | 'contents'
  content: 'content' | 'parts'
  /** Whether the provider takes one message where an array of them is meant. */
  lone: boolean
  modelRole: string
  /** Whose a message without a role is. */
  defaultRole: string | undefined
  /** Whether model and stream are members of the body; they are in the path otherwise. */
  namesModel: boolean
  /** Whether the user says something in this message: text or media, not only results of tools. */
  isUser(body: Buffer, entry: Entry): boolean
  /** Puts the block before what the user says in this message, which `isUser` accepted. */
  place(body: Buffer, entry: Entry, context: string): Insert[]
}

type Found = {
  model: { at: number; end: number } | undefined
  stream: boolean
  system: number | undefined
  entries: Entry[]
}

const memberName = namesOf([
  'model',
  'stream',
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
  const { model, stream, system, entries } = found
  const asked = entries.findLast(entry => format.isUser(body, entry))
  const once = <Value>(make: () => Value): (() => Value) => {
    let made: { value: Value } | undefined
    return () => (made ??= { value: make() }).value
  }
  const turns = once(() => [
    ...systemTurns(body, system),
    ...entries.map(entry => messageOf(body, entry)),
  ])
  const said = once(() => saidIn(body, entries, format))

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
    takesContext: asked !== undefined,
    write({ model: renamed, context }) {
      const inserts: Insert[] = []
      if (renamed !== undefined && model) inserts.push({ ...model, text: JSON.stringify(renamed) })
      if (context !== undefined && asked) inserts.push(...format.place(body, asked, context))
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
  const found: Found = { model: undefined, stream: false, system: undefined, entries: [] }
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
    } else if (name === 'stream') found.stream = format.namesModel && body[value] === 0x74
    else if (name?.startsWith('system')) found.system = value
    return end
  })
  return found
}
