import { Pool } from 'undici'
import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'

const minuteMs = 60_000

/** Sends requests with one Memory Key to one web process; the client costs as little as possible. */
export class ServiceClient {
  readonly key: string
  /** Texts that were stored last. */
  stored: readonly string[] = []
  /** Tokens of the blocks that model calls were given. */
  toldTokens = 0
  readonly #pool: Pool
  readonly #next = seededRandom(22)

  constructor(port: number, key: string) {
    this.key = key
    this.#pool = new Pool(`http://127.0.0.1:${port}`, {
      connections: 64,
      pipelining: 1,
      headersTimeout: 120_000,
    })
  }

  /** @throws Error any answer but 200 and 202. @returns the text of the answer. */
  async post(path: string, body: string, type = 'application/json'): Promise<string> {
    const headers = {
      authorization: `Bearer ${this.key}`,
      'content-type': type,
      'x-provider-key': 'sk-of-the-benchmark',
    }
    const options = { path, method: 'POST', headers, body } as const
    const { statusCode, headers: answered, body: answer } = await this.#pool.request(options)
    const text = await answer.text()
    this.toldTokens += Number(answered['x-memory-tokens-injected'] ?? 0)
    if (statusCode !== 200 && statusCode !== 202) throw new Error(`${path}: ${statusCode} ${text}`)
    return text
  }

  /** Searches again while the vault is being loaded. @returns the text of the answer. */
  async search(query: string, limit = 10): Promise<string> {
    for (;;) {
      try {
        return await this.post('/v1/memory/search', JSON.stringify({ query, limit }))
      } catch (error) {
        if (!/: 503 /.test((error as Error).message)) throw error
      }
    }
  }

  /** Uploads a file of so many texts of 30 words and waits until it is stored. The last one is now. */
  async fill(memories: number): Promise<void> {
    const from = Date.now() - memories * minuteMs
    this.stored = Array.from(
      { length: memories },
      (_, index) => `${randomSentence(30, this.#next)} ${index}`,
    )
    const lines = this.stored.map((content, index) =>
      JSON.stringify({ content, timestamp: from + index * minuteMs }),
    )
    await this.post('/v1/memory/upload', lines.join('\n'), 'application/x-ndjson')
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }
}
