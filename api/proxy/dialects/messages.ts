import {
  readContent,
  readParts,
  readShortText,
  type ContentPart,
} from '#api/proxy/dialects/content.ts'
import {
  longContentBytesMin,
  readLongContent,
  type LongContentReading,
} from '#api/proxy/dialects/long-content.ts'
import type { RequestFormat } from '#api/proxy/dialects/request-format.ts'
import { MemberRemovals, type Removals } from '#api/proxy/json/splice.ts'
import { refusal } from '#shared/core/refusal.ts'
import type { Steps } from '#shared/core/event-loop.ts'
import {
  createNameMatcher,
  firstElement,
  isArrayEnd,
  kindAt,
  memberAt,
  nextElement,
  valueEnd,
} from '#shared/core/json-walk.ts'
import { textParts, type Message } from '#shared/domain/message-content.ts'
import {
  readMessageContent,
  sentMessageContent,
  type ContentReading,
} from '#shared/domain/turn/conversation.ts'

/** What the messages of a request have in common. */
export type RequestSource = {
  readonly body: Buffer
  readonly format: RequestFormat
  /** Whether messages are stored as they were sent. */
  isVerbatim: boolean
}

/** Roles whose messages are no part of a conversation. */
const systemRoles = new Set<string | undefined>(['system', 'developer'])

/** A message by its offsets in the body. What it says is decoded at its first use, once. */
export class RequestMessage {
  readonly start: number
  end: number
  role: string | undefined
  /** Offset of its content. A text in place of the array of messages is its own content. */
  contentAt: number | undefined
  contentBytes = 0
  memory: boolean | undefined
  name: string | undefined
  readonly #source: RequestSource
  #content: Message['content']
  #reading: ContentReading | undefined
  #long: LongContentReading | undefined
  #isUsers: boolean | undefined

  constructor(source: RequestSource, start: number) {
    this.#source = source
    this.start = start
    this.end = start
    this.role = source.format.defaultRole
  }

  get isModels(): boolean {
    return this.role === this.#source.format.modelRole
  }

  get isSystem(): boolean {
    return systemRoles.has(this.role)
  }

  /** Its texts in place of the provider's parts; of one that `readLong` has read, the beginning and the end. */
  get content(): Message['content'] {
    if (this.#content === undefined && this.#long) this.#content = abridge(this.#long.words)
    const at = this.contentAt
    return (this.#content ??= at === undefined ? '' : readContent(this.#source.body, at))
  }

  /** The texts of its parts; of one that `readLong` has read, their beginnings. */
  get texts(): string[] {
    return this.#long?.beginnings ?? textParts(this.content)
  }

  /** What it says, and what of it known programs have written. */
  get reading(): ContentReading {
    return this.#long ?? (this.#reading ??= readMessageContent(this.role ?? '', this.content))
  }

  /** Whether known programs have written all of its text. */
  get isMarksAlone(): boolean {
    const { words, leftOut } = this.reading
    return leftOut.length > 0 && words.trim() === ''
  }

  /** Whether it has content of the user or of a program of the user, and not only results of tools. */
  get isSentByUser(): boolean {
    const { body, format } = this.#source
    const at = this.contentAt
    if (this.role !== 'user' || format.block.as === 'message') return this.role === 'user'
    if (at !== undefined && kindAt(body, at) === 'string')
      return format.wrappers.string !== undefined && body[at + 1] !== 0x22
    return this.objectParts.some(part => !format.isToolResult?.(body, part))
  }

  /** Whether it has content of the user, and not only marks of programs. */
  get isUsers(): boolean {
    return (this.#isUsers ??= this.isSentByUser && !this.isMarksAlone)
  }

  /** Whether it is stored as the user's. */
  get isStored(): boolean {
    return this.#source.isVerbatim ? this.isSentByUser : this.isUsers
  }

  /** What is stored of it as a message of the user; undefined when nothing is. */
  get stored(): Message | undefined {
    const { memory, name } = this
    if (memory === false) return undefined
    const content = this.#source.isVerbatim
      ? (this.#long?.sent ?? sentMessageContent(this.content))
      : this.reading.words
    if (content.trim() === '') return undefined
    return { role: 'user', content, ...(name !== undefined && { name }) }
  }

  get parts(): ContentPart[] {
    return readParts(this.#source.body, this.contentAt)
  }

  /** The parts of its content that are objects: all of them, in a content as its format has it. */
  get objectParts(): ContentPart[] {
    const { body, format } = this.#source
    const at = this.contentAt
    const kind = at === undefined ? 'other' : kindAt(body, at)
    if (kind !== 'array' && !format.wrappers[kind]) return []
    return this.parts.filter(({ start }) => kindAt(body, start) === 'object')
  }

  get hasToolResult(): boolean {
    const { body, format } = this.#source
    return this.objectParts.some(part => format.isToolResult?.(body, part))
  }

  /**
   * Whether it shows, after the user's turn, that the model has worked on it: a tool result does. A message of the
   * model is a prefilled beginning of the reply, unless the format has paused replies.
   */
  get continuesTurn(): boolean {
    const { body, format } = this.#source
    if (this.isModels) return format.isPausedReply?.(body, this.contentAt) ?? false
    return !this.isSystem
  }

  /** The message for a search; its content is decoded at its first use. */
  toMessage(): Message {
    const { role = '', memory, name } = this
    const contentOf = (): Message['content'] => this.content
    return {
      role,
      get content() {
        return contentOf()
      },
      ...(memory !== undefined && { memory }),
      ...(name !== undefined && { name }),
    }
  }

  /** Reads a long content of the user or the model in a thread. If that fails, it is read at its first use. */
  async readLong(): Promise<void> {
    const { body, isVerbatim } = this.#source
    const { role, contentAt: at, contentBytes } = this
    if (at === undefined || contentBytes < longContentBytesMin) return
    if (role !== 'user' && !this.isModels) return
    const json = body.subarray(at, at + contentBytes)
    this.#long = await readLongContent(role!, json, isVerbatim).catch(() => undefined)
  }

  /** Drops its texts: they are decoded again when they are asked for. */
  forget(): void {
    this.#content = undefined
    this.#reading = undefined
    this.#long = undefined
  }
}

/** Characters of a long message, from either end, that are recalled for and compared with memories. */
const abridgedCharacters = 256 * 1024

const abridge = (words: string): string =>
  words.length <= 2 * abridgedCharacters
    ? words
    : `${words.slice(0, abridgedCharacters)}\n${words.slice(-abridgedCharacters)}`

/** As in `POST /v1/memory/ingest`. Memory reads the newest messages of a longer conversation. */
const messagesMax = 10_000

/** Bytes, and messages, of one step: about a millisecond. */
const stepBytes = 1024 * 1024
const stepMessages = 500

/**
 * Reads the messages of the array (or the one object or text) that begins at `at`; each `memory` member is
 * to be removed.
 *
 * @throws Refusal `invalid` for a `memory` that is neither boolean nor null: the client may have
 *   meant a private message.
 */
export function* readMessages(
  source: RequestSource,
  at: number,
): Steps<{ messages: RequestMessage[]; removals: Removals; end: number }> {
  const { body, format } = source
  const removals: Removals = []
  const kind = kindAt(body, at)
  if (kind !== 'array') {
    const messages = kind === format.singleMessage ? [readMessage(source, at, 0, removals)] : []
    return { messages, removals, end: valueEnd(body, at) }
  }
  let messages: RequestMessage[] = []
  let stepEnd = at + stepBytes
  let element = firstElement(body, at)
  for (let index = 0; !isArrayEnd(body, element); index++) {
    if (kindAt(body, element) === 'object') {
      const message = readMessage(source, element, index, removals)
      element = nextElement(body, message.end)
      messages.push(message)
      if (messages.length >= 2 * messagesMax) messages = messages.slice(-messagesMax)
    } else element = nextElement(body, valueEnd(body, element))
    if (element < stepEnd && index % stepMessages !== stepMessages - 1) continue
    stepEnd = element + stepBytes
    yield
  }
  return { messages: messages.slice(-messagesMax), removals, end: element + 1 }
}

const matchMessageField = createNameMatcher(['role', 'type', 'content', 'parts', 'memory', 'name'])

/** Longer roles and names are ignored. */
const roleBytesMax = 64
const speakerBytesMax = 1024

function readMessage(
  source: RequestSource,
  start: number,
  index: number,
  removals: Removals,
): RequestMessage {
  const { body, format } = source
  const message = new RequestMessage(source, start)
  if (kindAt(body, start) === 'string') {
    message.role = 'user'
    message.contentAt = start
    message.end = valueEnd(body, start)
    message.contentBytes = message.end - start
    return message
  }
  const cuts = new MemberRemovals(removals)
  let type: string | undefined
  let name = firstElement(body, start)
  for (let member = memberAt(body, name); member; member = memberAt(body, name)) {
    const { nameEnd, valueAt } = member
    const end = valueEnd(body, valueAt)
    const field = matchMessageField(body, name, nameEnd)
    if (field === 'memory') {
      message.memory = readMemoryFlag(body, valueAt, `${format.messages}/${index}/memory`)
      cuts.remove(name, end)
    } else {
      cuts.retain(name, end)
      if (field === format.content) {
        message.contentAt = valueAt
        message.contentBytes = end - valueAt
      } else if (field === 'role') message.role = readShortText(body, valueAt, roleBytesMax)
      else if (field === 'type') type = readShortText(body, valueAt)
      else if (field === 'name') message.name = readSpeakerName(body, valueAt)
    }
    name = nextElement(body, end)
  }
  cuts.finish()
  message.end = name + 1
  if (message.role === undefined && format.roleOfItem) {
    message.role = format.roleOfItem(type)
    // The content of reasoning is no part of the reply.
    message.contentAt = undefined
    message.contentBytes = 0
  }
  return message
}

function readMemoryFlag(body: Buffer, at: number, field: string): boolean | undefined {
  const first = body[at]
  if (first === 0x74) return true
  if (first === 0x66) return false
  if (first === 0x6e) return undefined
  throw refusal('invalid', 'notBoolean', { field })
}

/** A name that a memory cannot hold is ignored. */
function readSpeakerName(body: Buffer, at: number): string | undefined {
  const name = readShortText(body, at, speakerBytesMax)
  return name !== undefined && /^[^\p{Cc}\u2028\u2029]{1,256}$/u.test(name) ? name : undefined
}
