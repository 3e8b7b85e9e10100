import { setTimeout as delay } from 'node:timers/promises'
import { splitText } from '#api/client/adapters/long-texts.ts'
import { vaultClient, VaultError, type VaultClient } from '#api/client/client.ts'
import type { ServiceConnection } from '#scripts/service-connection.ts'
import type { ScoredQuestion, ScoredVault } from '#scripts/lab/scores/sets.ts'

/** What a set's questions got, each number of one question. */
export type QuestionResult = {
  kind: string
  /** By lines, where the set names them; else undefined. */
  lines: Ranking | undefined
  sessions: Ranking
  searchMs: number
  blockTokens: number
}

/** The figures of one question, each 0 to 1: shares of what answers among the first five and ten, at least one among five. */
export type Ranking = { recall5: number; recall10: number; any5: number; ndcg10: number }

const hitsMax = 50
const linesMax = 5_000
const lineBytesMax = 200_000

/** Stores a vault under a key of its own, asks all of its questions, and removes it. */
export async function measureVault(
  connection: ServiceConnection,
  { lines, questions }: ScoredVault,
): Promise<QuestionResult[]> {
  const answered: QuestionResult[] = []
  await withVault(connection, async vault => {
    for (let at = 0; at < lines.length; at += linesMax) {
      const body = lines.slice(at, at + linesMax).flatMap(({ id: line, session, ...fields }) =>
        // One answer in BEAM is longer than a line may be.
        splitText(fields.content, lineBytesMax).map(content =>
          JSON.stringify({ ...fields, content, metadata: { line, session } }),
        ),
      )
      await uploadWhole(vault, body.join('\n'))
    }
    for (const question of questions) answered.push(await ask(vault, question))
  })
  return answered
}

/** Opens a new vault of the account and removes it afterwards. */
export async function withVault<Result>(
  { baseUrl, key }: ServiceConnection,
  use: (vault: VaultClient) => Promise<Result>,
): Promise<Result> {
  const owner = vaultClient(baseUrl, key)
  const made = await repeat(() => owner.call('POST /v1/keys', { body: { name: 'scores' } }))
  const vault = vaultClient(baseUrl, made.key)
  try {
    return await use(vault)
  } finally {
    await repeat(() => vault.call('DELETE /v1/memory'))
  }
}

/** Uploads lines, and waits until they can be searched. */
export async function uploadWhole(vault: VaultClient, body: string): Promise<void> {
  const answer = await repeat(() => vault.call('POST /v1/memory/upload', { body }))
  let state: string = 'stats' in answer ? answer.status : 'waiting'
  while (state !== 'done' && state !== 'complete') {
    if (['failed', 'partial', 'cancelled'].includes(state)) {
      throw new Error(`The lines were not stored: ${JSON.stringify(answer)}`)
    }
    await delay(500)
    const params = { id: answer.operation_id }
    state = (await repeat(() => vault.call('GET /v1/operations/:id', { params }))).state
  }
}

async function ask(vault: VaultClient, question: ScoredQuestion): Promise<QuestionResult> {
  const { text, kind } = question
  let searchMs = 0
  const { memories } = await repeat(() => {
    const start = performance.now()
    const found = vault.call('POST /v1/memory/search', { body: { query: text, limit: hitsMax } })
    return found.finally(() => (searchMs = performance.now() - start))
  })
  const ranked = (name: 'line' | 'session'): string[] => [
    ...new Set(memories.map(({ metadata }) => String(metadata?.[name]))),
  ]
  const messages = [{ role: 'user' as const, content: text }]
  const block = await repeat(() => vault.call('POST /v1/memory/prepare', { body: { messages } }))
  return {
    kind,
    lines: question.lines.length > 0 ? rate(ranked('line'), question.lines) : undefined,
    sessions: rate(ranked('session'), question.sessions),
    searchMs,
    blockTokens: block.context === null ? 0 : block.memory_tokens,
  }
}

/** Rates an order against the set of what should be in it, all of the same worth. */
export function rate(ranked: readonly string[], wanted: readonly string[]): Ranking {
  const share = (cut: number): number =>
    wanted.filter(one => ranked.slice(0, cut).includes(one)).length / wanted.length
  const gain = (at: number): number => 1 / Math.log2(at + 2)
  const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)
  const gained = ranked.slice(0, 10).map((one, at) => (wanted.includes(one) ? gain(at) : 0))
  const best = wanted.slice(0, 10).map((_, at) => gain(at))
  return {
    recall5: share(5),
    recall10: share(10),
    any5: share(5) > 0 ? 1 : 0,
    ndcg10: sum(gained) / sum(best),
  }
}

/** Sends a request again while the service asks to wait. */
export async function repeat<Result>(send: () => Promise<Result>): Promise<Result> {
  for (let tries = 0; ; tries++) {
    try {
      return await send()
    } catch (error) {
      const isLater = error instanceof VaultError && [429, 503].includes(error.status)
      if (!isLater || tries > 20) throw error
      await delay((error.retryAfter ?? 1) * 1000)
    }
  }
}
