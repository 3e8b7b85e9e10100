import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import type { Answering } from '#test/support/recorder.ts'

type Exact = {
  status?: number
  headers?: Record<string, string>
  /** Between two chunks. */
  everyMs?: number
}

const streaming = { 'content-type': 'text/event-stream; charset=utf-8' }
const json = { 'content-type': 'application/json' }

/** Answers with exactly these bytes, each chunk written by itself. */
export function exactly(
  chunks: readonly (Uint8Array | string)[],
  { status = 200, headers = streaming, everyMs = 0 }: Exact = {},
): Answering {
  return async (_seen, answer) => {
    answer.head(status, headers)
    for (const [index, chunk] of chunks.entries()) {
      if (index > 0) await (everyMs > 0 ? delay(everyMs) : turn())
      await answer.write(chunk)
    }
    answer.end()
  }
}

/** A JSON answer, spelled as it is given when it is a string. */
export const answersJson = (
  body: unknown,
  { status = 200, headers = {} }: Pick<Exact, 'status' | 'headers'> = {},
): Answering =>
  exactly([typeof body === 'string' ? body : JSON.stringify(body)], {
    status,
    headers: { ...json, ...headers },
  })

/** The same bytes in pieces of so many bytes, which falls inside UTF-8 sequences and events. */
export function inPieces(bytes: Uint8Array | string, size: number): Buffer[] {
  const whole = Buffer.from(bytes as string)
  return Array.from({ length: Math.ceil(whole.length / size) }, (_, index) =>
    whole.subarray(index * size, (index + 1) * size),
  )
}

/** Sends these chunks and then breaks the connection. */
export function cutAfter(chunks: readonly (Uint8Array | string)[]): Answering {
  return async (_seen, answer) => {
    answer.head(200, streaming)
    for (const chunk of chunks) await answer.write(chunk)
    await delay(20)
    answer.cut()
  }
}

/** Sends these chunks and then nothing, for as long as the other side stays. */
export function stallsAfter(
  chunks: readonly (Uint8Array | string)[],
  headers: Record<string, string> = streaming,
): Answering {
  return async (_seen, answer) => {
    answer.head(200, headers)
    for (const chunk of chunks) await answer.write(chunk)
  }
}

/** Never answers. */
export const silent: Answering = () => {}

export const redirects = (location: string, status = 307): Answering =>
  exactly([], { status, headers: { location } })

/** A stream of so many bytes, as fast as it is read; the bytes are counted, not kept. */
export function flood(bytesMax: number, chunk: string): Answering {
  const bytes = Buffer.from(chunk)
  return async (seen, answer) => {
    answer.head(200, streaming)
    while (seen.sent.bytes < bytesMax && !answer.left.aborted) {
      await answer.write(bytes, { keep: false })
    }
    await answer.write('data: [DONE]\n\n')
    answer.end()
  }
}

/** An error as each family's provider says it, with the headers its clients read. */
export function refuses(
  family: 'openai' | 'anthropic' | 'google',
  status: number,
  headers: Record<string, string> = {},
): Answering {
  const message = `told to answer ${status}`
  const bodies = {
    openai: { error: { message, type: 'invalid_request_error', param: null, code: 'told' } },
    anthropic: { type: 'error', error: { type: errorTypes[status] ?? 'api_error', message } },
    google: { error: { code: status, message, status: 'INVALID_ARGUMENT', details: [] } },
  }
  const ids = {
    openai: { 'x-request-id': 'req_openai_1', 'openai-processing-ms': '12' },
    anthropic: { 'request-id': 'req_anthropic_1' },
    google: { 'x-gemini-service-tier': 'standard' },
  }
  return answersJson(JSON.stringify(bodies[family], null, 2), {
    status,
    headers: { ...ids[family], ...headers },
  })
}

const errorTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}
