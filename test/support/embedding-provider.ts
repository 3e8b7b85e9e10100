import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base'
import type { Test } from 'tap'
import { listen } from '#test/support/listen.ts'

export type EmbeddingProvider = {
  /** A value for `<NAME>_BASE_URL`. */
  baseUrl: string
  /** Number of inputs of each call. */
  readonly calls: number[]
  /** Answers the next calls with this status. */
  fail(status: number, times: number): void
  /** Never answers the next call; `always`: any call, until `recover`. */
  hang(when?: 'always'): void
  /** Answers every call with status 200 and this body, until `recover`. */
  answerAlways(type: string, body: string): void
  /** Answers as another model of this dimension, until `recover`. */
  exchange(dimension: number): void
  recover(): void
}

/**
 * A model provider on loopback with the OpenAI embeddings protocol. Texts with common words and
 * trigrams get similar vectors; results are deterministic. Like OpenAI it refuses an empty input, an
 * input of more than 8,191 tokens, and more than 300,000 tokens in a request.
 */
export async function startEmbeddingProvider(t: Test, dimension = 64): Promise<EmbeddingProvider> {
  const calls: number[] = []
  let failing = { status: 500, times: 0 }
  let hanging: boolean | 'always' = false
  let exchanged: number | undefined
  let fixed: { type: string; body: string } | undefined

  const server = createServer((request, response) => {
    // A client that was killed leaves an incomplete request.
    answer(request, response).catch(() => response.destroy())
  })
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!request.url?.endsWith('/embeddings')) return void response.writeHead(404).end('{}')
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { input, encoding_format } = JSON.parse(Buffer.concat(chunks).toString()) as {
      input: string[]
      encoding_format?: string
    }
    calls.push(input.length)
    if (hanging === 'always') return
    if (hanging) return void (hanging = false)
    if (fixed) return void response.setHeader('content-type', fixed.type).end(fixed.body)
    response.setHeader('content-type', 'application/json')
    if (failing.times > 0) {
      failing.times--
      response.writeHead(failing.status)
      return void response.end(JSON.stringify({ error: { message: 'scripted failure' } }))
    }
    const fault = faultOf(input)
    if (fault) {
      response.writeHead(400)
      return void response.end(JSON.stringify({ error: { message: fault } }))
    }
    const data = input.map((text, index) => {
      const vector = vectorOf(text, exchanged ?? dimension)
      const embedding =
        encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector]
      return { object: 'embedding', index, embedding }
    })
    response.end(JSON.stringify({ object: 'list', data, model: 'double', usage: {} }))
  }
  return {
    baseUrl: `${await listen(t, server)}/v1`,
    calls,
    fail: (status, times) => void (failing = { status, times }),
    hang: (when?: 'always') => void (hanging = when ?? true),
    answerAlways: (type, body) => void (fixed = { type, body }),
    exchange: other => void (exchanged = other),
    recover() {
      exchanged = undefined
      hanging = false
      fixed = undefined
    },
  }
}

/** Counts tokens of long texts only: a text has no more tokens than bytes. */
function faultOf(input: readonly string[]): string | undefined {
  if (input.length > 2_048) return 'too many inputs'
  if (input.includes('')) return 'input cannot be an empty string'
  const isTooLong = input.some(text => Buffer.byteLength(text) > 8_191 && tokensOf(text) > 8_191)
  if (isTooLong) return 'maximum context length is 8192 tokens'
  const bytes = input.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  const isTooMuch =
    bytes > 300_000 && input.reduce((sum, text) => sum + tokensOf(text), 0) > 300_000
  return isTooMuch ? 'max 300000 tokens per request' : undefined
}

/** Counts in slices: a long text without spaces would take seconds at once. */
function tokensOf(text: string): number {
  let sum = 0
  for (let start = 0; start < text.length; start += 1_000) {
    sum += countTokens(text.slice(start, start + 1_000))
  }
  return sum
}

function vectorOf(text: string, dimension: number): Float32Array {
  const vector = new Float32Array(dimension)
  const add = (feature: string, weight: number): void => {
    const hash = createHash('md5').update(feature).digest()
    vector[hash.readUInt32LE(0) % dimension]! += hash[4]! % 2 === 0 ? weight : -weight
  }
  for (const word of text.toLowerCase().split(/\W+/u).filter(Boolean)) {
    add(word, 2)
    for (let start = 0; start + 3 <= word.length; start++)
      add(`#${word.slice(start, start + 3)}`, 1)
  }
  return vector
}
