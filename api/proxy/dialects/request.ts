import {
  readConversation,
  toMessage,
  extractNewUserMessages,
} from '#api/proxy/dialects/conversation.ts'
import type { ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import { systemTurns } from '#api/proxy/dialects/system-prompt.ts'
import { createSwitchReader } from '#api/proxy/dialects/body-switches.ts'
import { createUserTurn } from '#api/proxy/dialects/user-turn.ts'
import { validateJson } from '#api/proxy/json/validate.ts'
import {
  forEachRetainedMember,
  applySplices,
  type Removals,
  type Insertion,
} from '#api/proxy/json/splice.ts'
import { kindAt, createNameMatcher, parseValue, valueEnd } from '#api/proxy/json/walk.ts'
import { Refusal } from '#shared/core/errors.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import type { RequestFormat, RawMessage } from '#api/proxy/dialects/format.ts'

/** Where a value stands in a body. */
type ByteSpan = { at: number; end: number }

type RequestMembers = {
  model: ByteSpan | undefined
  /** A mark for caching beside the messages. */
  cacheControl: ByteSpan | undefined
  stream: boolean
  system: number | undefined
  entries: RawMessage[]
}

const matchMember = createNameMatcher([
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
export function parseProxyRequest(body: Buffer, format: RequestFormat): ProxyRequest {
  const start = validateJson(body)
  if (kindAt(body, start) !== 'object') {
    throw new Refusal('invalid', 'The body must be a JSON object')
  }
  const switches = createSwitchReader(body)
  const removals: Removals = []
  const members = readMembers(body, start, format, switches.consume, removals)
  const { model, cacheControl, stream, system, entries } = members
  const last = entries.findLastIndex(entry => format.isUserMessage(body, entry))
  const lastUserMessage = entries[last]
  const lazy = <Value>(make: () => Value): (() => Value) => {
    let made: { value: Value } | undefined
    return () => (made ??= { value: make() }).value
  }
  const turns = lazy(() => [
    ...systemTurns(body, system),
    ...entries.map(entry => toMessage(body, entry)),
  ])
  const newMessages = lazy(() => extractNewUserMessages(body, entries, format))
  const userTurn =
    lastUserMessage && createUserTurn(body, entries, last, format, cacheControl !== undefined)

  return {
    model: model && sanitizeText(parseValue(body, model.at, model.end) as string),
    stream,
    switches: switches.read(),
    // Only calls with memory pay for reading what was said.
    get turns() {
      return turns()
    },
    get newMessages() {
      return newMessages()
    },
    userTurn,
    serialize({ model: renamed, context, place }) {
      const inserts: Insertion[] = []
      if (renamed !== undefined && model) inserts.push({ ...model, text: JSON.stringify(renamed) })
      if (context !== undefined && lastUserMessage && userTurn) {
        // What follows a turn that goes on stays where it is from now on, the block too.
        const movedCacheControl = userTurn.isToolContinuation ? undefined : cacheControl
        if (movedCacheControl) inserts.push({ ...movedCacheControl, text: 'null' })
        const block = {
          context,
          blockIndex: place ?? userTurn.blockIndex,
          ...(movedCacheControl && {
            mark: body.toString('utf8', movedCacheControl.at, movedCacheControl.end),
          }),
        }
        inserts.push(...format.insertBlock(body, lastUserMessage, block))
      }
      return applySplices(body, removals, inserts)
    },
  }
}

/** Of members with the same name the last one counts, as it does for every provider's parser. */
function readMembers(
  body: Buffer,
  start: number,
  format: RequestFormat,
  isSwitch: (name: number, nameEnd: number, value: number) => boolean,
  removals: Removals,
): RequestMembers {
  const members: RequestMembers = {
    model: undefined,
    cacheControl: undefined,
    stream: false,
    system: undefined,
    entries: [],
  }
  forEachRetainedMember(body, start, removals, isSwitch, (nameStart, nameEnd, value) => {
    const name = matchMember(body, nameStart, nameEnd)
    if (name === format.messagesField) {
      const { entries, end } = readConversation(body, value, format, removals)
      members.entries = entries
      return end
    }
    const end = valueEnd(body, value)
    if (name === 'model' && format.hasModelInBody) {
      members.model = kindAt(body, value) === 'string' ? { at: value, end } : undefined
    } else if (name === 'cache_control' && format.hasRequestCacheControl) {
      members.cacheControl = kindAt(body, value) === 'object' ? { at: value, end } : undefined
    } else if (name === 'stream') members.stream = format.hasModelInBody && body[value] === 0x74
    else if (name?.startsWith('system')) members.system = value
    return end
  })
  return members
}
