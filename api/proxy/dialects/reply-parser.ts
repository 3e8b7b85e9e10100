import { createParser } from 'eventsource-parser'
import type { Dialect, ReplyParser } from '#api/proxy/dialects/dialect.ts'
import {
  createReplyAccumulator,
  replyTextMax,
  type ReplyAccumulator,
} from '#api/proxy/dialects/reply-accumulator.ts'
import { JsonFieldReader } from '#api/proxy/json/field-reader.ts'

/** An object of a response; its fields have any type. */
export type JsonObject = { readonly [name: string]: unknown }

/** Adds one event of a stream, or one complete response, to the reply. */
type ParseEvent = (event: JsonObject, reply: ReplyAccumulator) => void

/** How a format's responses are parsed, and which members of a complete response are read. */
export type ReplyFormat = { parseEvent: ParseEvent; fieldNames: ReadonlySet<string> }

/** Parses a response of any format, streamed or not: see `Dialect.createReplyParser`. */
export function createReplyParser(
  { status, contentType }: Parameters<Dialect['createReplyParser']>[0],
  { parseEvent, fieldNames }: ReplyFormat,
): ReplyParser {
  const reply = createReplyAccumulator()
  const onObject = (value: unknown): void => {
    if (isObject(value)) parseEvent(value, reply)
  }
  if (status < 200 || status > 299) {
    reply.markFailed()
    return { feed() {}, end: reply.end }
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

type ByteReader = { feed(bytes: Uint8Array): void; end(): void }

/** Some providers send a wrong content type, or none; an event stream never begins with these. */
const jsonStartBytes = new Set([0x7b, 0x5b])

function createJsonReader(
  onObject: (value: JsonObject) => void,
  fieldNames: ReadonlySet<string>,
  reply: ReplyAccumulator,
): ByteReader {
  const fieldReader = new JsonFieldReader(fieldNames, replyTextMax, onObject)
  return {
    feed: bytes => fieldReader.feed(bytes),
    end() {
      if (fieldReader.isTruncated()) reply.markTruncated()
    },
  }
}

/** A longer event (an image, mostly) is skipped. */
const eventBytesMax = 4 * 1024 * 1024

function createEventStreamReader(
  onObject: (value: unknown) => void,
  reply: ReplyAccumulator,
): ByteReader {
  const decoder = new TextDecoder()
  let overflowed = false
  const parser = createParser({
    maxBufferSize: eventBytesMax,
    onEvent({ data, event }) {
      if (data === '[DONE]') reply.markComplete()
      else onObject(parseEventData(data))
      if (event === 'error') reply.markFailed()
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
    reply.markTruncated()
    parser.reset()
  }
  let tail: TailBuffer | undefined
  return {
    feed(bytes) {
      if (reply.isFull()) tail ??= createTailBuffer(tailBytes)
      if (tail) tail.push(bytes)
      else feed(decoder.decode(bytes, { stream: true }))
    },
    end() {
      const { bytes, isComplete } = tail?.read() ?? { bytes: undefined, isComplete: true }
      if (isComplete) {
        feed(decoder.decode(bytes, { stream: true }))
      } else {
        parser.reset()
        const text = new TextDecoder().decode(bytes)
        feed(text.slice(text.search(/\r?\n\r?\n/) + 1))
      }
      // The blank line that ends an event is often missing after the last one.
      feed(`${decoder.decode()}\n\n`)
    },
  }
}

/** After the text limit, the last events are still parsed for the ending and the token counts. */
const tailBytes = 64 * 1024

function parseEventData(data: string): unknown {
  try {
    return JSON.parse(data) as unknown
  } catch {
    return undefined
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

/** The sum of the values that are counts; undefined when the first is none, or more than a bill holds. */
export function sumTokenCounts(first: unknown, ...more: unknown[]): number | undefined {
  const sum = toTokenCount(first)
  return sum === undefined
    ? undefined
    : toTokenCount(more.reduce<number>((sum, value) => sum + (toTokenCount(value) ?? 0), sum))
}

/** Keeps the last bytes of a stream of any length, in a fixed amount of memory. */
export type TailBuffer = {
  /** Copies the bytes; older bytes beyond the size are dropped. */
  push(bytes: Uint8Array): void
  /** The bytes still held; `isComplete` when none were dropped. */
  read(): { bytes: Uint8Array; isComplete: boolean }
}

/** @param size bytes that are held at least; at most twice as many */
export function createTailBuffer(size: number): TailBuffer {
  const buffer = new Uint8Array(2 * size)
  let used = 0
  let isComplete = true
  return {
    push(bytes) {
      if (used + bytes.length > buffer.length) {
        isComplete = false
        const retained = Math.min(used, Math.max(0, size - bytes.length))
        buffer.copyWithin(0, used - retained, used)
        used = retained
      }
      const last = bytes.subarray(Math.max(0, bytes.length - (buffer.length - used)))
      buffer.set(last, used)
      used += last.length
    },
    read: () => ({ bytes: buffer.subarray(0, used), isComplete }),
  }
}
