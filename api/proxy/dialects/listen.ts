import { createParser } from 'eventsource-parser'
import type { Dialect, ReplyListener } from '#api/proxy/dialects/dialect.ts'
import { createHeard, heardMax, type Heard } from '#api/proxy/dialects/heard.ts'
import { createTail, type Tail } from '#api/proxy/dialects/tail.ts'
import { createPicker } from '#api/proxy/json/pick.ts'

/** An object out of an answer; what its fields are is for the reader to find out. */
export type Said = { readonly [name: string]: unknown }

/** Takes down what one event of a stream, or one whole answer, says. */
type Hear = (said: Said, heard: Heard) => void

/** A family's ear: how to take down an event, and which members of a whole answer it reads. */
export type Ear = { hear: Hear; names: ReadonlySet<string> }

/** Hears an answer of any family, streamed or not: see `Dialect.listen`. */
export function listenTo(
  { status, contentType }: Parameters<Dialect['listen']>[0],
  { hear, names }: Ear,
): ReplyListener {
  const heard = createHeard()
  const take = (said: unknown): void => {
    if (isObject(said)) hear(said, heard)
  }
  if (status < 200 || status > 299) {
    heard.fail()
    return { hear() {}, end: heard.end }
  }
  let reader = /^\s*text\/event-stream\b/i.test(contentType) ? eventsInto(take, heard) : undefined
  return {
    hear(bytes) {
      const first = reader ? undefined : bytes.find(byte => byte > 0x20)
      if (first !== undefined) {
        reader = jsonStarts.has(first) ? jsonInto(take, names, heard) : eventsInto(take, heard)
      }
      reader?.feed(bytes)
    },
    end() {
      reader?.end()
      return heard.end()
    },
  }
}

type Reader = { feed(bytes: Uint8Array): void; end(): void }

/** Some providers name the wrong content type, or none; a stream of events never begins so. */
const jsonStarts = new Set([0x7b, 0x5b])

function jsonInto(take: (said: Said) => void, names: ReadonlySet<string>, heard: Heard): Reader {
  const picker = createPicker(names, heardMax, take)
  return {
    feed: picker.feed,
    end() {
      if (picker.truncated()) heard.cut()
    },
  }
}

/** An event longer than this (a picture, mostly) is passed over. */
const eventMax = 4 * 1024 * 1024

function eventsInto(take: (said: unknown) => void, heard: Heard): Reader {
  const decoder = new TextDecoder()
  let overflowed = false
  const parser = createParser({
    maxBufferSize: eventMax,
    onEvent({ data, event }) {
      if (data === '[DONE]') heard.complete()
      else take(parsedEvent(data))
      if (event === 'error') heard.fail()
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
    heard.cut()
    parser.reset()
  }
  let tail: Tail | undefined
  return {
    feed(bytes) {
      if (heard.isFull()) tail ??= createTail(tailBytes)
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

function parsedEvent(data: string): unknown {
  try {
    return JSON.parse(data) as unknown
  } catch {
    return undefined
  }
}

export const isObject = (value: unknown): value is Said =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The objects of a list, in order; none where it is no list. */
export const objectsIn = (value: unknown): Said[] =>
  Array.isArray(value) ? value.filter(isObject) : []

/** A count of tokens, when it is one. */
export const countOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined

/** The sum of those that are counts, when the first is. */
export function sumOf(first: unknown, ...more: unknown[]): number | undefined {
  const sum = countOf(first)
  return sum === undefined
    ? undefined
    : more.reduce<number>((sum, one) => sum + (countOf(one) ?? 0), sum)
}
