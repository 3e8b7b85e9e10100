import { Breaker } from '#shared/core/breaker.ts'
import type { RerankerSettings } from '#shared/core/config.ts'
import { timedFetch } from '#shared/core/timed-fetch.ts'

/**
 * Asks a reranker for the positions of documents, best first; undefined when it does not answer with that in time.
 *
 * With a model the request is that of the `/rerank` of Cohere, Jina, Voyage, vLLM and LiteLLM
 * (https://docs.cohere.com/reference/rerank), without one that of Hugging Face's text-embeddings-inference
 * (https://huggingface.github.io/text-embeddings-inference).
 */
export async function rerankOrder(
  settings: RerankerSettings,
  query: string,
  documents: readonly string[],
): Promise<number[] | undefined> {
  const signal = AbortSignal.timeout(settings.timeoutMs)
  try {
    return await breakerOf(settings).run(
      () => ask(settings, query, documents, signal),
      () => new Error('the reranker does not answer'),
      () => true,
    )
  } catch {
    return undefined
  }
}

const breakers = new Map<string, Breaker>()

function breakerOf(settings: RerankerSettings): Breaker {
  const known = breakers.get(settings.url)
  if (known) return known
  const { timeoutMs } = settings
  const probe = () => ask(settings, 'tea', ['tea', 'coffee'], AbortSignal.timeout(timeoutMs))
  const breaker = new Breaker({ name: 'rerank', probe })
  breakers.set(settings.url, breaker)
  return breaker
}

async function ask(
  { url, model, apiKey }: RerankerSettings,
  query: string,
  documents: readonly string[],
  signal: AbortSignal,
): Promise<number[]> {
  const response = await timedFetch('rerank')(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(apiKey && { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify(
      model ? { model, query, documents } : { query, texts: documents, truncate: true },
    ),
    // The key is for this address only: redirects are not followed.
    redirect: 'error',
    signal,
  })
  if (!response.ok) {
    await response.body?.cancel()
    throw new Error(`the reranker answers with status ${response.status}`)
  }
  return orderOf(await response.json(), documents.length)
}

/** Cohere's rows are in `results`, Voyage's in `data`; TEI sends the bare list. */
function orderOf(answer: unknown, count: number): number[] {
  const { results, data } = Object(answer) as { results?: unknown; data?: unknown }
  const rows = [answer, results, data].find(list => Array.isArray(list)) as
    | ({ index?: unknown; relevance_score?: unknown; score?: unknown } | null)[]
    | undefined
  const scores = new Map<number, number>()
  for (const row of rows ?? []) {
    const score = row?.relevance_score ?? row?.score
    const index = row?.index
    if (typeof score === 'number' && Number.isInteger(index)) scores.set(index as number, score)
  }
  const positions = Array.from({ length: count }, (_, position) => position)
  if (rows?.length !== count || !positions.every(position => scores.has(position)))
    throw new Error('the reranker does not answer with a score for each document')
  return positions.toSorted((one, other) => scores.get(other)! - scores.get(one)!)
}
