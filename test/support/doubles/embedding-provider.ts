import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import {
  embeddingServers,
  refusalOf,
  type EmbeddingServer,
} from '#test/support/doubles/embedding-servers.ts'
import sentences from '#shared/models/calibration/sentences.json' with { type: 'json' }
import { listen } from '#test/support/start/listen.ts'

/** What a service embeds to measure a model. */
const calibrationTexts = new Set(Object.values(sentences).flat(2))

export type EmbeddingProvider = {
  /** A value for `<NAME>_BASE_URL`. */
  baseUrl: string
  /** Number of inputs of each call; those that measure the model are in the background, and not counted. */
  readonly calls: number[]
  /** Inputs of each call, and the other fields of its body. */
  readonly bodies: { input: string[]; [field: string]: unknown }[]
  /** Answers the next calls with this status and these words, but for those that measure the model. */
  fail(status: number, times: number, words?: string): void
  /** Never answers the next call; `always`: any call, until `recover`; a number: calls of more inputs. */
  hang(when?: 'always' | number): void
  readonly paths: string[]
  /** Answers the next calls with the rate limit of the server, where it has one. */
  limit(times: number): void
  /** Refuses every call with this field. */
  refuseField(name: string): void
  /** Refuses every call with this text in an input, or breaks its connection, until `recover`. */
  refuseText(text: string, how?: 'broken'): void
  /** Answers every call with this body, and status 200 unless another is given, until `recover`. */
  answerAlways(type: string, body: string, status?: number): void
  /** As Ollama after 5 minutes: a call waits until the model is loaded, and a client that leaves ends that. */
  unload(loadMs: number): void
  /** Answers as another model of this dimension, until `recover`. */
  exchange(dimension: number): void
  recover(): void
}

/**
 * A model provider on loopback with the OpenAI embeddings protocol. Texts with common words and
 * trigrams get similar vectors; results are deterministic. It refuses what the server refuses that it stands
 * for, with its words.
 */
export async function startEmbeddingProvider(
  t: Test,
  dimension = 64,
  server: EmbeddingServer = embeddingServers.openai,
): Promise<EmbeddingProvider> {
  const calls: number[] = []
  const bodies: EmbeddingProvider['bodies'] = []
  const paths: string[] = []
  let limits = 0
  let refusedField: string | undefined
  let loadMs = 0
  let refusedText: string | undefined
  let isBroken = false
  let failing = { status: 500, times: 0, message: '' }
  let hanging: boolean | 'always' | number = false
  let exchanged: number | undefined
  let fixed: { type: string; body: string; status: number } | undefined

  const http = createServer((request, response) => {
    // A client that was killed leaves an incomplete request.
    answer(request, response).catch(() => response.destroy())
  })
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!request.url?.endsWith('/embeddings')) return void response.writeHead(404).end('{}')
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { input, ...rest } = JSON.parse(Buffer.concat(chunks).toString()) as {
      input: string[]
      encoding_format?: string
    }
    const isMeasuring = input.some(text => calibrationTexts.has(text))
    if (!isMeasuring) calls.push(input.length)
    if (loadMs > 0 && !(await hasLoaded(response, loadMs))) return
    loadMs = 0
    if (!isMeasuring) bodies.push({ input, ...rest })
    if (!isMeasuring) paths.push(request.url)
    if (hanging === 'always' || (typeof hanging === 'number' && input.length > hanging)) return
    if (hanging === true && !isMeasuring) return void (hanging = false)
    if (fixed)
      return void response.writeHead(fixed.status, { 'content-type': fixed.type }).end(fixed.body)
    response.setHeader('content-type', 'application/json')
    if (failing.times > 0 && !isMeasuring) {
      failing.times--
      response.writeHead(failing.status)
      return void response.end(JSON.stringify({ error: { message: failing.message } }))
    }
    if (limits > 0 && server.limited) {
      limits--
      const { status, headers, body } = server.limited
      return void response.writeHead(status, headers).end(JSON.stringify(body))
    }
    const hasRefused = input.some(text => refusedText !== undefined && text.includes(refusedText))
    if (hasRefused && isBroken) return void response.destroy()
    const isBase64 = rest.encoding_format === 'base64'
    const fault =
      (refusedField !== undefined && refusedField in rest && badField) ||
      (typeof server.base64 === 'object' && isBase64 && server.base64) ||
      (hasRefused && badText) ||
      refusalOf(server, input)
    if (fault) {
      response.writeHead(fault.status)
      return void response.end(JSON.stringify(fault.body))
    }
    const data = input.map((text, index) => {
      const vector = vectorOf(text, exchanged ?? dimension)
      const embedding =
        isBase64 && server.base64 === 'answered'
          ? Buffer.from(vector.buffer).toString('base64')
          : [...vector]
      return { object: 'embedding', index, embedding }
    })
    response.end(JSON.stringify({ object: 'list', data, model: 'double', usage: {} }))
  }
  return {
    baseUrl: `${await listen(t, http)}/v1`,
    calls,
    bodies,
    paths,
    limit: times => void (limits = times),
    refuseField: name => void (refusedField = name),
    fail: (status, times, message = 'scripted failure') =>
      void (failing = { status, times, message }),
    hang: (when?: 'always' | number) => void (hanging = when ?? true),
    answerAlways: (type, body, status = 200) => void (fixed = { type, body, status }),
    refuseText(text, how) {
      refusedText = text
      isBroken = how === 'broken'
    },
    unload: ms => void (loadMs = ms),
    exchange: other => void (exchanged = other),
    recover() {
      exchanged = undefined
      refusedText = undefined
      hanging = false
      fixed = undefined
    },
  }
}

/** False where the client has left before. */
const hasLoaded = (response: ServerResponse, ms: number): Promise<boolean> =>
  new Promise(resolve => {
    const timer = setTimeout(() => resolve(true), ms)
    response.once('close', () => {
      clearTimeout(timer)
      resolve(false)
    })
  })

const badField = { status: 422, body: { detail: 'Extra inputs are not permitted' } }
const badText = { status: 400, body: { error: { message: 'this text is not allowed' } } }

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
