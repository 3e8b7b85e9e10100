import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'

const dimension = 1_536

/** Normal random numbers; a vector is a part of them, so that it costs next to nothing. */
const numbers = Float32Array.from({ length: 1 << 20 }, gaussian(seededRandom(11)))

/**
 * An OpenAI-compatible provider on loopback: embeddings of 1,536 dimensions, the same for the same text, and answers of
 * a model of which no two are equal.
 */
export async function startProviderDouble(): Promise<{ baseUrl: string; close(): void }> {
  const next = seededRandom(12)
  const replies = Array.from({ length: 500 }, () => randomSentence(40, next))
  let answered = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.once('end', () => {
      const isEmbedding = request.url!.endsWith('/embeddings')
      const answer = isEmbedding
        ? embeddings(JSON.parse(Buffer.concat(chunks).toString()) as { input: string[] })
        : completion(`${replies[answered % replies.length]!} ${answered++}`)
      const text = JSON.stringify(answer)
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      })
      response.end(text)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  return { baseUrl: `http://127.0.0.1:${port}/v1`, close }
}

const completion = (content: string): object => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }],
  usage: { prompt_tokens: 400, completion_tokens: 60, total_tokens: 460 },
})

const embeddings = ({ input }: { input: string | string[] }): object => ({
  object: 'list',
  data: [input].flat().map((text, index) => ({
    object: 'embedding',
    index,
    embedding: Buffer.from(vectorOf(text).buffer).toString('base64'),
  })),
  usage: { prompt_tokens: 1, total_tokens: 1 },
})

function vectorOf(text: string): Float32Array {
  const hash = createHash('md5').update(text).digest().readUInt32LE(0)
  const start = hash % (numbers.length - dimension)
  const vector = numbers.slice(start, start + dimension)
  let sum = 0
  for (const number of vector) sum += number * number
  const norm = Math.sqrt(sum)
  for (let index = 0; index < dimension; index++) vector[index]! /= norm
  return vector
}

function gaussian(next: () => number): () => number {
  return () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
}
