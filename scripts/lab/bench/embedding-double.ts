import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { randomUnitVector } from '#scripts/lab/bench/bench-environment.ts'
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
