import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'

/** The vector of a text from the double below: random, the same for the same text. */
export function vectorForText(text: string, dimension: number): Float32Array {
  const seed = createHash('md5').update(text).digest().readUInt32LE(0)
  return randomUnitVector(dimension, seededRandom(seed))
}

/** An OpenAI-compatible embeddings endpoint on loopback, to run the service with any dimension. */
export async function startEmbeddingDouble(
  dimension: number,
): Promise<{ baseUrl: string; close(): void }> {
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8')
    request.on('data', chunk => (text += chunk))
    request.on('end', () => {
      const { input } = JSON.parse(text) as { input: string[] }
      const data = input.map((one, index) => ({
        index,
        embedding: Buffer.from(vectorForText(one, dimension).buffer).toString('base64'),
      }))
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ data }))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { baseUrl: `http://127.0.0.1:${port}/v1`, close: () => void server.close() }
}

/** A random vector of length 1. */
function randomUnitVector(dimension: number, next: () => number): Float32Array {
  const vector = new Float32Array(dimension)
  let sum = 0
  for (let index = 0; index < dimension; index++) {
    const value = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
    vector[index] = value
    sum += value * value
  }
  const norm = Math.sqrt(sum)
  return vector.map(value => value / norm)
}
