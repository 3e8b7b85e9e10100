import { providerSeconds } from '#shared/core/metrics.ts'
import { withSpan } from '#shared/core/trace.ts'

/** Measures a call of a provider until the head of its response; status 0 where there was none. */
export function timeProviderCall<Answer>(
  provider: string,
  call: () => Promise<Answer>,
  statusOf: (answer: Answer) => number,
): Promise<Answer> {
  const startedAt = performance.now()
  return withSpan('provider', { 'server.name': provider }, async span => {
    let status = 0
    try {
      const answer = await call()
      status = statusOf(answer)
      return answer
    } finally {
      providerSeconds.observe({ provider, status }, (performance.now() - startedAt) / 1_000)
      span.setAttribute('http.response.status_code', status)
    }
  })
}

/** `fetch` with `timeProviderCall`. */
export const timedFetch =
  (provider: string): typeof fetch =>
  (input, init) =>
    timeProviderCall(
      provider,
      () => fetch(input, init),
      ({ status }) => status,
    )
