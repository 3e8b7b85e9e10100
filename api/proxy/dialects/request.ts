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
import type { ContextBlock, RequestFormat, RawMessage } from '#api/proxy/dialects/format.ts'

/** Offsets of a value in a body. */
type ByteSpan = { at: number; end: number }

type RequestMembers = {
  model: ByteSpan | undefined
  /** The `cache_control` of the body. */
  cacheControl: ByteSpan | undefined
  stream: boolean
  /** Offset of the system prompt that is no message. */
  system: number | undefined
  entries: RawMessage[]
  typedFields: Record<string, unknown>
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

/** Reads a request of any format: see `Dialect.parseRequest`. */
export function parseProxyRequest(body: Buffer, format: RequestFormat): ProxyRequest {
  const start = validateJson(body)
  if (kindAt(body, start) !== 'object') {
    throw new Refusal('invalid', 'The body must be a JSON object')
  }
  const switches = createSwitchReader(body)
  const removals: Removals = []
  const members = readMembers(body, start, format, switches.consume, removals)
  const { model, cacheControl, stream, system, entries, typedFields } = members
  const last = entries.findLastIndex(entry => format.isUserMessage(body, entry))
  const lastUserMessage = entries[last]
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
    typedFields,
    // Lazy: calls without memory do not decode the conversation.
    get turns() {
      return turns()
    },
    get newMessages() {
      return newMessages()
    },
    userTurn,
    serialize({ model: renamed, context, blockIndex }) {
      const insertions: Insertion[] = []
      if (renamed !== undefined && model)
        insertions.push({ ...model, text: JSON.stringify(renamed) })
      if (context !== undefined && lastUserMessage && userTurn) {
        // After a tool continuation the block keeps its place, so the `cache_control` need not move.
        const movedCacheControl = userTurn.isToolContinuation ? undefined : cacheControl
        if (movedCacheControl) insertions.push({ ...movedCacheControl, text: 'null' })
        const block: ContextBlock = {
          context,
          blockIndex: blockIndex ?? userTurn.blockIndex,
          cacheControl:
            movedCacheControl && body.toString('utf8', movedCacheControl.at, movedCacheControl.end),
        }
        insertions.push(...format.insertBlock(body, lastUserMessage, block))
      }
      return applySplices(body, removals, insertions)
    },
  }
}

/** Computes a value at its first use. */
const lazy = <Value>(compute: () => Value): (() => Value) => {
  let computed: { value: Value } | undefined
  return () => (computed ??= { value: compute() }).value
}

/** Of members with the same name the last one counts, as in every provider's parser. */
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
    typedFields: {},
  }
  forEachRetainedMember(body, start, removals, isSwitch, (nameStart, nameEnd, value) => {
    const name = matchMember(body, nameStart, nameEnd)
    const conversation =
      name === format.messagesField ? readConversation(body, value, format, removals) : undefined
    const end = conversation?.end ?? valueEnd(body, value)
    format.readTypedField(body, members.typedFields, { name: nameStart, nameEnd, value, end })
    if (conversation) members.entries = conversation.entries
    else if (name === 'model' && format.hasModelInBody) {
      members.model = kindAt(body, value) === 'string' ? { at: value, end } : undefined
    } else if (name === 'cache_control' && format.hasRequestCacheControl) {
      members.cacheControl = kindAt(body, value) === 'object' ? { at: value, end } : undefined
    } else if (name === 'stream') members.stream = format.hasModelInBody && body[value] === 0x74
    else if (name?.startsWith('system')) members.system = value
    return end
  })
  return members
}
