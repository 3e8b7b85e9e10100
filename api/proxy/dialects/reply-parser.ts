import { createParser } from 'eventsource-parser'
import type { Dialect, ReplyParser } from '#api/proxy/dialects/dialect.ts'
import {
  createReplyAccumulator,
  replyTextMax,
  type ReplyAccumulator,
} from '#api/proxy/dialects/reply-accumulator.ts'
import { createTailBuffer, type TailBuffer } from '#api/proxy/dialects/tail-buffer.ts'
import { createJsonFieldReader } from '#api/proxy/json/field-reader.ts'

/** An object out of an answer; what its fields are is for the reader to find out. */
export type JsonObject = { readonly [name: string]: unknown }

/** Takes down what one event of a stream, or one whole answer, says. */
type ParseEvent = (said: JsonObject, heard: ReplyAccumulator) => void

/** A family's ear: how to take down an event, and which members of a whole answer it reads. */
export type ReplyFormat = { parseEvent: ParseEvent; fieldNames: ReadonlySet<string> }

/** Hears an answer of any family, streamed or not: see `Dialect.listen`. */
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

/** Some providers name the wrong content type, or none; a stream of events never begins so. */
const jsonStartBytes = new Set([0x7b, 0x5b])

function createJsonReader(
  onObject: (said: JsonObject) => void,
  fieldNames: ReadonlySet<string>,
  reply: ReplyAccumulator,
): ByteReader {
  const fieldReader = createJsonFieldReader(fieldNames, replyTextMax, onObject)
  return {
    feed: fieldReader.feed,
    end() {
      if (fieldReader.isTruncated()) reply.markTruncated()
    },
  }
}

/** An event longer than this (a picture, mostly) is passed over. */
const eventBytesMax = 4 * 1024 * 1024

function createEventStreamReader(
  onObject: (said: unknown) => void,
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
    // What is left of the long line names no field, so the next event is the next one heard.
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
      const { bytes, isWhole } = tail?.read() ?? { bytes: undefined, isWhole: true }
      if (isWhole) {
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

/** When no more text is kept, the last events still say how it ended and what it cost. */
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

/** The objects of a list, in order; none where it is no list. */
export const objectsIn = (value: unknown): JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : []

/** A count of tokens, when it is one. */
export const toTokenCount = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined

/** The sum of those that are counts, when the first is. */
export function sumTokenCounts(first: unknown, ...more: unknown[]): number | undefined {
  const sum = toTokenCount(first)
  return sum === undefined
    ? undefined
    : more.reduce<number>((sum, one) => sum + (toTokenCount(one) ?? 0), sum)
}
