import { createParser } from 'eventsource-parser'
import { JsonFieldReader } from '#api/proxy/json/field-reader.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import { extractText } from '#shared/domain/message-content.ts'

/** A model's reply, as memory stores it. */
export type Reply = {
  /** Without thinking and tool calls; of several choices the first. */
  text: string
  /** A limit was reached: part of the text is missing. */
  truncated: boolean
  /** The provider marked the end of the response. */
  complete: boolean
  inputTokens?: number
  /** Input tokens that a cache of the provider held; left out when none. */
  cachedTokens?: number
  outputTokens?: number
  /** The provider returned an error, at once or in the middle of its stream. */
  failed: boolean
  /** It calls tools of the client: the text is no final reply, and the turn goes on. */
  isStep?: boolean
}

/** Longest reply text that is stored, in UTF-16 units; about half a million words. */
const replyTextMax = 2 * 1024 * 1024

/** Chunks are a word each; joined at this number, they take little more memory than their text. */
const chunksMax = 512

/** Collects a reply while its response is parsed. */
export class ReplyAccumulator {
  /** The provider marked the end of the response. */
  complete = false
  /** The provider reported an error: the text is dropped. */
  failed = false
  /** The text limit is reached, or a part was too long to be parsed. */
  truncated = false
  /** The model calls a tool of the client. */
  isStep = false
  #input: number | undefined
  #cached = 0
  #output: number | undefined
  readonly #blocks: string[] = []
  #chunks: string[] = []
  #length = 0
  #needsLineBreak = false

  /** Appends to the text, without a separator; anything but a string is ignored. */
  addText(text: unknown): void {
    if (typeof text !== 'string' || text === '') return
    if (this.#needsLineBreak && !this.isEmpty) this.#append('\n')
    this.#needsLineBreak = false
    this.#append(text)
  }

  #append(chunk: string): void {
    const left = replyTextMax - this.#length
    this.truncated ||= chunk.length > left
    if (left === 0) return
    const taken = chunk.slice(0, left)
    this.#length += taken.length
    if (this.#chunks.push(taken) < chunksMax) return
    this.#blocks.push(this.#chunks.join(''))
    this.#chunks = []
  }

  /** A part that is no text: a line break, and its placeholder where its type has one. */
  addPart(part: unknown): void {
    this.#needsLineBreak = true
    this.addText(extractText([part]))
    this.#needsLineBreak = true
  }

  /** Later counts replace earlier ones; undefined changes nothing. */
  setUsage(counts: {
    /** All input tokens, those from a cache included. */
    input: number | undefined
    /** Those that a cache of the provider held. */
    cached: number | undefined
    output: number | undefined
  }): void {
    const { input, cached, output } = counts
    this.#input = input ?? this.#input
    this.#cached = cached ?? this.#cached
    this.#output = output ?? this.#output
  }

  /** Whether there is no text yet. */
  get isEmpty(): boolean {
    return this.#length === 0
  }

  /** Whether there is no text since the last part. */
  get isPartEmpty(): boolean {
    return this.#needsLineBreak || this.isEmpty
  }

  end(): Reply {
    const { failed, truncated } = this
    return {
      text: failed ? '' : sanitizeText([...this.#blocks, ...this.#chunks].join('')),
      truncated,
      complete: this.complete && !failed,
      ...(this.#input !== undefined && { inputTokens: this.#input }),
      ...(this.#cached > 0 && { cachedTokens: this.#cached }),
      ...(this.#output !== undefined && { outputTokens: this.#output }),
      failed,
      ...(this.isStep && { isStep: true }),
    }
  }
}

/** An object of a response; its fields have any type. */
export type JsonObject = { readonly [name: string]: unknown }

/** Adds one event of a stream, or one complete response, to the reply. */
export type ParseEvent = (event: JsonObject, reply: ReplyAccumulator) => void

/** How a format's responses are parsed, and which members of a complete response are read, divided by blanks. */
export type ReplyFormat = { parseEvent: ParseEvent; fieldNames: string }

/** Parses an event by its `type`; one without a type by `otherwise`. */
export function parseByType(
  parsers: Record<string, ParseEvent>,
  otherwise: ParseEvent = () => {},
): ParseEvent {
  const byType = new Map(Object.entries(parsers))
  return (event, reply) => {
    if (typeof event.type === 'string') byType.get(event.type)?.(event, reply)
    else otherwise(event, reply)
  }
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The objects of an array, in order; none when the value is no array. */
export const objectsIn = (value: unknown): JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : []

/** The largest that bills hold, an `integer` of Postgres. */
const tokenCountMax = 2 ** 31 - 1

/** The value as a count of tokens; undefined when it is none, or more than a bill holds. */
export const toTokenCount = (value: unknown): number | undefined =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= tokenCountMax
    ? (value as number)
    : undefined

/** `cached_tokens` of OpenAI's details of input tokens; undefined when there are none. */
export const cachedCount = (details: unknown): number | undefined =>
  isObject(details) ? toTokenCount(details.cached_tokens) : undefined

/** The sum of the values that are counts; undefined when the first is none, or more than a bill holds. */
export function sumTokenCounts(first: unknown, ...more: unknown[]): number | undefined {
  const sum = toTokenCount(first)
  return sum === undefined
    ? undefined
    : toTokenCount(more.reduce<number>((sum, value) => sum + (toTokenCount(value) ?? 0), sum))
}

/** Parses a provider's response while it is relayed, in bounded memory; never throws. */
export type ReplyParser = {
  /** Takes the next bytes, split anywhere. They are not changed, and not referenced after the return. */
  feed(bytes: Uint8Array): void
  /** Returns the reply so far. Call once, after the last bytes. */
  end(): Reply
}

/**
 * Parses a response of any format, streamed or not.
 *
 * @param answer the provider's status and `content-type`, which is empty when it sent none
 */
export function createReplyParser(
  { status, contentType }: { status: number; contentType: string },
  { parseEvent, fieldNames }: ReplyFormat,
): ReplyParser {
  const reply = new ReplyAccumulator()
  reply.failed = status < 200 || status > 299
  if (reply.failed) return { feed() {}, end: () => reply.end() }
  const onObject = (value: unknown): void => {
    if (isObject(value)) parseEvent(value, reply)
  }
  let reader = /^\s*text\/event-stream\b/i.test(contentType)
    ? createEventStreamReader(onObject, reply)
    : undefined
  return {
    feed(bytes) {
      const first = reader ? undefined : bytes.find(byte => byte > 0x20)
      if (first !== undefined) {
        reader = jsonStartBytes.has(first)
          ? createJsonReader(onObject, fieldNames, reply)
          : createEventStreamReader(onObject, reply)
      }
      reader?.feed(bytes)
    },
    end() {
      reader?.end()
      return reply.end()
    },
  }
}

/** Some providers send a wrong content type, or none; an event stream never begins with these. */
const jsonStartBytes = new Set([0x7b, 0x5b])

function createJsonReader(
  onObject: (value: unknown) => void,
  fieldNames: string,
  reply: ReplyAccumulator,
): { feed(bytes: Uint8Array): void; end(): void } {
  const reader = new JsonFieldReader(new Set(fieldNames.split(' ')), replyTextMax, onObject)
  return {
    feed: bytes => reader.feed(bytes),
    end() {
      reply.truncated ||= reader.isTruncated()
    },
  }
}

/** A longer event (an image, mostly) is skipped. */
const eventBytesMax = 4 * 1024 * 1024

function createEventStreamReader(
  onObject: (value: unknown) => void,
  reply: ReplyAccumulator,
): { feed(bytes: Uint8Array): void; end(): void } {
  const decoder = new TextDecoder()
  let overflowed = false
  const parser = createParser({
    maxBufferSize: eventBytesMax,
    onEvent({ data, event }) {
      if (data === '[DONE]') reply.complete = true
      else onObject(parseEventData(data))
      if (event === 'error') reply.failed = true
    },
    onError({ type }) {
      if (type === 'max-buffer-size-exceeded') overflowed = true
    },
  })
  const feed = (text: string): void => {
    parser.feed(text)
    if (!overflowed) return
    // The rest of the long line names no field: parsing continues with the next event.
    overflowed = false
    reply.truncated = true
    parser.reset()
  }
  return {
    feed: bytes => feed(decoder.decode(bytes, { stream: true })),
    // The blank line that ends an event is often missing after the last one.
    end: () => feed(`${decoder.decode()}\n\n`),
  }
}

function parseEventData(data: string): unknown {
  try {
    return JSON.parse(data) as unknown
  } catch {
    return undefined
  }
}
