import {
  findNewUserMessages,
  toStoredMessage,
  systemRoles,
} from '#api/proxy/dialects/conversation.ts'
import type {
  BodySwitches,
  EarlierTurn,
  ProxyRequest,
  RequestChange,
  RequestSplices,
  UserTurn,
} from '#api/proxy/dialects/dialect.ts'
import { endOfPreviousRequest, findEarlierTurns } from '#api/proxy/dialects/earlier-turns.ts'
import { createFingerprints, type Fingerprints } from '#api/proxy/dialects/fingerprint.ts'
import { createMessageReader, type MessageReader } from '#api/proxy/dialects/message-reader.ts'
import {
  readLargeConversations,
  readMembers,
  type RequestMembers,
} from '#api/proxy/dialects/request-members.ts'
import { createSwitchReader } from '#api/proxy/dialects/body-switches.ts'
import { createUserTurn, readLeftOut } from '#api/proxy/dialects/user-turn.ts'
import { validateSteps } from '#api/proxy/json/validate.ts'
import {
  applySplices,
  insertedSpans,
  movedOffset,
  type Insertion,
  type Removals,
} from '#api/proxy/json/splice.ts'
import { kindAt, parseValue } from '#api/proxy/json/walk.ts'
import { notJsonObject } from '#shared/core/refusals.ts'
import { runAtOnce, runInSlices, type Steps } from '#shared/core/event-loop.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import { type Message, textParts } from '#shared/domain/message-content.ts'
import type { LeftOutPiece } from '#shared/domain/turn/text.ts'
import type { ContextBlock, RequestFormat, RawMessage } from '#api/proxy/dialects/format.ts'
import { hasAsidePrompt, isAsideCall } from '#shared/domain/turn/marks.ts'
import { systemTurns } from '#api/proxy/dialects/content.ts'

/** How requests of a format are read: see `Dialect`. */
export const createRequestParsers = (format: RequestFormat) => ({
  parseRequest: (body: Buffer): ProxyRequest => runAtOnce(parseSteps(body, format)),
  parseInSlices: (body: Buffer): Promise<ProxyRequest> => runInSlices(parseSteps(body, format)),
})

function* parseSteps(body: Buffer, format: RequestFormat): Steps<ProxyRequest> {
  const start = yield* validateSteps(body)
  if (kindAt(body, start) !== 'object') {
    throw notJsonObject()
  }
  const switches = createSwitchReader(body)
  const removals: Removals = []
  const conversations = yield* readLargeConversations(body, start, format)
  const members = readMembers(body, start, format, switches.consume, { conversations, removals })
  return new ParsedRequest({ body, format, members, removals, switches: switches.read() })
}

type RequestParts = {
  body: Buffer
  format: RequestFormat
  members: RequestMembers
  removals: Removals
  switches: BodySwitches
}

/** Getters compute at their first use: calls without memory do not decode the conversation. */
class ParsedRequest implements ProxyRequest {
  readonly model: string | undefined
  readonly stream: boolean
  readonly switches: BodySwitches
  readonly typedFields: Record<string, unknown>
  readonly #parts: RequestParts
  readonly #reader: MessageReader
  #said: UserSaid | undefined
  #turns: Message[] | undefined
  #newMessages: Message[] | undefined
  #aside: { kind: ProxyRequest['aside'] } | undefined
  #earlierTurns: ReturnType<typeof findEarlierTurns> | undefined

  constructor(parts: RequestParts) {
    const { body, format, members, switches } = parts
    const { model, stream, typedFields } = members
    this.#parts = parts
    this.#reader = createMessageReader(body, format)
    this.model = model && sanitizeText(parseValue(body, model.at, model.end) as string)
    this.stream = stream
    this.switches = switches
    this.typedFields = typedFields
  }

  get #user(): UserSaid {
    return (this.#said ??= readUserSaid(this.#parts, this.#reader))
  }

  get userTurn(): UserTurn | undefined {
    return this.#user.turn
  }

  get turns(): Message[] {
    const { body, members } = this.#parts
    return (this.#turns ??= [
      ...systemTurns(body, members.system),
      ...members.entries.map(this.#reader.message),
    ])
  }

  get newMessages(): Message[] {
    const { body, format, members } = this.#parts
    return (this.#newMessages ??= findNewUserMessages(
      body,
      members.entries,
      format,
      this.#reader,
    ).flatMap(entry => toStoredMessage(entry, this.#reader) ?? []))
  }

  get aside(): ProxyRequest['aside'] {
    return (this.#aside ??= { kind: asideKind(this.#parts, this.#reader) }).kind
  }

  get isFirst(): boolean {
    const { format, members } = this.#parts
    return !members.entries.some(({ role }) => role === format.modelRole)
  }

  get leftOut(): readonly LeftOutPiece[] {
    return readLeftOut(this.#parts.members.entries, this.#parts.format, this.#reader)
  }

  get words(): string {
    return this.#user.message ? this.#reader.read(this.#user.message).words : ''
  }

  get earlierTurns(): ReturnType<typeof findEarlierTurns> {
    const { body, format } = this.#parts
    return (this.#earlierTurns ??= findEarlierTurns(
      {
        body,
        entries: this.#user.entries,
        reader: this.#reader,
        fingerprints: this.#user.fingerprints,
      },
      format,
    ))
  }

  async readAhead(): Promise<void> {
    await this.#reader.readLong(this.#parts.members.entries)
    await runInSlices(this.#user.fingerprints.takeAll())
  }

  storeVerbatim(): void {
    this.#reader.storeVerbatim()
  }

  forgetTexts(): void {
    this.#reader.forget()
    this.#turns = undefined
    this.#newMessages = undefined
  }

  serialize(change: RequestChange): Buffer {
    const { body, removals } = this.#parts
    return applySplices(body, removals, this.#insertionsFor(change))
  }

  splicesOf(change: RequestChange): RequestSplices {
    const { body, removals } = this.#parts
    const spans = insertedSpans(removals, this.#insertionsFor(change))
    return {
      inserted: spans.map(({ insertion: { what }, at, bytes }) => ({ what, at, bytes })),
      removed: removals,
      receivedBytes: body.length,
    }
  }

  reusableBytes(change: RequestChange, lost: EarlierTurn | UserTurn | undefined): number {
    const { body, format, members, removals } = this.#parts
    const end = lost === undefined ? endOfPreviousRequest(body, members.entries, format) : undefined
    const at = end ?? (this.#messageOf(lost) ?? this.#user.message)?.start ?? 0
    return movedOffset(removals, this.#insertionsFor(change), at)
  }

  #messageOf(turn: EarlierTurn | UserTurn | undefined): RawMessage | undefined {
    return turn && this.earlierTurns.find(one => one === turn)?.message
  }

  #insertionsFor({ model, context, blockIndex, earlier = [] }: RequestChange): NamedInsertion[] {
    const { body, format, members } = this.#parts
    const insertions = earlier.flatMap(({ turn, ...block }) => {
      const message = this.#messageOf(turn)
      return message ? named('block', format.insertBlock(body, message, block)) : []
    })
    if (model !== undefined && members.model) {
      insertions.push({ what: 'model', ...members.model, text: JSON.stringify(model) })
    }
    if (context === undefined) return insertions
    const { message, turn } = this.#user
    if (!message || !turn) return insertions

    // After a tool continuation the block keeps its place, so the `cache_control` need not move.
    const movedCacheControl = turn.isToolContinuation ? undefined : members.cacheControl
    if (movedCacheControl) {
      insertions.push({ what: 'cache_control', ...movedCacheControl, text: 'null' })
    }
    const block: ContextBlock = {
      context,
      blockIndex: blockIndex ?? turn.blockIndex,
      cacheControl:
        movedCacheControl && body.toString('utf8', movedCacheControl.at, movedCacheControl.end),
    }
    insertions.push(...named('block', format.insertBlock(body, message, block)))
    return insertions
  }
}

type NamedInsertion = Insertion & { what: RequestSplices['inserted'][number]['what'] }

const named = (what: NamedInsertion['what'], insertions: Insertion[]): NamedInsertion[] =>
  insertions.map(one => ({ what, ...one }))

/** What the user says last, and the conversation up to it. */
type UserSaid = {
  message: RawMessage | undefined
  /** Including that message. */
  entries: RawMessage[]
  fingerprints: Fingerprints
  turn: UserTurn | undefined
}

function readUserSaid({ body, format, members }: RequestParts, reader: MessageReader): UserSaid {
  const { cacheControl, continued } = members
  const last = members.entries.findLastIndex(reader.isUserMessage)
  const message = members.entries[last]
  const entries = members.entries.slice(0, last + 1)
  const fingerprints = createFingerprints({
    body,
    entries,
    reader,
    modelRole: format.modelRole,
    continued: continued.map(({ at, end }) => body.subarray(at, end)),
  })
  const turn =
    message &&
    createUserTurn(body, entries, format, {
      reader,
      following: members.entries.slice(last + 1),
      fingerprints,
      hasCacheControl: cacheControl !== undefined,
    })
  return { message, entries, fingerprints, turn }
}

/** Whether a program makes the call for itself, by the prompts of the request: see `ProxyRequest.aside`. */
function asideKind(
  {
    body,
    format,
    members,
  }: { body: Buffer; format: Pick<RequestFormat, 'modelRole'>; members: RequestMembers },
  { texts: textsOf }: MessageReader,
): ProxyRequest['aside'] {
  const { entries, system, maxTokens } = members
  const begin = entries.findLastIndex(({ role }) => role === format.modelRole) + 1
  const systemTexts = [
    ...systemTurns(body, system).flatMap(({ content }) => textParts(content)),
    ...entries.slice(0, 2).flatMap(entry => (systemRoles.has(entry.role) ? textsOf(entry) : [])),
  ]
  const isAside = isAsideCall({
    maxTokens,
    systemTexts,
    userTexts: entries.slice(begin).flatMap(entry => (entry.role === 'user' ? textsOf(entry) : [])),
  })
  if (!isAside) return undefined
  return begin === 0 || hasAsidePrompt('system', systemTexts) ? 'apart' : 'inside'
}
